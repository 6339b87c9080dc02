"""One target and its sources combined by weights: a cautious interval, and the data-integration paper's for comparison.

*Cautious* is after Algorithm B.2 of the paper, with three changes that its coverage needs: one pooled source (the
weights of many cautious sources add up), 3 instead of 1.96, and Student's quantile with the target's degrees of
freedom. With `b = |y_S - y_0| + CAUTION sqrt(v_0 + v_S)` the weights are as `1/v_0` to `1/(v_S + b^2)`. The variance is
the printed one, `w_0 v_0 + w_S v_S`, which is too large for fixed weights: that margin pays for the bias. It would make
the interval longer than the target's own if `v_S > v_0`; then the sources are left out. At 95 %, with normal estimates
and known variances, it covers at least 94.5 % whatever the shift and the ratio (exact integration), is 3.5 % shorter
than the target's own with precise sources and no shift, and never longer.

*The paper's* weights (3.5): `w_k` proportional to `1 / (v_k + lambda b_k^2)` with `b_k = y_k - y_0`. `adaptive` has
`lambda` = 1, `decay` `5 log N / sqrt N` where `N` is the number of records of all sites, `ivw` 0. `conservative-paper`
has `lambda` = 1 and `|b_k| + C sqrt(v_0 + v_k)` in place of `b_k`. `target` gives the target all the weight. None of
these intervals is uniformly valid. The paper prints two variances: `sum w_k v_k` in its algorithms, which made its
tables, and `sum w_k^2 v_k` in its Theorem 4.2, which is right for fixed weights. Its quantile is the normal one;
Student's has the degrees of freedom of Welch and Satterthwaite, over the parts of whichever sum was chosen.
"""

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate, pool, t_value

# By exact integration (module docstring) 3 keeps 94.5 % at a level of 95 %; the paper's rule, with 1.96
# and each source by itself, covered 90.6 % in its own setting and 81.6 % with more sources.
CAUTION = 3.0

REASONS = MappingProxyType(
    {
        "adaptive": "Not uniformly valid: a 95 % interval covered 78 % where the sources were shifted by 2.8 of the "
        "target's standard errors, because shifts that look small are believed to be small.",
        "decay": "Not uniformly valid: a 95 % interval covered 30 % where the sources were shifted by 4.6 of the "
        "target's standard errors, because the penalty on shifts fades as records grow in number.",
        "conservative-paper": "Not uniformly valid: a 95 % interval covered 90.6 % in the paper's setting and 81.6 % "
        "with more sources, because the weights of many cautious sources add up.",
        "ivw": "Not uniformly valid: a 95 % interval covered 0 % where the sources were shifted, because shifts are "
        "ignored.",
        "target": "Not uniformly valid: a 95 % interval covered 92 % with the paper's ten chains and normal quantile, "
        "and 83 to 91 % where the density slopes at the quantile, because all chains are biased the same way.",
    }
)
METHODS = tuple(REASONS)
VARIANCES = ("printed", "theorem")
QUANTILES = ("z", "t")


class WeightedEstimate(NamedTuple):
    """A weighted estimate; ``weights`` add up to one, the target's first; ``std_error`` is the one of the interval."""

    estimate: float
    low: float
    high: float
    weights: tuple[float, ...]
    std_error: float
    df: float


def alone(target: SiteEstimate, sources: int, level: float) -> WeightedEstimate:
    """Return the target's own interval: every source weighs nothing.

    >>> alone(SiteEstimate(1.0, 2.0), 2, 0.95).weights
    (1.0, 0.0, 0.0)
    """
    low, high = target.interval(level)
    return WeightedEstimate(target.estimate, low, high, (1.0, *[0.0] * sources), target.std_error, target.df)


def around(
    target: SiteEstimate,
    sources: Sequence[SiteEstimate],
    weights: Sequence[float],
    error: float,
    df: float,
    level: float,
) -> WeightedEstimate:
    """Return Student's interval around a weighted estimate.

    >>> found = around(SiteEstimate(1.0, 2.0), [SiteEstimate(3.0, 2.0)], [0.5, 0.5], 1.0, 9.0, 0.95)
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (2.0, -0.262, 4.262)
    """
    # From the target's estimate, so that digits are kept wherever the sites lie.
    moves = [w * (site.estimate - target.estimate) for w, site in zip(weights[1:], sources, strict=True)]
    centre, half = target.estimate + sum(moves), t_value(level, df) * error
    return WeightedEstimate(centre, centre - half, centre + half, tuple(float(w) for w in weights), error, df)


