"""All rounds over all sites in one compiled kernel; bit for bit `RecursionMethod` on the same dice.

Values and coins of each site are fetched ahead in pieces, in the site's random order, so that memory beyond the data
stays in proportion to the number of sites. The kernel stops when a site's piece is used up and goes on where it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.core.arrays import Bools, Floats, Ints, Words
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit, say_slow, uint64
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.inference.self_normalised.memory import Memory, look
from sottovoce.local import runner
from sottovoce.local.quantile.source import Faces, Feed, Source
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.recursion.method import Footprints, Recursion, finished, search_of, walk_study
from sottovoce.server.quantile.recursion.schedule import StepSize, refresh_due, step_length
from sottovoce.server.quantile.recursion.walk import (
    ROWS,
    WalkArrays,
    WalkState,
    WalkStudy,
    Watch,
    checkpoints,
    init,
    learnt,
    merge,
    reached,
    reports,
)
from sottovoce.server.quantile.result import QuantileResult

BLOCK = 4096  # rounds a call, so that a long schedule is never copied whole
PIECE = 4096  # records fetched ahead at one site, fewer if there are many sites
AHEAD = 1 << 18  # records fetched ahead in all


class Coin:
    """Draws the sites that answer in each round, in order: a public coin, thrown by whoever runs the rounds."""

    def __init__(self, study: WalkStudy, dice: RandomSource | None = None) -> None:
        self._sites, self._chosen = len(study.channels), study.chosen
        self._dice = SystemEntropy() if dice is None else dice

    def masks(self, rounds: int) -> Bools:
        """Return who answers in the next rounds, (rounds, sites); no rows if everybody always does."""
        if self._chosen == self._sites:
            return np.empty((0, self._sites), dtype=np.bool_)
        masks = np.zeros((rounds, self._sites), dtype=np.bool_)
        draw(self._dice.words(rounds * self._chosen), self._chosen, masks)
        return masks

    def by_round(self, rounds: int) -> Callable[[int], Bools | None]:
        """Draw all rounds at once, and return who answers in each, counted from 1 (`WalkMethod`)."""
        masks = self.masks(rounds)
        return lambda number: masks[number - 1] if len(masks) else None


@njit(cache=True)
def draw(words: Words, chosen: int, masks: Bools) -> None:
    """Mark ``chosen`` sites in each row, every subset with the same chance (Floyd's sampling without replacement)."""
    rounds, sites = masks.shape
    for i in range(rounds):
        for j in range(chosen):
            last = sites - chosen + j
            pick = np.int64(words[i * chosen + j] % uint64(last + 1))
            masks[i, last if masks[i, pick] else pick] = True


def run(
    study: WalkStudy,
    sources: Sequence[Feed],
    coin: Coin | None = None,
    watch: Watch | None = None,
    start: float | None = None,
    rows: int = ROWS,
) -> WalkState:
    """Run all rounds and return the last state.

    ``coin`` draws who is asked when participation is partial, by default from the operating system; ``watch`` is shown
    at most ``rows`` states on the way (see `checkpoints`); ``start`` replaces the study's own.

    >>> from sottovoce.protocol.randomised_response import binary
    >>> from sottovoce.local.quantile.source import Source
    >>> from sottovoce.server.quantile.recursion import regression_root
    >>> from sottovoce.server.quantile.recursion.schedule import decay, elapsed
    >>> values, channel = np.linspace(0.0, 1.0, 2000), binary(3.0)
    >>> one = np.ones(1)
    >>> rounds = elapsed("every:1", 2000)
    >>> study = WalkStudy(0.5 * one, one, (channel,), np.array([2000]), rounds, 0.4, decay([0.9], unit=0.3))
    >>> state = run(study, [Source(values, channel)])
    >>> abs(regression_root.estimate(study, state).point - 0.5) < 0.2
    True
    """
    n, rounds = len(study.channels), len(study.elapsed)
    if [source.left for source in sources] != study.sizes.tolist():
        raise BadInput("the sites' records left are not the sizes of the study; plan the study on what is left.")
    say_slow(int(study.sizes.sum()))
    coin = Coin(study) if coin is None else coin
    width = max(64, min(PIECE, AHEAD // n))
    values, faces = np.empty((n, width)), np.empty((n, width), dtype=np.uint8)
    used, have = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    looks = checkpoints(rounds, rows).tolist() if watch is not None else [rounds]
    state = init(study if start is None else replace(study, start=start))
    for stop in looks:
        while state.round < stop:
            block = study.elapsed[state.round : min(state.round + BLOCK, stop)].copy()
            masks = coin.masks(len(block))
            walker = Walker(study, state)
            while not walker.advance(block, masks, values, faces, used, have):
                for k in np.flatnonzero(used == have).tolist():
                    used[k], have[k] = 0, sources[k].fetch(values[k], faces[k])
            state = walker.state(int(block.sum()), len(block))
        if watch is not None:
            watch(state)
    return state


class Walker:
    """The arrays of a state while the kernel changes them."""

    def __init__(self, study: WalkStudy, state: WalkState) -> None:
        self._study, self._before = study, state
        self._points, self._ends = state.points.copy(), state.points.copy()
        self._clock, self._sums = state.clock.copy(), state.sums.copy()
        self._scalars = np.array([state.origin, state.slope])
        self._cursor = np.zeros(3, dtype=np.int64)
        self._memory = state.memory

    def advance(self, block: Ints, masks: Bools, values: Floats, faces: Faces, used: Ints, have: Ints) -> bool:
        """Run rounds until the block ends (True) or a site needs records (False)."""
        study = self._study
        self._memory = advance(
            study.plan, study.pace, block, masks, self._before.round, study.burnt, self._cursor,
            values, faces, used, have,
            self._clock, self._points, self._ends, self._sums, self._scalars, self._memory,
        )  # fmt: skip
        return bool(self._cursor[0] == len(block))

    def state(self, iterations: int, rounds: int) -> WalkState:
        """Return the state after the block."""
        origin, slope = self._scalars.tolist()
        return WalkState(
            self._before.round + rounds,
            self._before.iteration + iterations,
            self._points,
            self._clock,
            self._memory,
            self._sums,
            origin,
            slope,
        )


@njit(cache=True, nogil=True)
def advance(
    plan: WalkArrays,
    pace: StepSize,
    block: Ints,
    masks: Bools,
    before: int,
    burnt: int,
    cursor: Ints,
    values: Floats,
    faces: Faces,
    used: Ints,
    have: Ints,
    clock: Ints,
    points: Floats,
    ends: Floats,
    sums: Floats,
    scalars: Floats,
    memory: Memory,
) -> Memory:
    """Run the rounds of a block from the cursor (round, site, reports done) on; return where memory stands."""
    n = len(points)
    moves, partial = plan.moves, len(masks) > 0
    while cursor[0] < len(block):
        row = cursor[0]
        lasts, number = block[row], before + row + 1
        base = step_length(pace, number, lasts, scalars[1])
        origin = scalars[0]
        for k in range(cursor[1], n):
            if partial and not masks[row, k]:
                continue
            size, ratio, offset = plan.sizes[k], plan.ratios[k], plan.offsets[k]
            count = reached(clock[k] + lasts, ratio, offset, size) - reached(clock[k], ratio, offset, size)
            done = cursor[2]
            step, point, at, end = base / ratio, ends[k], used[k], have[k]
            while done < count:
                if at == end:
                    ends[k], used[k] = point, at
                    cursor[1], cursor[2] = k, done
                    return memory
                symbol = np.uint8((values[k, at] > point) + faces[k, at] > 1)
                letter = float(symbol)
                distance = point - origin
                sums[k, 0] += 1.0
                sums[k, 1] += distance
                sums[k, 2] += distance * distance
                sums[k, 3] += distance * letter
                sums[k, 4] += letter
                point += step * moves[k, symbol]
                at += 1
                done += 1
            ends[k], used[k] = point, at
            cursor[2] = 0
        here = 0
        for k in range(n):
            if not partial or masks[row, k]:
                clock[k] += lasts
                here += 1
        average = merge(points, ends, plan.shares, n / max(1, here), plan.mixing, points)
        ends[:] = points
        memory = look(memory, average, float(lasts))
        if refresh_due(pace, number):
            scalars[1] = learnt(sums, plan.shares, plan.rates, scalars[1])
        if number == burnt:
            sums[:] = 0.0
            scalars[0] = average
        cursor[0], cursor[1], cursor[2] = row + 1, 0, 0
    return memory


def run_recursion(
    plan: QuantilePlan,
    recursion: Recursion,
    method: str,
    level: float,
    sites: Sequence[Site],
    doors: Sequence[Door],
    randomness: RandomSource | None,
    progress: Callable[[int], None] | None,
) -> QuantileResult:
    """Search by messages, then walk over all records that are left."""
    search = search_of(plan)
    log = runner.run_to_end(search, doors, progress)
    found, searched = search.outcome(log), log.rounds
    study = walk_study(plan, found, recursion, method, searched, [site.size - site.spent for site in sites])
    seen = [Footprints()]

    def watch(state: WalkState) -> None:
        seen[0] = seen[0].after(state)

    sources = [Source(*site.hand_over(searched + 1)) for site in sites]
    state = run(study, sources, Coin(study, randomness), watch, rows=recursion.looks)
    if progress is not None:
        progress(reports(study, state))
    return finished(plan, recursion, method, level, found, study, state, seen[0], log.reports)
