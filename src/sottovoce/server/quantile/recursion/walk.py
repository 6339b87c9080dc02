"""Local stochastic gradient descent for one quantile over many sites (Algorithms 1 and 2 of Cai, Hu and Wu).

In a round each site walks from the common point, one report a step (`protocol.walk`); the server repeats the walk from
the public letters and averages the ends: ``q <- q + sum_k p_k (q_k - q)``. Centred like this, shares that do not sum to
one in floating point cannot pull the point towards zero.

With participation, ``boost`` (sites over those that answer) makes the average unbiased whatever the shares; with equal
shares it is the renormalised average of the paper. Renormalising unequal shares would change the estimand.

Of a run a few rows of estimate and interval are kept on the way, dense at the start, thin later (`Trajectory`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Bools as Present
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.kernels import njit
from sottovoce.inference.self_normalised import memory as self_normalised
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.messages import WalkQuery
from sottovoce.protocol.walk import moves, walk
from sottovoce.server.quantile.asking import spread_offsets
from sottovoce.server.quantile.recursion.schedule import StepSize, refresh_due, step_length

RUN_OUT = 4.0  # standard deviations between the expected and the possible number of turns of a site
Letters = npt.NDArray[np.uint8]
COLUMNS = 5  # of a site's sums: reports, queries, squared queries, queries of the ones, ones
ROWS = 200  # of a trajectory


@dataclass(frozen=True)
class Estimate:
    """A point with its interval of confidence, and the number of reports behind it.

    >>> estimate = Estimate(1.0, 0.5, 1.75, 0.95, 1000)
    >>> estimate.length, estimate.covers(0.4)
    (1.25, False)
    """

    point: float
    low: float
    high: float
    level: float
    n: int

    @property
    def length(self) -> float:
        """Return the length of the interval."""
        return self.high - self.low

    def covers(self, value: float) -> bool:
        """Tell whether the interval contains a value."""
        return self.low <= value <= self.high


class WalkArrays(NamedTuple):
    """The study as the arrays that a kernel reads, one entry a site."""

    sizes: Ints
    ratios: Floats
    offsets: Floats
    shares: Floats
    moves: Floats
    rates: Floats
    mixing: Floats


@dataclass(frozen=True, eq=False)
class WalkStudy:
    """Local stochastic gradient descent over sites.

    ``sizes`` are the records each site can spend; the horizon is the largest. A smaller site answers the same fraction
    of its records over any stretch and its step is larger in proportion, so the shares stay those of the estimand.
    ``mixing`` replaces the server's average by talk among neighbours (`metropolis`); ``participation`` below one
    lets a random part of the sites answer in each round; the first ``burn`` of the rounds (of the iterations, if
    the pace goes by them) is left out of the regression; ``first`` is the last round number already used at the sites.
    """

    taus: Floats
    shares: Floats
    channels: tuple[Channel, ...]
    sizes: Ints
    elapsed: Ints
    start: float
    pace: StepSize
    mixing: Floats | None = None
    participation: float = 1.0
    burn: float = 0.05
    first: int = 0

    def __post_init__(self) -> None:
        n = len(self.channels)
        if n == 0 or not (np.shape(self.taus) == np.shape(self.shares) == np.shape(self.sizes) == (n,)):
            raise BadInput(f"taus, shares and sizes need one entry for each of the {n} sites; correct the study.")
        if not np.all((self.taus > 0) & (self.taus < 1)):
            raise BadInput("tau lies strictly between 0 and 1 at every site; correct it.")
        if not np.all(self.shares > 0) or abs(float(np.sum(self.shares)) - 1) > 1e-9:
            raise BadInput("shares are positive and sum to one; correct them.")
        if int(np.min(self.sizes)) < 1 or len(self.elapsed) < 1:
            raise BadInput("every site needs a record and the schedule a round; leave empty sites out.")
        if not 0 < self.participation <= 1:
            raise BadInput(f"participation lies in (0, 1], not {self.participation!r}; give the part that answers.")
        if self.mixing is not None and self.participation < 1:
            raise BadInput("participation below 1 needs the server's average; leave the graph out.")
        if not np.isfinite(self.start):
            raise BadInput(f"the start must be a finite number, not {self.start!r}; give a rough location.")

    @property
    def tau(self) -> float:
        """Return the level of the estimand: only the weighted sum of the sites' levels enters."""
        return float(np.sum(self.shares * self.taus))

    @property
    def chosen(self) -> int:
        """Return how many sites answer in a round."""
        return int(np.ceil(self.participation * len(self.channels) - 1e-9))

    @cached_property
    def burnt(self) -> int:
        """Return after how many rounds the regression starts: a part of whatever the pace counts in."""
        if self.pace.shared or self.elapsed.strides == (0,):
            return int(self.burn * len(self.elapsed))
        reached = np.cumsum(self.elapsed)
        return int(np.searchsorted(reached, self.burn * reached[-1], side="right"))

    @cached_property
    def plan(self) -> WalkArrays:
        """Return the arrays for the kernels."""
        n = len(self.channels)
        sizes = np.asarray(self.sizes, dtype=np.int64)
        return WalkArrays(
            sizes,
            sizes / sizes.max(),
            spread_offsets(n),
            np.ascontiguousarray(self.shares, dtype=np.float64),
            np.array([moves(channel, tau) for channel, tau in zip(self.channels, self.taus, strict=True)]),
            np.array([1 / float(channel.table[1, 0] - channel.table[0, 0]) for channel in self.channels]),
            np.empty((0, 0)) if self.mixing is None else np.ascontiguousarray(self.mixing, dtype=np.float64),
        )