def cautious(
    target: SiteEstimate, sources: Sequence[SiteEstimate], level: float, caution: float = CAUTION
) -> WeightedEstimate:
    """Combine a target and its sources cautiously.

    The shift is assumed larger than it looks by ``caution`` standard errors.

    >>> found = cautious(SiteEstimate(10.0, 1.0), [SiteEstimate(10.2, 0.2), SiteEstimate(10.0, 0.2)], 0.95)
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3)
    (10.009, 8.14, 11.878)
    >>> cautious(SiteEstimate(10.0, 1.0), [SiteEstimate(10.2, 1.5)], 0.95).weights
    (1.0, 0.0)
    """
    if not sources:
        return alone(target, 0, level)
    # Pooled from the target's estimate, so that digits are kept wherever the sites lie.
    pooled = pool([site._replace(estimate=site.estimate - target.estimate) for site in sources])
    if pooled.variance > target.variance:
        return alone(target, len(sources), level)
    shift = abs(pooled.estimate) + caution * math.sqrt(target.variance + pooled.variance)
    share = 1 / (1 + (pooled.variance + shift**2) / target.variance)
    weights = [1 - share, *(share * pooled.variance / site.variance for site in sources)]
    error = math.sqrt((1 - share) * target.variance + share * pooled.variance)
    return around(target, sources, weights, error, target.df, level)


def paper(
    method: str,
    target: SiteEstimate,
    sources: Sequence[SiteEstimate],
    level: float,
    *,
    records: float | None = None,
    variance: str = "printed",
    quantile: str = "z",
    caution: float = 1.96,
) -> WeightedEstimate:
    """Combine a target and its sources as the paper does.

    "decay" needs the number of records of all sites together. ``variance`` is "printed" (`sum w_k v_k`) or "theorem"
    (`sum w_k^2 v_k`), ``quantile`` "z", as in the paper, or "t", and ``caution`` the `C` of "conservative-paper".

    >>> target, sources = SiteEstimate(0.0, 1.0, 9.0), [SiteEstimate(1.0, 0.5, 19.0)]
    >>> [round(paper(name, target, sources, 0.95, records=40_000).weights[1], 3) for name in METHODS]
    [0.444, 0.66, 0.087, 0.8, 0.0]
    >>> [round(paper("ivw", target, sources, 0.95, variance=name).std_error, 4) for name in VARIANCES]
    [0.6325, 0.4472]
    """
    _known("method", method, METHODS)
    _known("variance", variance, VARIANCES)
    _known("quantile", quantile, QUANTILES)
    raw = [1.0, *(_share(method, target, site, records, caution) for site in sources)]
    total = sum(raw)
    weights = [each / total for each in raw]
    power = 1 if variance == "printed" else 2
    sites = [target, *sources]
    parts = [w**power * site.variance for w, site in zip(weights, sites, strict=True)]
    square = sum(parts)
    inverse_df = sum((part / square) ** 2 / site.df for part, site in zip(parts, sites, strict=True))
    df = 1 / inverse_df if quantile == "t" and inverse_df > 0 else math.inf
    return around(target, sources, weights, math.sqrt(square), df, level)


def _share(method: str, target: SiteEstimate, source: SiteEstimate, records: float | None, caution: float) -> float:
    """Return a source's weight when the target's is one."""
    if method == "target":
        return 0.0
    shift = (source.estimate - target.estimate) / target.std_error
    ratio = (source.std_error / target.std_error) ** 2
    if method == "conservative-paper":
        shift = abs(shift) + caution * math.sqrt(1 + ratio)
    return 1 / (ratio + _penalty(method, records) * shift**2)


def _penalty(method: str, records: float | None) -> float:
    """Return lambda."""
    if method == "ivw":
        return 0.0
    if method != "decay":
        return 1.0
    if records is None or not records >= 1:
        raise BadInput(f'records is {records}, but "decay" needs the number of records of all sites, at least 1.')
    return 5 * math.log(records) / math.sqrt(records)


def _known(what: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise BadInput(f"{what} {name!r} is not known; give one of {', '.join(map(repr, names))}.")
