"""A site that gives numbers only: an estimate with a standard error, or with an interval, and nothing to ask."""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields
from typing import Any

from sottovoce.core.checks import number
from sottovoce.core.digits import number_text, span
from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate, t_value
from sottovoce.server.description import Description, percent
from sottovoce.server.markup import in_notebook

UNKNOWN_DF = 30.0  # of a standard error that came without its degrees of freedom or the number of its records
SMALLEST, LARGEST = 1e-150, 1e150  # a standard error whose square is still a number


@dataclass(frozen=True, repr=False)
class SiteSummary:
    """What a site published of its quantile; it takes part without answering anything.

    Parameters
    ----------
    estimate
        The site's quantile: a number; of durations in seconds, of dates in days since 1970-01-01, of dates with a time
        in seconds since then.
    se
        Its standard error, in the same unit (of dates: days). Give this or `interval`.
    df
        How well the standard error is known, as degrees of freedom; n - 1 if `n` is given, else 30.
    n
        The number of records behind the estimate.
    interval
        Low and high end of a published interval that contains the estimate. Its standard error is the longer of the
        two halves over z: so the symmetric interval that is used contains the published one, and covers wherever that
        does, whatever its shape. (Half the length over z, and the error on a log scale, are shorter; where they were
        tried they covered as little as .937 and .912: decision 0025.)
    interval_level
        Its level of confidence.
    trusted
        False for a standard error that is unknown or doubtful: the estimate alone is used.

    Examples
    --------
    >>> SiteSummary(5.1, 0.2, n=400).measured()
    SiteEstimate(estimate=5.1, std_error=0.2, df=399.0)
    >>> told = SiteSummary(5.0, interval=(4.804, 5.392)).measured()
    >>> round(told.std_error, 3), told.df
    (0.2, 30.0)
    >>> SiteSummary(5.3, trusted=False).measured().std_error
    inf
    """

    estimate: float
    se: float | None = None
    df: float | None = field(default=None, kw_only=True)
    n: int | None = field(default=None, kw_only=True)
    interval: tuple[float, float] | None = field(default=None, kw_only=True)
    interval_level: float = field(default=0.95, kw_only=True)
    trusted: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        """Turn everything into plain numbers, or refuse it."""
        kept: dict[str, object] = {"estimate": _finite(self.estimate, "the estimate of a summary")}
        if not isinstance(self.trusted, bool):
            raise BadInput(f"trusted of a summary must be true or false, not {self.trusted!r}; correct it.")
        kept["interval_level"] = _level(self.interval_level)
        if self.se is not None:
            kept["se"] = number(self.se, "the standard error of a summary")
        if self.df is not None:
            kept["df"] = _df(self.df)
        if self.n is not None:
            kept["n"] = _whole(self.n)
        if self.interval is not None:
            kept["interval"] = _ends(self.interval)
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        """Refuse numbers that do not fit together."""
        if self.se is not None and self.interval is not None:
            raise BadInput("a summary has both se and interval, which may contradict each other; give one of them.")
        if self.interval is not None:
            low, high = self.interval
            if not low <= self.estimate <= high:
                raise BadInput(
                    f"the interval of a summary, {low:g} to {high:g}, does not contain its estimate {self.estimate:g}; "
                    "check both."
                )
        error = self._error
        if error is None:
            if self.trusted:
                raise BadInput("a summary has neither se nor interval; give one, or trusted=False to use its estimate.")
        elif not SMALLEST < error < LARGEST:
            raise BadInput(f"the standard error of a summary must be positive and finite, not {error:g}; correct it.")
        elif self.estimate + error == self.estimate:
            raise BadInput(
                f"the standard error {error:g} of a summary vanishes beside its estimate {self.estimate:g}; check both."
            )

    @property
    def _error(self) -> float | None:
        """Return the standard error that was given, or that of the longer half of the interval."""
        if self.interval is None:
            return self.se
        low, high = self.interval
        # whoever says how well the error was known made the interval by Student's law; nobody knows of others
        stated = self.df if self.df is not None else math.inf if self.n is None else float(self.n - 1)
        return max(self.estimate - low, high - self.estimate) / t_value(self.interval_level, stated)

    def measured(self) -> SiteEstimate:
        """Return the estimate with its standard error, infinite where that is not to be trusted."""
        known = self.df if self.df is not None else UNKNOWN_DF if self.n is None else float(self.n - 1)
        error = self._error if self.trusted else None
        return SiteEstimate(self.estimate, math.inf if error is None else error, known)

    @property
    def headline(self) -> str:
        """Return the summary in one line."""
        low, high = self.measured().interval(self.interval_level)
        width = span(low, self.estimate, high)
        ends = f" [{number_text(low, width)}, {number_text(high, width)}] ({percent(self.interval_level)})"
        told = ends if self.trusted else ", without an error to be trusted"
        return f"summary: {number_text(self.estimate, width)}{told}{'' if self.n is None else f', {self.n:,} records'}"

    def __repr__(self) -> str:
        return f"<{self.headline}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        given = [(name, f"{value}") for name in NAMES if (value := getattr(self, name)) is not None]
        return in_notebook(self.headline, Description("Summary of a site", given))


