"""Limits of a weighted mean of shares, guaranteed for every number of records and however the shares differ.

Site j counts x of n, a binomial with share p_j, and sends it with or without two-sided geometric noise; wanted is theta
= sum w_j p_j. Where every record weighs the same and there is no noise, the total is stochastically no wider than a
binomial (Hoeffding 1956, doi:10.1214/aoms/1177728178, theorem 5), so that the limits of Clopper and Pearson hold for
it; only at a total of one the lower limit is tail / n instead, by the union bound. Elsewhere the limits invert
Chernoff's bound: for every l > 0,

    P(Z >= z) <= exp(-l z) prod_j (1 + p_j (exp(l a_j) - 1))^n_j M_j(l a_j),    a_j = w_j / n_j,

with M_j the moment generating function of the noise. It is taken at the worst shares with mean theta: the logarithm is
concave in them, and Lagrange's condition gives p_j = mu / a_j - 1 / (exp(l a_j) - 1), held within 0 and 1. For given l,
theta and the bound rise together with mu, so one search gives the largest theta that is refuted; another finds the best
l, of which any would do.

The price of the guarantee at level 0.95: 2.7 standard errors on each side and more, where 2 would do if the normal
distribution held. Measured over 36 sites of 40 to 400 records: 1.6 times the length, and a coverage of 0.998.
"""

import math
from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.conformal import counts as of_counts

LEAST_LEVEL = 0.5  # the binomial comparison needs a tail of at most a quarter
LARGEST = 300.0  # of l a, whose exponential must be a number
HALVINGS, GRID, ZOOMS = 45, 24, 3  # of the search for mu; of the search for l, of which any gives a valid limit


def limits(
    counts: Sequence[int], sizes: Sequence[int], weights: Sequence[float], level: float, ratios: Sequence[float]
) -> tuple[float, float]:
    """Return limits of the weighted mean of the shares.

    Parameters
    ----------
    counts, sizes
        How many each site counted, with its noise, and out of how many.
    weights
        What each site counts in the mean; they sum to one.
    level
        The confidence level.
    ratios
        How much less likely each further step of a site's noise is; 0 without noise.

    Examples
    --------
    >>> low, high = limits([90, 45], [100, 50], [2 / 3, 1 / 3], 0.95, [0, 0])  # every record weighs the same
    >>> round(low, 3), round(high, 3)
    (0.84, 0.943)
    >>> low, high = limits([90, 45], [100, 50], [1 / 2, 1 / 2], 0.95, [0, 0])
    >>> round(low, 3), round(high, 3)
    (0.811, 0.961)
    """
    used = [place for place, weight in enumerate(weights) if weight > 0]
    x, n, w, r = (np.array([part[place] for place in used], dtype=float) for part in (counts, sizes, weights, ratios))
    if len(used) == 1:
        return of_counts.limits(int(x[0]), int(n[0]), level, float(r[0]))
    tail, a = (1 - level) / 2, w / n
    if level >= LEAST_LEVEL and not r.any() and np.ptp(a) < 1e-9 * a.max():
        low, high = of_counts.exact_limits(int(x.sum()), int(n.sum()), level)
        low = tail / float(n.sum()) if x.sum() == 1 else low
        return low, 1 - tail / float(n.sum()) if x.sum() == n.sum() - 1 else high
    mean = min(max(float(a @ x), 0.0), 1.0)
    return _refuted(mean, a, n, r, tail), 1 - _refuted(1 - mean, a, n, r, tail)


def _refuted(mean: float, a: Floats, n: Floats, ratios: Floats, tail: float) -> float:
    """Return the largest theta that so large a mean refutes, by the best of many l."""
    noisy = ratios > 0
    ends = np.where(noisy, -np.log(np.where(noisy, ratios, 0.5)), LARGEST) / a
    high = math.log(min(float(ends.min()), LARGEST / float(a.max())) * (1 - 1e-9))
    low, best = high - math.log(1e8), 0.0
    for _ in range(ZOOMS):
        places = np.linspace(low, high, GRID)
        found = _refuted_by(np.exp(places), mean, a, n, ratios, tail)
        top = int(found.argmax())
        best = max(best, float(found[top]))
        low, high = float(places[max(top - 1, 0)]), float(places[min(top + 1, GRID - 1)])
    return best


def _refuted_by(exponent: Floats, mean: float, a: Floats, n: Floats, ratios: Floats, tail: float) -> Floats:
    """Return the largest theta that the bound at each l refutes."""
    tilt = exponent[:, None] * a
    odds = 1 / np.expm1(tilt)
    noise = np.log1p(-ratios) * 2 - np.log1p(-ratios * np.exp(tilt)) - np.log1p(-ratios * np.exp(-tilt))
    room = math.log(tail) + exponent * mean - noise.sum(axis=1)
    under, over = np.log((a * odds).min(axis=1)), np.log((a * (1 + odds)).max(axis=1))
    for _ in range(HALVINGS):
        middle = (under + over) / 2
        shares = np.clip(np.exp(middle)[:, None] / a - odds, 0.0, 1.0)
        fits = np.log1p(shares / odds) @ n <= room
        under, over = np.where(fits, middle, under), np.where(fits, over, middle)
    shares = np.clip(np.exp(under)[:, None] / a - odds, 0.0, 1.0)
    return np.where(room > 0, shares @ (a * n), 0.0)
