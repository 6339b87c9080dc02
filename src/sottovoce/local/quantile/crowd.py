"""Many small sites of this process, which answer a round together, compiled; bit for bit `Site` on the same dice.

The records of all sites lie in one array, each site's in its own random order, so a round reads on where the last one
ended. The dice are thrown as `client.quantile.site` throws them, site by site, point by point. What sites may be asked,
and that records answer once, is checked for all of them before any spends a record; a retry gets the same sums.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn, SupportsIndex

import numpy as np

from sottovoce.client.door import SiteLimits
from sottovoce.client.ledger import Turns
from sottovoce.client.order import ROUNDS, Key, bits_for, places
from sottovoce.client.quantile.encode import WORD, score
from sottovoce.client.quantile.site import LARGE, check_study
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit, uint64
from sottovoce.core.random_source import RandomSource, is_private
from sottovoce.local.runner import Progress
from sottovoce.server.method import Gather, Queries, Replies
from sottovoce.server.quantile.asking import all_periods
from sottovoce.server.quantile.conversation import AskedRound, ToldRound
from sottovoce.server.quantile.plan import QuantilePlan

MANY, SMALL = 32, 4096  # sites, and records a site on average: below and beyond, messages cost less than a copy
TOGETHER = 1 << 16  # words drawn at a time


def are_many(sizes: Sequence[int]) -> bool:
    """Tell whether sites of these sizes had better answer together."""
    return len(sizes) >= MANY and max(sizes) <= LARGE and sum(sizes) <= SMALL * len(sizes)


class SiteCrowd:
    """The sites of a plan, with their records and dice, as one that answers for all."""

    __slots__ = (
        "_channels",
        "_dice",
        "_last",
        "_lowest",
        "_resolution",
        "_sizes",
        "_spent",
        "_starts",
        "_turns",
        "_values",
    )

    def __init__(self, records: Sequence[Records], plan: QuantilePlan, dice: Sequence[RandomSource]) -> None:
        self._channels = dict.fromkeys(plan.channels)
        kinds = zip(plan.taus.tolist(), plan.budgets, plan.flips, strict=True)
        for site in {kind: site for site, kind in enumerate(kinds)}.values():
            check_study(plan.study_of(site), plan.channels[site], SiteLimits())
        self._dice = dice[:1] if all(own is dice[0] for own in dice) else dice
        self._lowest = np.array(plan.flips, dtype=np.uint64) << np.uint64(2)
        self._resolution = plan.resolution
        self._sizes = np.array([holder.size for holder in records], dtype=np.int64)
        self._starts = np.concatenate(([0], np.cumsum(self._sizes)))
        self._spent = np.zeros(len(records), dtype=np.int64)
        self._last: tuple[AskedRound, ToldRound] | None = None
        self._turns = Turns()
        keys = self._words(np.full(len(records), ROUNDS // 2)).view(np.uint32).reshape(-1, ROUNDS).copy()
        sizes, kind = np.unique(self._sizes, return_inverse=True)
        bits = np.array(list(map(bits_for, sizes.tolist())))[kind]
        self._values = np.concatenate([holder.values() for holder in records])
        with np.errstate(over="ignore"):  # not compiled, the mixing of the order wraps round aloud
            arrange(self._values, self._starts, bits, keys, np.empty(int(self._sizes.max())))

    def __repr__(self) -> str:
        return f"SiteCrowd({len(self._sizes):,} sites, {int(self._spent.sum()):,} records answered, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("sites cannot be pickled or copied: records do not leave them")

    @property
    def spent(self) -> Ints:
        """Return how many records of each site have answered."""
        return self._spent.copy()

    @property
    def private(self) -> bool:
        """Tell whether nobody can reproduce the noise and all channels have a finite epsilon."""
        return all(map(is_private, self._dice)) and all(math.isfinite(each.epsilon) for each in self._channels)

    def gather(self, progress: Progress | None = None) -> Gather:
        """Return what brings the replies of all sites to a round."""

        def told(queries: Queries) -> Replies:
            if not isinstance(queries.messages, AskedRound):
                raise TypeError("sites that answer together are asked together")
            reply = self.reply(queries.messages)
            if progress is not None:
                progress(queries.records)
            return reply

        return told

    def reply(self, asked: AskedRound) -> ToldRound:
        """Check, spend and answer a round; the same again gets the same again."""
        with self._turns:
            if self._last is not None and asked.round <= self._last[0].round:
                return self._again(asked, *self._last)
            counts = self._checked(asked)
            told = ToldRound(asked.round, self._draw(asked, counts), asked.speaks.copy())
            self._spent = self._spent + counts.sum(axis=1)  # first: whatever breaks off here, no record answers twice
            self._last = (asked, told)
            return told

    def _again(self, asked: AskedRound, before: AskedRound, told: ToldRound) -> ToldRound:
        """Return what was said before to the same question, or to a part of the sites that it went to."""
        here = asked.speaks
        same = asked.round == before.round and asked.points.tobytes() == before.points.tobytes()
        now, then = (all_periods(each.points, each.periods).tobytes() for each in (asked, before))
        same = same and now == then and len(here) == len(before.speaks) and not np.any(here & ~before.speaks)
        if not (same and np.array_equal(asked.counts[here], before.counts[here])):
            raise BadInput(f"round {asked.round} was already answered, up to round {before.round}; ask a later round.")
        return ToldRound(told.round, np.where(here[:, None], told.ones, 0), here.copy())

    def _checked(self, asked: AskedRound) -> Ints:
        """Return how many records of each site answer at each point, or refuse before anything is spent."""
        limits, round = SiteLimits(), asked.round
        limits.check_round(round)
        limits.check_points(len(asked.points))
        if asked.counts.shape != (len(self._sizes), len(asked.points)) or asked.counts.min() < 0:
            raise BadInput(f"round {round} needs one count of at least zero for each site and point; correct it.")
        if not np.isfinite(asked.points).all():
            raise BadInput(f"round {round} asks at a point that is not a finite number; correct the query.")
        periods = all_periods(asked.points, asked.periods)
        if periods.shape != asked.points.shape or not np.all((periods >= 0) & (periods < np.inf)):
            raise BadInput(f"round {round} needs no period, or a finite one of at least zero a point; correct it.")
        counts = asked.counts if asked.speaks.all() else np.where(asked.speaks[:, None], asked.counts, 0)
        beyond = counts.sum(axis=1) > self._sizes - self._spent
        if beyond.any():
            left = (self._sizes - self._spent)[beyond.argmax()]
            raise BadInput(f"round {round} asks more than the {left} records of a site that are left; ask fewer.")
        return counts

    def _draw(self, asked: AskedRound, counts: Ints) -> Ints:
        """Return the sums of the letters, a piece of the sites at a time."""
        ones = np.zeros(counts.shape, dtype=np.int64, order="F")
        records = counts.sum(axis=1)
        throws = 2 if self._resolution > 0 else 1
        pieces = np.cumsum(throws * records) // TOGETHER
        cuts = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(records)]
        first = self._starts[:-1] + self._spent
        points, periods, resolution = asked.points, all_periods(asked.points, asked.periods), self._resolution
        for start, stop in pairwise(cuts):
            own = slice(start, stop)
            words = self._words(throws * records[own], start)
            lowest = self._lowest[own]
            # rows side by side whatever their order before: the loop is compiled for one order alone
            asked_here = np.ascontiguousarray(counts[own])
            ones_here = np.zeros(asked_here.shape, dtype=np.int64)
            tally(self._values, first[own], points, periods, asked_here, words, lowest, resolution, ones_here)
            ones[own] = ones_here
        return ones

    def _words(self, numbers: Ints, first: int = 0) -> Words:
        """Return the next words of some sites' dice, one site after the other; all at once where they share them."""
        if len(self._dice) == 1:
            together = self._dice[0].words(int(numbers.sum())).view()
        else:
            drawn = [own.words(n) for own, n in zip(self._dice[first:], numbers.tolist(), strict=False) if n]
            together = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.uint64)
        together.setflags(write=False)  # whoever threw the dice: the loops are compiled for such words alone
        return together


