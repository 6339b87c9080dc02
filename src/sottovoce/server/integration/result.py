"""What `integrated_quantile` returns, and its sensitivity curve: results that are printed, drawn, stored and read back.

Neither holds a record; what is stored is what the sites said, so that every method and bound can be asked of it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from sottovoce.core import codec
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import confidence
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit
from sottovoce.inference.integration.sensitivity import BEFOREHAND, SensitivityCurve
from sottovoce.server.description import Description, Interval
from sottovoce.server.integration import summary
from sottovoce.server.integration.combine import KnownSite, LostSite
from sottovoce.server.integration.integrated import Integrated
from sottovoce.server.integration.plan import (
    IntegrationSettings,
    check_numbers,
    check_settings,
    width_of,
    with_bound,
)
from sottovoce.server.integration.summary import bounds_of, curve_of, curve_table
from sottovoce.server.picture import check_path, save
from sottovoce.server.stored import StoredResult


class KeptIntegration(NamedTuple):
    """A result as plain values; hints are for whoever holds the records, and stay behind."""

    settings: IntegrationSettings
    known: tuple[KnownSite, ...]
    lost: tuple[LostSite, ...]
    idle: tuple[str, ...]
    unit: Unit
    step: float
    resolution: float
    private: bool
    seeded: bool
    per_person: bool
    measured_warnings: tuple[str, ...]
    column: str = ""


class KeptSensitivity(NamedTuple):
    """A sensitivity curve as what it is computed from."""

    result: KeptIntegration
    bounds: tuple[float, ...] | None


@dataclass(frozen=True, repr=False)
class IntegratedResult(Integrated, StoredResult):
    """One site's quantile, helped by others; print it, or `summary()`, for a table."""

    kind = "integrated"

    def by_method(
        self,
        method: str,
        *,
        bound: Any = None,
        variance: str = "printed",
        quantile: str = "z",
        caution: float = 1.96,
    ) -> "IntegratedResult":
        """Combine what the sites have said by another method: nobody is asked again, and nothing more is spent.

        Decide beforehand which interval will be reported: choosing the one that pleases voids all of them.

        Parameters
        ----------
        method, bound, variance, quantile, caution
            As for `integrated_quantile`.
        """
        settings = self._settings(method, variance, quantile, caution)
        for site in self.known:
            check_numbers(settings, site.name, site.trusted, site.records)
        names = [*(site.name for site in self.known[1:]), *self.absent]
        return replace(self, settings=with_bound(settings, bound, names, self.unit, self.step))

    def sensitivity(self, bounds: Sequence[float] | None = None) -> "Sensitivity":
        """Return the interval as a function of the assumed bound on the sources' differences.

        Parameters
        ----------
        bounds
            The bounds to show; by default from 0 to where less than 1 % is gained.
        """
        return Sensitivity.of(self, bounds_of(self, bounds))

    def interval_at(self, level: float) -> Interval:
        """Return the interval by the same method at another confidence level: "valid" knows four of them.

        What each site said is taken at that level too, where its error is known by itself.
        """
        asked = confidence(level)
        if asked == self.level:
            return self.interval
        given = self.settings
        self._settings(given.method, given.variance, given.quantile, given.caution, asked)
        known = (self.target.at(asked), *self.known[1:])
        return replace(self, settings=replace(given, level=asked), known=known).interval

    def plot(self, path: str | Path) -> Path:
        """Draw each site's interval beside the combined one, and the sensitivity curve."""
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        from sottovoce.server.integration.plot import draw

        return draw(self)

    @property
    def headline(self) -> str:
        """Return the result in one line."""
        return summary.headline(self)

    def describe(self) -> Description:
        """Return what the result says of itself."""
        return self.with_cost(summary.describe(self))

    def to_state(self) -> KeptIntegration:
        """Return the plain state the result is made from."""
        return KeptIntegration(*(getattr(self, name) for name in KeptIntegration._fields))

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the result again."""
        return cls.from_kept(codec.from_plain(plain, KeptIntegration))

    @classmethod
    def from_kept(cls, kept: KeptIntegration) -> Self:
        """Make the result again from its plain values, or refuse values that no result has."""
        found, given = cls(*kept), kept.settings
        names = {site.name for site in kept.known[1:]}
        if not kept.known or (given.method == "known-bound" and not names <= (given.bound or {}).keys()):
            raise BadInput("the stored result does not say what is known of its sites; store it again.")
        settings = found._settings(given.method, given.variance, given.quantile, given.caution)
        return replace(found, settings=replace(settings, chains=given.chains, bound=given.bound, slack=given.slack))

    def _settings(
        self, method: str, variance: str, quantile: str, caution: float, level: float | None = None
    ) -> IntegrationSettings:
        """Check how the sites are combined, at a level or at that they were asked for."""
        walk = self.settings.chains
        how = ("staged", 10) if walk is None else ("chains", walk.number)
        return check_settings(
            method, self.level if level is None else level, self.tau, variance, quantile, caution, *how
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "hints": ()}


@dataclass(frozen=True, repr=False)
class Sensitivity(StoredResult):
    """Intervals by assumed bound; print it for a table."""

    kind = "sensitivity"

    result: IntegratedResult = field(repr=False)
    bounds: tuple[float, ...] | None
    curve: SensitivityCurve = field(repr=False, compare=False)

    @classmethod
    def of(cls, result: IntegratedResult, bounds: tuple[float, ...] | None) -> Self:
        """Compute the curve of a result."""
        return cls(result, bounds, curve_of(result, bounds))

    @property
    def private(self) -> bool:
        """Tell whether the run protects its records."""
        return self.result.private

    @property
    def bound(self) -> Floats:
        """Return the assumed bounds."""
        return self.curve.bound

    @property
    def low(self) -> Floats:
        """Return the lower edges."""
        return self.curve.low

    @property
    def high(self) -> Floats:
        """Return the upper edges."""
        return self.curve.high

    @property
    def length_ratio(self) -> Floats:
        """Return the lengths over that of the target's own interval."""
        return self.curve.length_ratio

    @property
    def columns(self) -> Mapping[str, Floats]:
        """Return the columns bound, low, high and length_ratio, ready for a data frame."""
        return {"bound": self.bound, "low": self.low, "high": self.high, "length_ratio": self.length_ratio}

    @property
    def refuted(self) -> float:
        """Return the bound below which the data contradict the assumption."""
        return self.curve.refuted

    @property
    def lost(self) -> float:
        """Return the bound from which on the gain is less than 5 %."""
        return self.curve.lost

    @property
    def note(self) -> str:
        """Return the sentence that belongs under every curve."""
        return BEFOREHAND

    def interval_at(self, bound: Any) -> Interval:
        """Return the interval under one bound."""
        found = self.curve.at(width_of(bound, "a bound", self.result.unit))
        return Interval(self.result.rounded(found.low), self.result.rounded(found.high))

    def table(self, rows: int = 11) -> str:
        """Return the curve as text: a few bounds, their intervals and lengths."""
        return curve_table(self.result, self.curve, rows)

    def plot(self, path: str | Path) -> Path:
        """Draw the curve to a file; bounds refuted by the data are grey."""
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        from sottovoce.server.integration.plot import draw_sensitivity

        return draw_sensitivity(self.result, self.curve)

    @property
    def headline(self) -> str:
        """Return the curve in one line."""
        return summary.curve_headline(self.result, self.curve)

    def describe(self) -> Description:
        """Return what the curve says of itself."""
        return summary.describe_curve(self.result, self.curve)

    def to_state(self) -> KeptSensitivity:
        """Return the plain state that the curve is computed from."""
        return KeptSensitivity(self.result.to_state(), self.bounds)

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the curve again."""
        kept = codec.from_plain(plain, KeptSensitivity)
        return cls.of(IntegratedResult.from_kept(kept.result), kept.bounds)

    def __str__(self) -> str:
        return self.table()