NAMES = tuple(each.name for each in fields(SiteSummary))


def summary_from(value: Any, where: str) -> SiteSummary:
    """Read a summary, or a mapping with its names; ``where`` says in an error whose it is.

    >>> summary_from({"estimate": 5.1, "interval": [4.7, 5.5], "n": 200}, "source 'north'").n
    200
    """
    if isinstance(value, SiteSummary):
        return value
    if not isinstance(value, Mapping):
        raise BadInput(
            f"{where} is a {type(value).__name__}; give a SiteSummary, or a mapping with 'estimate' and 'se'."
        )
    unknown = [name for name in value if name not in NAMES]
    if unknown:
        raise BadInput(f"{where} has {unknown[0]!r}, which a summary does not know; use {', '.join(NAMES)}.")
    if "estimate" not in value:
        raise BadInput(f"{where} has no 'estimate'; give one, with 'se' or 'interval'.")
    try:
        return SiteSummary(**value)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None


def _finite(value: Any, where: str) -> float:
    """Return a finite number or refuse."""
    result = number(value, where)
    if math.isinf(result):
        raise BadInput(f"{where} must be finite, not {value!r}; correct it.")
    return result


def _level(value: Any) -> float:
    """Return the level of a published interval."""
    result = number(value, "interval_level of a summary")
    if not 0 < result < 1:
        raise BadInput(
            f"interval_level of a summary must lie strictly between 0 and 1, not {value!r}; give 0.95 for 95 %."
        )
    return result


def _df(value: Any) -> float:
    """Return degrees of freedom, which may be endless."""
    result = number(value, "df of a summary")
    if result < 1:
        raise BadInput(f"df of a summary must be at least 1, not {value!r}; use trusted=False for a doubtful se.")
    return result


def _whole(value: Any) -> int:
    """Return a number of records."""
    result = number(value, "n of a summary")
    if not 2 <= result <= 2**53 or result != int(result):
        raise BadInput(
            f"n of a summary must be a whole number of at least 2, not {value!r}, and at most 2^53; correct it."
        )
    return int(result)


def _ends(value: Any) -> tuple[float, float]:
    """Return the two ends of an interval."""
    try:
        low, high = [] if isinstance(value, str | bytes | Mapping | Set) else value
    except (TypeError, ValueError):
        raise BadInput(
            f"the interval of a summary must be its low and its high end, not {value!r}; give two numbers."
        ) from None
    low, high = (
        _finite(low, "the low end of a summary's interval"),
        _finite(high, "the high end of a summary's interval"),
    )
    if low >= high:
        raise BadInput(f"the interval of a summary runs from {low:g} to {high:g}; give the smaller end first.")
    return low, high
