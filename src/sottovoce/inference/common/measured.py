"""One site's quantile as three numbers: estimate, standard error, degrees of freedom; and several of them pooled."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import stdtr, stdtrit

from sottovoce.inference.common import normal


class SiteEstimate(NamedTuple):
    """An estimate with its standard error; ``df`` says how well the error itself is known.

    >>> low, high = SiteEstimate(10.0, 2.0, 9.0).interval(0.95)
    >>> round(low, 3), round(high, 3)
    (5.476, 14.524)
    """

    estimate: float
    std_error: float
    df: float = math.inf

    @property
    def variance(self) -> float:
        """Return the squared standard error."""
        return self.std_error**2

    def interval(self, level: float) -> tuple[float, float]:
        """Return Student's interval."""
        half = t_value(level, self.df) * self.std_error
        return self.estimate - half, self.estimate + half


def t_value(level: float, df: float) -> float:
    """Return the two-sided quantile of Student's distribution, the normal one for infinitely many degrees of freedom.

    >>> round(t_value(0.95, 9), 4), round(t_value(0.95, math.inf), 4)
    (2.2622, 1.96)
    """
    return normal.two_sided(level) if df > 1e7 else float(stdtrit(df, (1 + level) / 2))


def p_value(t: float, df: float, alternative: str) -> float:
    """Return the p-value of a statistic with Student's distribution that grows with the estimate.

    >>> round(p_value(t_value(0.95, 9), 9, "two-sided"), 6)
    0.05
    """
    if df > 1e7:
        return normal.p_value(t, alternative)
    if alternative == "two-sided":
        return min(1.0, 2 * float(stdtr(df, -abs(t))))
    return float(stdtr(df, -t if alternative == "greater" else t))


def welch(weights: Sequence[float], sites: Sequence[SiteEstimate]) -> float:
    """Return the degrees of freedom of a weighted sum of estimates (Welch and Satterthwaite).

    >>> round(welch([0.5, 0.5], [SiteEstimate(0.0, 1.0, 10.0), SiteEstimate(0.0, 1.0, 10.0)]), 6)
    20.0
    """
    parts = [weight**2 * site.variance for weight, site in zip(weights, sites, strict=True)]
    total = sum(parts)
    inverse_df = sum((part / total) ** 2 / site.df for part, site in zip(parts, sites, strict=True))
    return 1 / inverse_df if inverse_df > 0 else math.inf


def pool(sites: Sequence[SiteEstimate]) -> SiteEstimate:
    """Weigh estimates by their precision, as if all sites had one quantile.

    >>> pool([SiteEstimate(0.0, 1.0), SiteEstimate(3.0, 1.0)]).estimate
    1.5
    """
    precision = [1 / site.variance for site in sites]
    total = sum(precision)
    weights = [each / total for each in precision]
    estimate = sum(weight * site.estimate for weight, site in zip(weights, sites, strict=True))
    return SiteEstimate(estimate, 1 / math.sqrt(total), welch(weights, sites))
