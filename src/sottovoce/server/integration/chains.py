"""Parallel chains of one site, whose spread tells their error: (3.6), (3.7) of the paper on data integration.

A site's records are dealt to ``M`` chains, each a walk of its own; chain averages are independent, so their average has
the standard error ``sd / sqrt(M)`` with ``M - 1`` degrees of freedom. What the printed text leaves open or gets wrong:

* (3.3) has the wrong sign and runs away; (3.6) has the right one. Its bracket is ``-r`` times the gradient that
  `protocol.walk` decodes, so its step ``c t^-beta``, without ``1 / r``, is ``c r t^-beta`` here.
* The step presumes records of scale one, hence ``unit``; a start at 0, far from the quantile, is forgotten too slowly.
* A bias that all chains share is not seen by their spread: where the density slopes (``tau`` other than one half) it is
  that of a walk of ``n / M`` records, however many chains are averaged.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.inference.common import groups
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.self_normalised.memory import average
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.messages import Message, Reports, Tally
from sottovoce.server.method import Queries, Replies
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.pilot import Initialisation, find_initialisation
from sottovoce.server.quantile.recursion import walk
from sottovoce.server.quantile.recursion.schedule import StepSize, elapsed
from sottovoce.server.quantile.recursion.walk import WalkState, WalkStudy

SHORTEST = 100  # records a chain, below which its average is little but its start
PILOTS = 0.15  # of the records, at most: in a tail, pilots as precise as those of other walks would eat all of them


@dataclass(frozen=True, eq=False)
class ChainStudy:
    """What the chains of one site need to know; ``start`` and ``unit`` are looked for where they are None."""

    tau: float
    channel: Channel
    chains: int = 10  # as in the paper's Table 1
    constant: float = 1.0
    power: float = 0.6
    start: float | None = None
    unit: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.tau < 1:
            raise BadInput(f"tau lies strictly between 0 and 1, not {self.tau!r}; correct it.")
        if self.chains < 2:
            raise BadInput(f"chains tell an error by their spread, and {self.chains!r} has none; give at least 2.")
        if not 0 < self.constant < math.inf:
            raise BadInput(f"the step constant must be positive and finite, not {self.constant!r}; 1 is the paper's.")
        if not 0.5 < self.power < 1:
            raise BadInput(f"the power of the step lies between 0.5 and 1, not {self.power!r}; 0.6 is the paper's.")
        if self.start is not None and not math.isfinite(self.start):
            raise BadInput(f"the start must be a finite number, not {self.start!r}; give a rough location, or None.")
        if self.unit is not None and not 0 < self.unit < math.inf:
            raise BadInput(f"the unit must be positive and finite, not {self.unit!r}; give a rough scale, or None.")

    @property
    def rate(self) -> float:
        """Return the response rate that the channel's table undoes."""
        return 1 / float(self.channel.table[1, 0] - self.channel.table[0, 0])

    def crowd(self, records: int) -> SiteProfile:
        """Return the site as the only one of a crowd, for the search."""
        return SiteProfile(np.ones(1), np.array([self.rate]), np.array([records]))

    def length(self, records: int) -> int:
        """Return how many records each chain asks; the remainder of the division is not asked."""
        each = records // self.chains
        if each < SHORTEST:
            raise BadInput(
                f"{self.chains} chains need at least {self.chains * SHORTEST:,} records, and there are {records:,}; "
                "make fewer chains, or add records."
            )
        return each


def chain(study: ChainStudy, start: float, unit: float, length: int) -> WalkStudy:
    """Return one chain: a walk of one site, a record a round, of step ``c r t^-beta``, from a start in some unit.

    >>> from sottovoce.protocol.randomised_response import binary
    >>> from sottovoce.server.quantile.recursion.schedule import step_length
    >>> walk = chain(ChainStudy(0.5, binary(1.0986122886681098)), 0.0, 1.0, 200)  # a rate of one half
    >>> round(step_length(walk.pace, 1, 1, 1.0), 6), round(step_length(walk.pace, 32, 1, 1.0), 6)
    (0.5, 0.0625)
    """
    one = np.ones(1)
    scale = study.constant * study.rate * unit
    return WalkStudy(
        taus=study.tau * one,
        shares=one,
        channels=(study.channel,),
        sizes=np.array([length]),
        elapsed=elapsed("every:1", length),
        start=start,
        pace=StepSize(scale, study.power, 0.0, 1.0, True, False),
    )


def measure(averages: npt.ArrayLike) -> SiteEstimate:
    """Return the average of the chains' averages, with the error that their spread tells: (3.7) over n.

    >>> measure([1.0, 2.0, 3.0, 6.0])
    SiteEstimate(estimate=3.0, std_error=1.0801234497346435, df=3)
    """
    rows = np.asarray(averages, dtype=np.float64)[:, None]
    variance = float(groups.covariance(rows)[0, 0]) / len(rows)
    return SiteEstimate(float(groups.mean(rows)[0]), math.sqrt(variance), len(rows) - 1)


