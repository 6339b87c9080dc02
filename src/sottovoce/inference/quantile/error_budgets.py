"""A confidence set for a quantile that holds for every distribution, in finite samples, over points chosen as one goes.

Reports at a point ``x`` are independent, each one with probability ``s(x) = (1 - R) / 2 + R F(x)``. Write ``s`` for
its value where ``F = tau``. If the quantile is ``theta``, a report at ``x >= theta`` is one with probability at least
``s``, and at ``x < theta`` with probability less than ``s``; nothing else is used. The points asked so far cut the line
into classes of ``theta``; each holds a budget of error, at first ``alpha``, and is rejected when it reaches one.

A query is labelled before it is answered: "low" acts on the classes ``theta <= x``, for which few ones are evidence,
"high" on the classes ``theta > x``, for which few zeros are. With ``n`` reports, and a horizon of ``rem`` still planned
on that side, the budget moves as the conditional error of the exact binomial test of all ``rem``: a budget between the
levels of two critical values is divided between them, so that it moves without loss and grows with ``alpha``.

Why it holds: let ``theta`` be the quantile. Given the past, the successes of a query are at least those of a binomial
count with success ``s``, under which the mean of the new budget is the old one; the new budget falls in the successes.
So the budget of the true class is a nonnegative supermartingale from ``alpha``, and reaches one with probability at
most ``alpha`` (Ville 1939), whatever was asked where, in what portions, and whenever one stops. Only one class is the
true one, so that both sides have the whole ``alpha``.

A part ``pot`` of every budget may be bet on a query alone, as if it were the last: it rejects far classes early.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaincc, ndtri

from sottovoce.core.arrays import Floats

DONE = 1 - 1e-12  # a budget from here on counts as one
LEAST = 1e-300
ALPHAS = 33  # a p-value is found on so many levels in equal ratios, then between two of them, three times: to .1 %
COARSE = 8  # first every so many of them, as most are far from it
SMALLEST = 1e-15  # the smallest p-value that is told


class Evidence(NamedTuple):
    """An answered query: its point and label (-1 low, 1 high), reports, ones below the point, horizon and pot."""

    point: float
    side: int
    reports: int
    below: int
    horizon: int
    pot: float = 0.0


class Classes(NamedTuple):
    """The asked points, ascending, and the budgets of the classes between them, (alphas, points + 1)."""

    edges: Floats
    budgets: Floats


def binomial_below(k: Floats, n: int, p: float) -> Floats:
    """Return the probability of at most ``k`` successes of ``n``; zero below zero, one from ``n`` on."""
    inside = (k >= 0) & (k < n)
    result = (k >= n).astype(np.float64)
    result[inside] = betaincc(k[inside] + 1, n - k[inside], p)  # scipy's bdtr is wrong at the centre from 1e6 on
    return result


def critical_count(level: Floats, n: int, p: float) -> Floats:
    """Return the largest ``k`` whose binomial probability of at most ``k`` does not exceed a level; -1 if none."""
    return _critical(level, n, p)[0]


def _critical(level: Floats, n: int, p: float) -> tuple[Floats, Floats, Floats]:
    """Return the critical count of each level, and the probabilities of at most so many, and of at most one more."""
    spread = math.sqrt(n * p * (1 - p))
    z = ndtri(np.clip(level, LEAST, 1 - 1e-15))
    low = np.clip(np.floor(n * p + spread * z + (1 - 2 * p) * (z * z - 1) / 6 - 0.5), -1, n)
    under = binomial_below(low, n, p)
    high, over = np.where(under > level, low, low + 1), under.copy()
    # gallop outwards from the normal guess, where it is wrong, then bisect: exact whatever the guess was
    step, open_ = 1.0, np.flatnonzero(under > level)
    while len(open_):
        low[open_] = np.maximum(low[open_] - step, -1)
        under[open_] = binomial_below(low[open_], n, p)
        wrong = under[open_] > level[open_]
        high[open_[wrong]], over[open_[wrong]] = low[open_[wrong]], under[open_[wrong]]
        step, open_ = 2 * step, open_[wrong]
    step, open_ = 1.0, np.flatnonzero(high > low)
    open_ = open_[over[open_] <= level[open_]]
    while len(open_):
        over[open_] = binomial_below(high[open_], n, p)
        open_ = open_[(over[open_] <= level[open_]) & (high[open_] < n)]
        low[open_], under[open_] = high[open_], over[open_]
        high[open_], step = np.minimum(high[open_] + step, n), 2 * step
    while len(open_ := np.flatnonzero(high - low > 1)):
        middle = np.floor((low[open_] + high[open_]) / 2)
        chance = binomial_below(middle, n, p)
        fits = chance <= level[open_]
        low[open_[fits]], under[open_[fits]] = middle[fits], chance[fits]
        high[open_[~fits]], over[open_[~fits]] = middle[~fits], chance[~fits]
    sure = level >= 1
    return np.where(sure, n, low), np.where(sure, 1.0, under), np.where(sure, 1.0, over)


def moved(budgets: Floats, count: int, successes: int, horizon: int, p: float) -> Floats:
    """Return budgets after a query of which few successes are evidence."""
    result = budgets.copy()
    live = budgets < DONE
    if count == 0 or not np.any(live):
        return result
    levels, where = np.unique(budgets[live], return_inverse=True)
    k, under, over = _critical(levels, horizon, p)
    part = np.clip((levels - under) / np.maximum(over - under, LEAST), 0.0, 1.0)
    left = horizon - count
    new = (1 - part) * binomial_below(k - successes, left, p) + part * binomial_below(k + 1 - successes, left, p)
    result[live] = np.where(new >= DONE, 1.0, new)[where]
    return result


def heard(classes: Classes, evidence: Evidence, s: float) -> Classes:
    """Return the classes after one more query; a new point divides its class, and both parts keep its budget."""
    edges, budgets = classes
    place = int(np.searchsorted(edges, evidence.point))
    if place == len(edges) or edges[place] != evidence.point:
        edges = np.concatenate((edges[:place], [evidence.point], edges[place:]))
        budgets = np.concatenate((budgets[:, : place + 1], budgets[:, place:]), axis=1)
    part = slice(None, place + 1) if evidence.side < 0 else slice(place + 1, None)
    successes, p = (evidence.below, s) if evidence.side < 0 else (evidence.reports - evidence.below, 1 - s)
    budgets = budgets.copy()
    budgets[:, part] = _bet(budgets[:, part], evidence, successes, p)
    return Classes(edges, budgets)


def _bet(budgets: Floats, evidence: Evidence, successes: int, p: float) -> Floats:
    """Bet a pot on this query alone, and the rest on the whole horizon."""
    count, horizon, pot = evidence.reports, max(evidence.horizon, evidence.reports), evidence.pot
    if pot == 0 or count >= horizon:
        return moved(budgets, count, successes, horizon, p)
    both = moved(budgets * (1 - pot), count, successes, horizon, p) + moved(budgets * pot, count, successes, count, p)
    return np.where((budgets >= DONE) | (both >= DONE), 1.0, both)


def opened(alphas: Floats) -> Classes:
    """Return the one class before anything was asked, with a row of budgets for each level of error."""
    return Classes(np.empty(0), np.asarray(alphas, dtype=np.float64)[:, None].copy())


def folded(evidence: Sequence[Evidence], s: float, alphas: Floats) -> Classes:
    """Return the classes after all queries, for several levels of error at once."""
    classes = opened(alphas)
    for query in evidence:
        classes = heard(classes, query, s)
    return classes


def hull(classes: Classes, row: int = 0) -> tuple[float, float]:
    """Return the interval (low, high] that holds every class not rejected; an end without a certificate is infinite.

    >>> hull(folded([Evidence(1.0, -1, 40, 2, 40), Evidence(3.0, 1, 40, 38, 40)], 0.5, np.array([0.05])))
    (1.0, 3.0)
    """
    edges, alive = classes.edges, np.flatnonzero(classes.budgets[row] < DONE)
    if len(alive) == 0:  # the true class is lost, which happens with probability alpha at most: say nothing
        return -math.inf, math.inf
    first, last = int(alive[0]), int(alive[-1])
    return (float(edges[first - 1]) if first > 0 else -math.inf, float(edges[last]) if last < len(edges) else math.inf)


def interval(evidence: Sequence[Evidence], s: float, alpha: float) -> tuple[float, float]:
    """Return the certified interval at one level of error; where nothing is left, that of the largest level with any.

    So intervals are nested in the level, and the smaller level holds all the more.
    """
    return _interval(tuple(evidence), s, alpha)


@functools.lru_cache(maxsize=64)  # a result is asked for it by its summary, its warnings and its pictures
def _interval(evidence: tuple[Evidence, ...], s: float, alpha: float) -> tuple[float, float]:
    classes = folded(evidence, s, np.array([alpha]))
    if np.any(classes.budgets < DONE):
        return hull(classes)
    low, high = SMALLEST, alpha
    for _ in range(50):
        middle = math.sqrt(low * high)
        left = np.any(folded(evidence, s, np.array([middle])).budgets < DONE)
        low, high = (middle, high) if left else (low, middle)
    return hull(folded(evidence, s, np.array([low])))


def p_value(evidence: Sequence[Evidence], s: float, value: float, side: int) -> float:
    """Return the p-value of "the quantile is at most the value" (side -1), or of "it is at least the value" (1).

    The first is the largest level at which some class up to the value is not rejected, so that tests and intervals
    agree at every level.
    """
    start, stop = SMALLEST, 1 - 1e-9
    for _ in range(3):
        alphas = np.geomspace(start, stop, ALPHAS)
        last = _last_kept(evidence, s, alphas[::COARSE], value, side) * COARSE
        if last < 0:  # only the first time, as the ends are kept to the bit
            return SMALLEST
        if last == ALPHAS - 1:
            return 1.0
        last += 1 + _last_kept(evidence, s, alphas[last + 1 : last + COARSE], value, side)
        start, stop = alphas[last], alphas[last + 1]
    return float(stop)


def _last_kept(evidence: Sequence[Evidence], s: float, alphas: Floats, value: float, side: int) -> int:
    """Return the place of the last of ascending levels that keeps a class on a side of the value; -1 if none does."""
    edges, budgets = folded(evidence, s, alphas)
    place = int(np.searchsorted(edges, value))
    part = budgets[:, : place + 1] if side < 0 else budgets[:, place:]
    kept = np.flatnonzero(np.any(part < DONE, axis=1))
    return int(kept[-1]) if len(kept) else -1