@njit(cache=True, nogil=True)
def arrange(values: Floats, starts: Ints, bits: Ints, keys: Key, room: Floats) -> None:
    """Put each site's values in its random order; ``room`` holds as many as the largest site has."""
    where = np.empty(len(room), dtype=np.uint64)
    for site in range(len(bits)):
        own = values[starts[site] : starts[site + 1]]
        there = where[: len(own)]
        places(len(own), bits[site], keys[site], 0, there)
        for i in range(len(own)):
            room[i] = own[there[i]]
        own[:] = room[: len(own)]


@njit(cache=True, nogil=True)
def tally(
    values: Floats,
    first: Ints,
    points: Floats,
    periods: Floats,
    counts: Ints,
    words: Words,
    flips: Words,
    resolution: float,
    ones: Ints,
) -> None:
    """Count the ones among the letters of some sites' next records, point by point (`client.quantile.encode`)."""
    word, throws = 0, 2 if resolution > 0 else 1
    for site in range(len(first)):
        at, lowest = first[site], flips[site]
        highest = ~lowest
        for place in range(len(points)):
            point, period, total = points[place], periods[place], 0
            for _ in range(counts[site, place]):
                value = values[at]
                if throws == 2:
                    value += resolution * (float(words[word + 1] >> uint64(11)) * WORD - 0.5)
                total += (score(value, point, period) & (words[word] >= lowest)) | (words[word] > highest)
                word += throws
                at += 1
            ones[site, place] = total
