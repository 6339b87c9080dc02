"""Local stochastic gradient descent for one quantile over many sites (Algorithms 1 and 2 of Cai, Hu and Wu).

In a round each site walks from the common point, one report a step (`protocol.walk`); the server repeats the walk from
the public letters and averages the ends: ``q <- q + sum_k p_k (q_k - q)``. Centred like this, shares that do not sum to
one in floating point cannot pull the point towards zero.

With participation, ``boost`` (sites over those that answer) makes the average unbiased whatever the shares; with equal
shares it is the renormalised average of the paper. Renormalising unequal shares would change the estimand.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from sottovoce.core.arrays import Bools as Present
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.inference.self_normalised import memory as self_normalised
from sottovoce.protocol.messages import WalkQuery
from sottovoce.protocol.walk import walk
from sottovoce.server.quantile.estimate import Estimate
from sottovoce.server.quantile.recursion.step_size import refresh_due, step_length
from sottovoce.server.quantile.recursion.study import WalkStudy

Letters = npt.NDArray[np.uint8]
COLUMNS = 5  # of a site's sums: reports, queries, squared queries, queries of the ones, ones


class WalkState(NamedTuple):
    """Where a study stands: ``sums`` holds a site's regression of letters on queries, centred at ``origin``."""

    round: int
    iteration: int
    points: Floats
    clock: Ints
    memory: self_normalised.Memory
    sums: Floats
    origin: float
    slope: float


def init(study: WalkStudy) -> WalkState:
    """Return the state before the first round."""
    n = len(study.channels)
    points, clock, sums = np.full(n, study.start), np.zeros(n, dtype=np.int64), np.zeros((n, COLUMNS))
    return WalkState(0, 0, points, clock, self_normalised.init(), sums, study.start, study.pace.slope)


def query(study: WalkStudy, state: WalkState, present: Present | None = None) -> list[WalkQuery]:
    """Return what each site is asked in the next round; a site that is absent or has run out is asked for nothing.

    Parameters
    ----------
    study
        What is estimated and how.
    state
        Where it stands.
    present
        Which sites answer in this round; all if not given.

    Examples
    --------
    >>> from sottovoce.protocol.randomised_response import binary
    >>> from sottovoce.server.quantile.recursion.step_size import decay
    >>> from sottovoce.server.quantile.recursion.schedule import elapsed
    >>> half, sizes = np.full(2, 0.5), np.array([100, 50])
    >>> study = WalkStudy(half, half, (binary(1.0),) * 2, sizes, elapsed([4], 100), 7.0, decay([0.5]))
    >>> [(asked.points, asked.counts) for asked in query(study, init(study))]
    [((7.0,), (4,)), ((7.0,), (2,))]
    """
    plan, lasts = study.plan, int(study.elapsed[state.round])
    step = step_length(study.pace, state.round + 1, lasts, state.slope)
    queries, number = [], study.first + state.round + 1
    for k in range(len(study.channels)):
        turns = lasts if present is None or present[k] else 0
        before = reached(state.clock[k], plan.ratios[k], plan.offsets[k], plan.sizes[k])
        after = reached(state.clock[k] + turns, plan.ratios[k], plan.offsets[k], plan.sizes[k])
        queries.append(
            WalkQuery(number, (float(state.points[k]),), (int(after - before),), float(step / plan.ratios[k]))
        )
    return queries


