r"""Face-exponential release of the whole score, a baseline: always a possible score, but biased (6).

With ``rate = epsilon / (2 Delta_1)`` a report v on the face f (value ``f_0``, slopes in ``[-|f_0|, |f_0|]^p``) has
density ``exp(-rate |v - g|_1)``. Its base measure is read in two ways: the sum of the Lebesgue measures of the faces,
as printed, or each face's measure divided by its volume (``normalised``), which is what the paper's figures need.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from sottovoce.core.arrays import Floats
from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.regression.covariates import evenly_spread
from sottovoce_papers.simulation.regression.designs import Design
from sottovoce_papers.simulation.regression.dice import UNIT, roll, unit
from sottovoce_papers.simulation.regression.geometry import default_scale, diameter, move_all
from sottovoce_papers.simulation.regression.geometry import replicate as run
from sottovoce_papers.simulation.regression.paper import Paths
from sottovoce_papers.simulation.regression.walk import OFFSET, Walk, segment

TINY = 1e-300  # where rounding has left nothing beyond


@njit(cache=True)
def _below(v: float, centre: float, rate: float) -> float:
    """Return the integral of exp(-rate |t - centre|) over t below v."""
    if v < centre:
        return math.exp(rate * (v - centre)) / rate
    return (2.0 - math.exp(rate * (centre - v))) / rate


@njit(cache=True)
def upper_chance(score: Floats, tau: float, rate: float, normalised: bool) -> float:
    """Return the chance that the report lies on the upper face, where the response is below the fit."""
    low, high = tau, 1.0 - tau
    odds = math.exp(-rate * (abs(high - score[0]) - abs(-low - score[0])))
    for j in range(1, score.shape[0]):
        upper = _below(high, score[j], rate) - _below(-high, score[j], rate)
        lower = _below(low, score[j], rate) - _below(-low, score[j], rate)
        odds *= upper / lower * (low / high if normalised else 1.0)
    return odds / (1.0 + odds)


@njit(cache=True)
def encode(score: Floats, tau: float, rate: float, normalised: bool, u: Floats) -> Floats:
    """Return a report on one of the two faces, made of uniform numbers in (0, 1).

    Examples
    --------
    >>> report = encode(np.array([0.25, 0.1]), 0.75, 2.0, True, np.array([0.1, 0.5]))
    >>> float(report[0]), abs(float(report[1])) <= 0.25
    (0.25, True)
    """
    report = np.empty_like(score)
    report[0] = 1.0 - tau if u[0] < upper_chance(score, tau, rate, normalised) else -tau
    end = abs(report[0])
    for j in range(1, score.shape[0]):
        centre = score[j]
        start = _below(-end, centre, rate)
        mass = start + u[j] * (_below(end, centre, rate) - start)
        if mass * rate < 1.0:
            v = centre + math.log(mass * rate) / rate
        else:
            v = centre - math.log(max(2.0 - mass * rate, TINY)) / rate
        report[j] = min(max(v, -end), end)
    return report


@njit(cache=True, nogil=True)
def advance(
    walk: Walk, x: Floats, gaps: Floats, first: int, tau: float, rate: float, normalised: bool, step_size: float
) -> None:
    """Take one step for each person; ``gaps`` are responses less their true quantiles."""
    point, words = walk.point, walk.words
    state = (words[0], words[1], words[2], words[3])
    d = point.shape[0]
    score, u = np.empty(d), np.empty(d)
    for i in range(first, first + x.shape[0]):
        row = x[i - first]
        ahead = 0.0
        for k in range(d):
            ahead += row[k] * point[k]
        side = 1.0 - tau if gaps[i - first] <= ahead else -tau
        for k in range(d):
            state, word = roll(state)
            u[k] = unit(word) + 0.5 * UNIT
            score[k] = side * row[k]
        _, anchor, base, slope = segment(i)
        step = step_size / (base + slope * (i + 1 - anchor) + OFFSET)
        move_all(walk, encode(score, tau, rate, normalised, u), step, float(i))
    words[0], words[1], words[2], words[3] = state


def intercept_shift(tau: float, p: int, epsilon: float, *, normalised: bool = True) -> float:
    """Return how far from the truth the recursion's root lies in the paper's design; the slopes' roots stay.

    Parameters
    ----------
    tau, p, epsilon
        The cell.
    normalised
        Which base measure.

    Returns
    -------
    The shift of the intercept; infinite where no intercept balances the reports, so that the projection stops it.

    Examples
    --------
    >>> round(intercept_shift(0.75, 2, 8.0), 3), intercept_shift(0.75, 2, 8.0, normalised=False)
    (0.205, inf)
    """
    rate = epsilon / (2.0 * diameter(tau, p))
    points = 2.0 * evenly_spread(1 << 12, p) - 1.0 if p else np.zeros((1, 0))
    x = np.column_stack([np.ones(len(points)), points])
    chances = [np.mean([upper_chance(side * row, tau, rate, normalised) for row in x]) for side in (1.0 - tau, -tau)]
    # The share of people below the fit at which the share of reports on the upper face is tau.
    share = float((tau - chances[1]) / (chances[0] - chances[1]))
    if not 0.0 < share < 1.0:
        return math.inf if share >= 1.0 else -math.inf
    return float(special.logit(share) - special.logit(tau)) / 2.0


def replicate(
    design: Design,
    tau: float,
    epsilon: float,
    horizons: Sequence[int],
    replications: int = 2,
    seed: int = 1,
    *,
    normalised: bool = True,
    scale: float | None = None,
) -> Paths:
    """Run the recursion with face-exponential releases many times, seeded.

    Parameters
    ----------
    design
        Who is asked.
    tau, epsilon
        Level and budget.
    horizons
        After how many reports to look, ascending.
    replications, seed
        How many times, and where their seeds come from.
    normalised
        Which base measure.
    scale
        The constant of the step, which the paper does not print; None: that of CQ_X(2, 1).

    Examples
    --------
    >>> from sottovoce_papers.simulation.regression.designs import paper
    >>> replicate(paper(2), 0.5, 2.0, (100, 200)).errors.shape
    (2, 2)
    """
    rate = epsilon / (2.0 * diameter(tau, design.p))
    step_size = default_scale(tau, design.p, epsilon) if scale is None else scale

    def piece(walk: Walk, x: Floats, gaps: Floats, first: int) -> None:
        advance(walk, x, gaps, first, tau, rate, normalised, step_size)

    return run(design, tau, piece, horizons, replications, seed)
