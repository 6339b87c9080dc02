"""A confidence sequence for a quantile: it holds for every distribution, in finite samples, at every time at once.

As in `error_budgets`, the points asked so far cut the line into classes of the quantile ``theta``, and a report at
``x >= theta`` is one with probability at least ``s``, at ``x < theta`` with probability less. Here a class holds
wealth, at first one. Before a query is answered, every class that it concerns bets on it: a low query (few ones are
evidence for ``theta > x``) multiplies the wealth of a class up to ``x`` by ``1 + bet (s - bit)`` for each report, a
high query that of a class beyond ``x`` by ``1 + bet (bit - s)``. A new point divides its class; both parts inherit.

Why it holds: let ``theta`` be the quantile. Given the past, the mean of each factor is at most one for any bet of at
least zero that the past determines. So the wealth of the true class is a nonnegative supermartingale from one, and
ever reaches ``1 / alpha`` with probability at most ``alpha`` (Ville 1939): whatever was asked where, in what portions,
with what budgets, and whenever one looks, stops or goes on. Only one class is the true one, so both sides have the
whole ``alpha``; and the same wealth serves every ``alpha``, so that ``1 / (largest wealth so far)`` is a p-value.

The bet: a class that lacks ``d`` in the logarithm of its wealth reaches its aim over the next ``m`` reports with the
largest chance if it bets ``sqrt(2 d / (m s (1 - s)))``, whatever the drift is (in the normal limit); it never bets more
than a cap that comes with the query. A part of the wealth is kept out of every query, so that no query can ruin.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

LEAST = 0.5  # what a class is taken to lack, at least
KEPT, BET = 0.2, 0.5  # wealth that is kept out of a query, but of small wealth at least this part is bet
LARGEST = 700.0  # logarithm of evidence that is told
BOLDEST = 0.8  # of the largest bet that cannot ruin


class Wager(NamedTuple):
    """An answered query: its point and label (-1 low, 1 high), reports, ones below, and what the bets depend on.

    ``success`` is the probability of a one below a point at the level, ``horizon`` the number of reports over which
    the classes are to reach ``aim``, a logarithm of wealth, and ``cap`` the largest bet. ``rate`` is the response rate.
    """

    point: float
    side: int
    reports: int
    below: int
    success: float
    horizon: float
    aim: float
    cap: float
    rate: float


class Fortunes(NamedTuple):
    """The asked points, ascending, and of the classes between them the logarithms of the wealth, now and at most."""

    edges: Floats
    wealth: Floats
    peaks: Floats


OPENING = Fortunes(np.empty(0), np.zeros(1), np.zeros(1))


def stakes(wealth: Floats, aim: float) -> tuple[Floats, Floats]:
    """Return which part of its wealth each class bets, and by what factor, a logarithm, that part must grow."""
    part = np.maximum(1 - KEPT * np.exp(-np.minimum(wealth, 20.0)), BET)
    return part, np.maximum(aim - wealth - np.log(part), LEAST)


def wagered(fortunes: Fortunes, wager: Wager) -> Fortunes:
    """Return the classes after one more query."""
    edges, wealth, peaks = fortunes
    place = int(np.searchsorted(edges, wager.point))
    if place == len(edges) or edges[place] != wager.point:
        edges = np.concatenate((edges[:place], [wager.point], edges[place:]))
        wealth, peaks = (np.concatenate((each[: place + 1], each[place:])) for each in (wealth, peaks))
    part = slice(None, place + 1) if wager.side < 0 else slice(place + 1, None)
    successes, s = wager.below, wager.success
    if wager.side > 0:
        successes, s = wager.reports - successes, 1 - s
    wealth, peaks = wealth.copy(), peaks.copy()
    staked, lack = stakes(wealth[part], wager.aim)
    bets = np.minimum(np.sqrt(2 * lack / (wager.horizon * s * (1 - s))), min(wager.cap, BOLDEST / (1 - s)))
    gain = (wager.reports - successes) * np.log1p(bets * s) + successes * np.log1p(-bets * (1 - s))
    wealth[part] += np.logaddexp(np.log(staked) + gain, np.log1p(-staked))
    peaks[part] = np.maximum(peaks[part], wealth[part])
    return Fortunes(edges, wealth, peaks)


def told(wagers: Iterable[Wager], fortunes: Fortunes = OPENING) -> Fortunes:
    """Return the classes after some queries."""
    for wager in wagers:
        fortunes = wagered(fortunes, wager)
    return fortunes


def evidence(fortunes: Fortunes) -> Floats:
    """Return the evidence against each class, as a logarithm; the class with the least is never rejected."""
    peaks = fortunes.peaks
    return np.where(peaks <= peaks.min(), 0.0, peaks)


def reached(fortunes: Fortunes, alpha: float) -> tuple[float, float]:
    """Return the interval (low, high] of the classes whose wealth never reached ``1 / alpha``.

    >>> low, high = Wager(1.0, -1, 40, 2, 0.5, 40, 3.0, 1.0, 1.0), Wager(3.0, 1, 40, 38, 0.5, 40, 3.0, 1.0, 1.0)
    >>> reached(told([low, high]), 0.05)
    (1.0, 3.0)
    """
    edges, against = fortunes.edges, evidence(fortunes)
    alive = np.flatnonzero((against < -math.log(alpha)) | (against <= 0))
    first, last = int(alive[0]), int(alive[-1])
    return (float(edges[first - 1]) if first > 0 else -math.inf, float(edges[last]) if last < len(edges) else math.inf)


def p_values(fortunes: Fortunes, value: float) -> tuple[float, float]:
    """Return p-values, valid at every time, of "the quantile is at most the value" and of "it is at least the value".

    They agree with the intervals at every level.
    """
    against, place = evidence(fortunes), int(np.searchsorted(fortunes.edges, value))
    up_to, beyond = float(against[: place + 1].min()), float(against[place:].min())
    return math.exp(-min(up_to, LARGEST)), math.exp(-min(beyond, LARGEST))