def step(
    study: WalkStudy, state: WalkState, letters: Sequence[Letters | bytes], present: Present | None = None
) -> WalkState:
    """Return the state after one round's letters, one sequence a site.

    Parameters
    ----------
    study
        What is estimated and how.
    state
        Where it stands; left unchanged.
    letters
        Each site's reports in the order given, zeros and ones; empty where none were asked for.
    present
        Which sites answered in this round; all if not given.
    """
    plan, lasts = study.plan, int(study.elapsed[state.round])
    here = np.ones(len(study.channels), dtype=np.bool_) if present is None else present
    ends, sums = state.points.copy(), state.sums.copy()
    asked = query(study, state, here)
    for k, (sent, question) in enumerate(zip(letters, asked, strict=True)):
        heard = np.frombuffer(sent, dtype=np.uint8) if isinstance(sent, bytes) else sent
        if len(heard) != question.counts[0] or (len(heard) and heard.max() > 1):
            raise BadInput(
                f"round {question.round}, site {k}: expected {question.counts[0]} letters of 0 or 1, "
                f"got {len(heard)} bytes; send the reports of this round."
            )
        path = walk(question.points[0], question.step, heard, plan.moves[k])
        ends[k] = path[-1]
        observe(sums[k], path, heard, state.origin)
    points = np.empty_like(ends)
    boost = len(here) / max(1, int(np.count_nonzero(here)))
    average = merge(state.points, ends, plan.shares, boost, plan.mixing, points)
    memory = self_normalised.look(state.memory, average, float(lasts))
    number, slope, origin = state.round + 1, state.slope, state.origin
    if refresh_due(study.pace, number):
        slope = learnt(sums, plan.shares, plan.rates, slope)
    if number == study.burnt:
        sums, origin = np.zeros_like(sums), average
    return WalkState(
        number, state.iteration + lasts, points, state.clock + lasts * here, memory, sums, float(origin), float(slope)
    )


def estimate(study: WalkStudy, state: WalkState, level: float = 0.95, own: bool = True) -> Estimate:
    """Return the averaged point with the self-normalised interval (Algorithm 2).

    The critical value is that of the schedule's own clock, or (``own=False``, as printed) that of equal rounds.
    """
    low, high = self_normalised.interval(state.memory, level, own_clock(study, state) if own else None)
    return Estimate(float(self_normalised.average(state.memory)), float(low), float(high), level, reports(study, state))


def own_clock(study: WalkStudy, state: WalkState) -> Floats | None:
    """Return the rounds' lengths so far, or None if they are equal."""
    lasts = study.elapsed[: max(state.round, 1)]
    return None if lasts.strides == (0,) or int(lasts.min()) == int(lasts.max()) else lasts.astype(np.float64)


def reports(study: WalkStudy, state: WalkState) -> int:
    """Return how many records have answered."""
    plan = study.plan
    return int(np.minimum(np.floor(state.clock * plan.ratios + plan.offsets), plan.sizes).sum())


@njit(cache=True)
def reached(clock: int, ratio: float, offset: float, size: int) -> int:
    """Return how many records a site has spent after some turns: a fraction of its own, rounded its own way."""
    return min(int(np.floor(clock * ratio + offset)), size)


@njit(cache=True)
def observe(row: Floats, path: Floats, letters: Letters, origin: float) -> None:
    """Add reports and the queries they answered to a site's sums."""
    for i in range(len(letters)):
        distance, letter = path[i] - origin, float(letters[i])
        row[0] += 1.0
        row[1] += distance
        row[2] += distance * distance
        row[3] += distance * letter
        row[4] += letter


@njit(cache=True)
def merge(points: Floats, ends: Floats, shares: Floats, boost: float, mixing: Floats, merged: Floats) -> float:
    """Fill the points from which the sites go on; return their average weighted by the shares."""
    n = len(points)
    if len(mixing):
        for k in range(n):
            total = 0.0
            for j in range(n):
                total += mixing[k, j] * (ends[j] - ends[k])
            merged[k] = ends[k] + total
        base = merged[0]
        total = 0.0
        for k in range(n):
            total += shares[k] * (merged[k] - base)
        return float(base + total)
    base = points[0]
    total = 0.0
    for k in range(n):
        total += shares[k] * (ends[k] - base)
    average = base + boost * total
    merged[:] = average
    return float(average)


@njit(cache=True)
def learnt(sums: Floats, shares: Floats, rates: Floats, slope: float) -> float:
    """Return the density seen by the regression, at most twice or half the last, unless noise hides it."""
    density, variance = 0.0, 0.0
    for k in range(len(shares)):
        n, total, squares, products, ones = sums[k]
        if n < 3.0:
            return slope
        spread = squares - total * total / n
        if spread <= 0.0:
            return slope
        density -= shares[k] * (products - total * ones / n) / spread / rates[k]
        share = ones / n
        variance += (shares[k] / rates[k]) ** 2 * share * (1.0 - share) / spread
    if density < 3.0 * np.sqrt(variance):
        return slope
    return min(max(density, 0.5 * slope), 2.0 * slope)