class Chained(NamedTuple):
    """What the chains found, after how many rounds (each asks one record of every chain), from how many reports."""

    measured: SiteEstimate
    rounds: int
    reports: int


class ChainStart(NamedTuple):
    """Where all chains start, in what unit, and how many records each of them asks."""

    point: float
    unit: float
    length: int


class ChainState(NamedTuple):
    """Where the chains stand: the log of the search, what it found, the averages so far, and the chain that walks."""

    search: Log = Log()
    start: ChainStart | None = None
    averages: tuple[float, ...] = ()
    walk: WalkState | None = None


class ChainMethod:
    """The chains of one site as ``init, query, step, outcome``: a private search, then one chain after the other.

    Where the study leaves start or unit open, the search finds them; public ``bounds`` around the quantile and a rough
    public ``scale`` shorten it.
    """

    replies: tuple[type[Message], ...] = (Tally, Reports)
    state = ChainState

    def __init__(
        self,
        study: ChainStudy,
        records: int,
        bounds: tuple[float, float] | None = None,
        scale: float | None = None,
    ) -> None:
        study.length(records)  # refused before anything is spent
        self.study, self._records = study, records
        crowd = study.crowd(records)
        self._search: Conversation[Initialisation] = Conversation(
            lambda: find_initialisation(crowd, study.tau, bounds, scale, PILOTS)
        )
        self._known: tuple[ChainStart, int, WalkStudy] | None = None  # the chain that was asked for last

    def init(self) -> ChainState:
        """Return the state before anything was asked."""
        if self.study.start is None or self.study.unit is None:
            return ChainState()
        return self._started(ChainState(), self.study.start, self.study.unit)

    def query(self, state: ChainState) -> Queries | None:
        """Return what is asked next: of the search, then one record after the other for every chain."""
        if state.start is None:
            return self._search.query(state.search)
        if state.walk is None:
            return None
        asked = walk.query(self.one(state), state.walk)
        return Queries(asked[0].round, asked, 1)

    def step(self, state: ChainState, replies: Replies) -> ChainState:
        """Return the state after a reply, or as it was if there was none."""
        if state.start is None:
            log = self._search.step(state.search, replies)
            return self._searched(state._replace(search=log)) if log.rounds > state.search.rounds else state
        if state.walk is None:
            raise BadInput("the chains are at their end; nothing was asked.")
        if len(replies) != 1:
            raise BadInput("the chains belong to one site; give one reply.")
        [reply], one = replies, self.one(state)
        if reply is None:
            return state
        round = one.first + state.walk.round + 1
        if not isinstance(reply, Reports) or reply.round != round:
            raise BadInput(f"the site sent no letters of round {round}; send the reports of this round.")
        moved = walk.step(one, state.walk, [reply.letters])
        if moved.round < state.start.length:
            return state._replace(walk=moved)
        return self.with_averages(state, (*state.averages, average(moved.memory)))

    def outcome(self, state: ChainState) -> Chained:
        """Return estimate, error and degrees of freedom, with the numbers of rounds and of reports."""
        if state.start is None or len(state.averages) < self.study.chains:
            raise BadInput("the chains go on; answer what is asked first.")
        log, length = state.search, state.start.length
        return Chained(measure(state.averages), log.rounds + length, log.reports + self.study.chains * length)

    def one(self, state: ChainState) -> WalkStudy:
        """Return the chain that walks."""
        assert state.start is not None
        point, unit, length = state.start
        first = state.search.rounds + len(state.averages) * length
        if self._known is None or self._known[:2] != (state.start, first):
            one = replace(chain(self.study, point, unit, length), first=first)
            self._known = (state.start, first, one)
        return self._known[2]

    def with_averages(self, state: ChainState, averages: tuple[float, ...]) -> ChainState:
        """Return the state in which so many chains have come to their averages, and the next one starts."""
        after = state._replace(averages=averages, walk=None)
        return after if len(averages) == self.study.chains else after._replace(walk=walk.init(self.one(after)))

    def _searched(self, state: ChainState) -> ChainState:
        """Start the first chain if the search is over and has found a start."""
        try:
            found = self._search.outcome(state.search)
        except BadInput:  # it goes on
            return state
        point = found.point if self.study.start is None else self.study.start
        unit = found.unit if self.study.unit is None else self.study.unit
        if not (math.isfinite(point) and 0 < unit < math.inf):
            raise SearchFailed(
                f"the search for the {self.study.tau:g} quantile found no start; give public bounds= or scale=."
            )
        try:
            return self._started(state, point, unit)
        except BadInput as error:
            raise SearchFailed(f"the search left too few records: {error}") from None

    def _started(self, state: ChainState, point: float, unit: float) -> ChainState:
        """Start the first chain over the records that are left."""
        length = self.study.length(self._records - state.search.reports)
        return self.with_averages(state._replace(start=ChainStart(point, unit, length)), ())