def horizon(largest: int, sites: int, participation: float, longest: int = 1) -> int:
    """Return how many iterations can be planned so that hardly any site runs out of records.

    ``largest`` is the number of records of the largest site, ``longest`` the iterations of the longest round.

    >>> horizon(10_000, 10, 1.0), horizon(10_000, 10, 0.5)
    (10000, 19442)
    """
    part = np.ceil(participation * sites - 1e-9) / sites
    if part >= 1:
        return largest
    # the largest t with t part + RUN_OUT sqrt(t longest part (1 - part)) <= largest
    half = RUN_OUT * np.sqrt(longest * (1 - part)) / 2
    return max(1, int((np.sqrt(half**2 + largest) - half) ** 2 / part))


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

    All sites answer if ``present`` is not given.

    >>> from sottovoce.protocol.randomised_response import binary
    >>> from sottovoce.server.quantile.recursion.schedule import decay, elapsed
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

    Letters are zeros and ones in the order given, none where none were asked for; all sites answered if ``present`` is
    not given.
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


Watch = Callable[[WalkState], None]
Estimating = Callable[[WalkStudy, WalkState, float], Estimate]


class Row(NamedTuple):
    """One line of a trajectory."""

    round: int
    reports: int
    average: float
    low: float
    high: float


class Trajectory:
    """Writes a row each time it is shown a state."""

    def __init__(self, study: WalkStudy, estimate: Estimating, level: float = 0.95) -> None:
        self._study, self._estimate, self._level = study, estimate, level
        self.rows: list[Row] = []

    def __call__(self, state: WalkState) -> None:
        """Add the row of a state; what cannot be estimated yet is left open."""
        point, low, high = math.nan, -math.inf, math.inf
        try:
            found = self._estimate(self._study, state, self._level)
            point, low, high = found.point, found.low, found.high
        except Infeasible:
            pass
        self.rows.append(Row(state.round, reports(self._study, state), point, low, high))


def checkpoints(rounds: int, rows: int = ROWS) -> npt.NDArray[np.int64]:
    """Return after which rounds to look: at most ``rows`` of them, the last round always.

    >>> checkpoints(100, 5).tolist()
    [4, 16, 36, 64, 100]
    """
    return np.unique(np.ceil(rounds * (np.arange(1, rows + 1) / rows) ** 2 - 1e-9).astype(np.int64))
