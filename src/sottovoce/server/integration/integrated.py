"""What a target and its sources know together, as numbers: estimate, interval, weights, validity, cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sottovoce.core.digits import multiple, span
from sottovoce.core.unit import Unit
from sottovoce.inference.integration import weighted
from sottovoce.server.description import Interval, promise
from sottovoce.server.integration.combine import Combination, KnownSite, LostSite, combine, moderate, refuted
from sottovoce.server.integration.plan import IntegrationSettings

RESTS = {
    "known-bound": "Valid if every source differs from the target by at most its bound, chosen before data were seen.",
    "conservative": "Covers at least 94.5 % where 95 % is asked, 98.8 % where 99 %, whatever the sources' shifts.",
}


@dataclass(frozen=True, repr=False)
class Integrated:
    """What the sites said, and what follows from it by the method that was asked for."""

    settings: IntegrationSettings = field(repr=False)
    known: tuple[KnownSite, ...]
    lost: tuple[LostSite, ...]
    idle: tuple[str, ...]
    unit: Unit = field(repr=False)
    step: float = field(repr=False)
    resolution: float
    private: bool
    seeded: bool = field(repr=False)
    per_person: bool = field(repr=False)
    measured_warnings: tuple[str, ...] = field(repr=False)
    column: str = field(default="", repr=False)
    # for whoever holds the records, and kept out of everything that is passed on
    hints: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def tau(self) -> float:
        """Return the level of the quantile."""
        return self.settings.tau

    @property
    def level(self) -> float:
        """Return the confidence level."""
        return self.settings.level

    @property
    def method(self) -> str:
        """Return how the sites were combined."""
        return self.settings.method

    @property
    def target(self) -> KnownSite:
        """Return what the target knows by itself."""
        return self.known[0]

    @property
    def sources(self) -> tuple[KnownSite, ...]:
        """Return the sources that help; those left out are named in the warnings."""
        return tuple(moderate(self.target, site) for site in self.known[1:] if site.usable)

    @property
    def absent(self) -> tuple[str, ...]:
        """Return the sources of which nothing is known: their search was lost, or they could not count."""
        return (*(site.name for site in self.lost), *self.idle)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the sources that do not count: too small, lost, or with an error that is not known well enough."""
        return (*(site.name for site in self.known[1:] if not site.usable), *self.absent)

    @property
    def estimate(self) -> float:
        """Return the estimate, inside the interval, rounded to the public resolution if there is one."""
        return self.rounded(self.combination.estimate)

    @property
    def interval(self) -> Interval:
        """Return the interval at the level asked for."""
        return Interval(self.rounded(self.combination.low), self.rounded(self.combination.high))

    @property
    def value(self) -> Any:
        """Return the estimate as what it stands for: timedelta64, datetime64 (in UTC), or the number."""
        return self.unit.value(self.estimate)

    @property
    def value_interval(self) -> tuple[Any, Any]:
        """Return the ends of the interval like `value`; NaT where a time has no end."""
        low, high = self.interval
        return self.unit.value(low), self.unit.value(high)

    @property
    def target_interval(self) -> Interval:
        """Return the target's own interval, without any help."""
        return Interval(self.rounded(self.target.low), self.rounded(self.target.high))

    @property
    def length_ratio(self) -> float:
        """Return the length of the interval over that of the target's own."""
        found, own = self.combination, self.target
        if (found.low, found.high) == (own.low, own.high):
            return 1.0
        return (found.high - found.low) / (own.high - own.low) if 0 < own.high - own.low < math.inf else math.nan

    @property
    def weights(self) -> Mapping[str, float]:
        """Return how much each site counts in the estimate; they sum to one."""
        used = dict(zip((site.name for site in (self.target, *self.sources)), self.combination.weights, strict=True))
        return {name: used.get(name, 0.0) for name in (*(site.name for site in self.known), *self.absent)}

    @property
    def uniformly_valid(self) -> bool:
        """Tell whether the interval covers whatever the sources' shifts; "known-bound" only does if its bound holds."""
        return self.method in ("valid", "conservative")

    @property
    def reason(self) -> str | None:
        """Return why the interval is not uniformly valid, or on what its validity rests."""
        if self.method == "target" and self.settings.chains is None:
            return "Not helped by any source; by the normal quantile it is short where the target's error is uncertain."
        return RESTS.get(self.method) or weighted.REASONS.get(self.method)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before the interval is used."""
        found = list(self.measured_warnings)
        found += [
            f"source {site.name!r} is left out: its own error is not known well enough"
            for site in self.known[1:]
            if not site.usable
        ]
        if self.method in weighted.REASONS and self.reason is not None:
            found.append(self.reason)
        return (*found, *refuted(self.settings, self.target, self.sources))

    @property
    def epsilon(self) -> Mapping[str, float]:
        """Return the realised epsilon of each site that has records."""
        known = {site.name: site.epsilon for site in self.known if site.epsilon is not None}
        return known | {site.name: site.epsilon for site in self.lost}

    @property
    def reports(self) -> int:
        """Return how many records answered."""
        return sum(site.reports for site in self.known) + sum(site.reports for site in self.lost)

    @property
    def rounds(self) -> int:
        """Return the rounds of the site that took most: sites are asked side by side."""
        return max(site.rounds for site in self.known)

    @property
    def estimand(self) -> str:
        """Return in words what is estimated."""
        unit = "persons" if self.per_person else "records"
        whose = self.target.name if self.target.name != "target" else "the target"
        what = f"the value of {self.column}" if self.column else "the value"
        return f"{what} below which {self.tau:.6g} of the {unit} of {whose} lie; sources help, and do not change it"

    @property
    def promise(self) -> str:
        """Return the privacy promise of this run, in words."""
        if not self.epsilon:
            return "No record was read: every site gave a summary."
        summaries = [site.name for site in self.known if site.kind == "summary"]
        text = promise(self.epsilon, self.private, self.per_person, self.seeded)
        return (
            f"{text} Nothing is said of {', '.join(summaries)}: a summary, however it was made." if summaries else text
        )

    def format(self, value: float) -> str:
        """Return a value in the unit of the records, with as many digits as the width of the interval deserves."""
        return self.unit.format(value, self._width, self.resolution)

    @cached_property
    def _width(self) -> float:
        """Return the width that decides how many digits are shown."""
        low, high = self.interval
        return span(low, self.estimate, high)

    def rounded(self, value: float) -> float:
        """Round to the public resolution."""
        step = self.resolution
        return multiple(round(value / step), step) if step > 0 and math.isfinite(value / step) else value

    @cached_property
    def combination(self) -> Combination:
        """Combine what the sites know."""
        return combine(self.settings, self.target, self.sources)
