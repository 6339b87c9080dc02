"""The paper's recursion as a method: a private search for start and unit, then rounds of walks, letter by letter.

What a recursion needs is planned here (`plan_recursion`), and what it leaves behind is turned into a result
(`finished`), for the message path below as for its compiled twin (`local.quantile.compiled_walk`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Bools, Floats, Ints
from sottovoce.core.checks import is_one_of, number
from sottovoce.core.errors import BadInput, Infeasible, SearchFailed
from sottovoce.core.unit import uncensored
from sottovoce.inference.self_normalised import memory as self_normalised
from sottovoce.inference.self_normalised.memory import CHECKPOINTS, Path, init_path, look_path
from sottovoce.protocol.messages import Message, Reports, Tally, WalkQuery
from sottovoce.server.method import Queries, Replies
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.pilot import Initialisation, find_initialisation
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.recursion import walk
from sottovoce.server.quantile.recursion.schedule import StepSize, constant, decay, elapsed, step_length
from sottovoce.server.quantile.recursion.walk import ROWS, WalkState, WalkStudy, checkpoints, horizon
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.solutions import RegressionSolution, SelfNormalisedSolution

FEWEST_SITES = 1e-6  # the smallest part of the sites that may answer a round
MOST_LINKED = 2000  # sites of a graph: its matrix and the walk over it grow with their square
FEWEST = 5  # rounds without which neither interval means anything
NORMS = ("l2", "sup", "l1")
Coin = Callable[[int], Bools | None]  # who answers in a round, from 1; None: everybody


@dataclass(frozen=True, eq=False)
class Recursion:
    """How the recursion runs, checked: schedule, participation, mixing matrix, and norm of the interval."""

    schedule: str | list[int]
    participation: float
    mixing: Floats | None
    norm: str

    @property
    def looks(self) -> int:
        """Return how many states on the way are looked at."""
        return ROWS if self.norm == "l2" else CHECKPOINTS


def plan_recursion(
    plan: QuantilePlan, method: str, schedule: Any, participation: Any, graph: Any, norm: str
) -> Recursion:
    """Check what belongs to the recursion, before anything is spent."""
    uncensored(plan.roster.unit, f"method {method!r}")
    part = number(participation, "participation")
    if not FEWEST_SITES <= part <= 1:
        raise BadInput(
            f"participation must lie in (0, 1], not {part!r}, and be at least {FEWEST_SITES:g}; "
            "give the part of sites that answers."
        )
    if not is_one_of(norm, NORMS) or (norm != "l2" and method != "self-normalised"):
        raise BadInput(
            f"norm {norm!r} does not go with method {method!r}; "
            "choose 'l2', or 'sup' or 'l1' with method 'self-normalised'."
        )
    rounds = elapsed(schedule, int(plan.crowd.sizes.max()))
    if len(rounds) < FEWEST:
        raise BadInput(f"the schedule has {len(rounds)} rounds; give at least {FEWEST}, or more records.")
    mixing = None
    if graph is not None:
        if part < 1:
            raise BadInput("participation below 1 needs the server's average; leave graph out.")
        if isinstance(graph, str) and graph != "ring":
            raise BadInput(f"graph must be 'ring' or a matrix of who talks to whom, not {graph!r}; choose one.")
        if len(plan.names) > MOST_LINKED:
            raise BadInput(
                f"a graph links at most {MOST_LINKED:,} sites, and there are {len(plan.names):,}; leave graph out, or "
                "let sites that know each other answer as one."
            )
        mixing = metropolis(ring(len(plan.names)) if isinstance(graph, str) else graph, plan.crowd.shares)
    return Recursion(schedule if isinstance(schedule, str) else rounds.tolist(), part, mixing, norm)


def search_of(plan: QuantilePlan) -> Conversation[Initialisation]:
    """Return the private search for where the walks may start."""
    return Conversation(lambda: find_initialisation(plan.crowd, plan.tau, plan.bounds, plan.scale))


def walk_study(
    plan: QuantilePlan, found: Initialisation, recursion: Recursion, method: str, searched: int, left: list[int]
) -> WalkStudy:
    """Plan the recursion on the records that the search left."""
    iterations = horizon(max(left), len(left), recursion.participation)
    schedule = recursion.schedule
    if not isinstance(schedule, str):  # what the search has spent is missing at the end
        schedule = schedule[: max(1, int(np.searchsorted(np.cumsum(schedule), iterations, side="right")))]
    pace: StepSize = (
        constant(iterations, slope=found.density)
        if method == "regression"
        else decay(plan.crowd.rates, unit=found.unit, constant=_constant(plan, left))
    )
    return WalkStudy(
        taus=plan.taus,
        shares=plan.crowd.shares,
        channels=plan.channels,
        sizes=np.array(left, dtype=np.int64),
        elapsed=elapsed(schedule, iterations),
        start=found.point,
        pace=pace,
        mixing=recursion.mixing,
        participation=recursion.participation,
        first=searched,
    )


class Footprints(NamedTuple):
    """A few states on the way and, for the norms that need it, the path of the average."""

    states: tuple[WalkState, ...] = ()
    path: Path = init_path()
    last: self_normalised.Memory = self_normalised.init()

    def after(self, state: WalkState) -> "Footprints":
        """Take in all rounds since the last look as equal rounds with their mean point."""
        last, now = self.last, state.memory
        rounds = now.rounds - last.rounds
        before = last.offset + (last.centre - now.centre)  # both averages from one centre: no digits are lost
        mean = now.centre + (now.offset * now.rounds - before * last.rounds) / rounds
        path = look_path(self.path, mean, rounds / (now.noise - last.noise), rounds)
        return Footprints((*self.states, state), path, now)


def finished(
    plan: QuantilePlan,
    recursion: Recursion,
    method: str,
    level: float,
    found: Initialisation,
    study: WalkStudy,
    state: WalkState,
    seen: Footprints,
    searched: int,
) -> QuantileResult:
    """Return the result of a finished walk, unless it ran away; ``searched`` records answered before it."""
    apart = max(1, len(seen.states) // ROWS)
    kept = seen.states[(len(seen.states) - 1) % apart :: apart]  # the last is always kept
    solution = (
        RegressionSolution(study, state, kept, searched)
        if method == "regression"
        else SelfNormalisedSolution(
            study,
            state,
            kept,
            searched,
            recursion.norm,
            None if recursion.norm == "l2" else seen.path,
            _relaxation(study, found),
        )
    )
    if not _arrived(solution):
        raise SearchFailed(
            f"the recursion for the {plan.tau:g} quantile ran away; give public bounds= or scale=, "
            "or a resolution= if many records are tied."
        )
    return QuantileResult(
        plan=plan,
        solution=solution,
        level=level,
        method=method,
        rounds=study.first + len(study.elapsed),
        reports=solution.reports,
        private=all(map(math.isfinite, plan.budgets)),
        warnings=plan.warnings,
    )


class Walking(NamedTuple):
    """Where a walk stands: its state, what was seen on the way, and what has come in of the open round."""

    walk: WalkState
    seen: Footprints = Footprints()
    open: tuple[bytes | None, ...] = ()


class WalkMethod:
    """The rounds of a walk over sites, message by message; ``looks`` states on the way are kept."""

    replies: tuple[type[Message], ...] = (Reports,)
    state = Walking

    def __init__(self, study: WalkStudy, coin: Coin | None = None, looks: int = ROWS) -> None:
        self.study = study
        self._coin: Coin = (lambda _: None) if coin is None else coin
        self._looks = frozenset(checkpoints(len(study.elapsed), looks).tolist())

    def init(self) -> Walking:
        """Return the state before the first round."""
        return Walking(walk.init(self.study))

    def query(self, state: Walking) -> Queries | None:
        """Return the next steps of the sites' walks; a site without any, or that has answered, is not asked."""
        asked = self._asked(state)
        if asked is None:
            return None
        waiting = state.open or (None,) * len(asked)
        messages = [
            query if query.counts[0] and said is None else None for query, said in zip(asked, waiting, strict=True)
        ]
        records = sum(message.counts[0] for message in messages if message is not None)
        return Queries(asked[0].round, messages, records)

    def step(self, state: Walking, replies: Replies) -> Walking:
        """Return the state with these letters in it; the round closes when all who were asked have answered."""
        asked = self._asked(state)
        if asked is None:
            raise BadInput("the walk is over; nothing was asked.")
        if len(replies) != len(asked):
            raise BadInput(f"round {asked[0].round} asked {len(asked)} sites; give one reply for each of them.")
        said = list(state.open or (None,) * len(asked))
        for k, (reply, question) in enumerate(zip(replies, asked, strict=True)):
            if reply is not None:
                said[k] = _letters(reply, question.round, k, question.counts[0], said[k])
        if any(letters is None and question.counts[0] for letters, question in zip(said, asked, strict=True)):
            return state._replace(open=tuple(said))
        present = self._coin(state.walk.round + 1)
        moved = walk.step(self.study, state.walk, [letters or b"" for letters in said], present)
        return Walking(moved, state.seen.after(moved) if moved.round in self._looks else state.seen)

    def outcome(self, state: Walking) -> WalkState:
        """Return where the walk ended."""
        if self._asked(state) is not None:
            raise BadInput("the walk goes on; answer what it asks first.")
        return state.walk

    def _asked(self, state: Walking) -> list[WalkQuery] | None:
        """Return what all sites are asked in the open round; None at the end."""
        if state.walk.round >= len(self.study.elapsed):
            return None
        return walk.query(self.study, state.walk, self._coin(state.walk.round + 1))


class RecursionState(NamedTuple):
    """Where a recursion stands: in its search, or on its walk."""

    search: Log = Log()
    walking: Walking | None = None


class RecursionMethod:
    """The whole recursion, message by message."""

    replies: tuple[type[Message], ...] = (Tally, Reports)
    state = RecursionState

    def __init__(
        self, plan: QuantilePlan, recursion: Recursion, method: str, level: float = 0.95, coin: Coin | None = None
    ) -> None:
        self._plan, self._recursion, self._method, self._level, self._coin = plan, recursion, method, level, coin
        self._search = search_of(plan)
        self._known: tuple[tuple[Ints, ...], Initialisation, WalkMethod] | None = None

    def init(self) -> RecursionState:
        """Return the state before anything was asked."""
        return RecursionState()

    def query(self, state: RecursionState) -> Queries | None:
        """Return what the search asks or, after it, the next steps of the sites' walks."""
        if state.walking is None:
            return self._search.query(state.search)
        return self._walk(state.search)[1].query(state.walking)

    def step(self, state: RecursionState, replies: Replies) -> RecursionState:
        """Return the state after tallies of the search or letters of the walk."""
        if state.walking is not None:
            return state._replace(walking=self._walk(state.search)[1].step(state.walking, replies))
        log = self._search.step(state.search, replies)
        over = self._search.query(log) is None
        return RecursionState(log, self._walk(log)[1].init() if over else None)

    def outcome(self, state: RecursionState) -> QuantileResult:
        """Return the result."""
        if state.walking is None:
            raise BadInput("the recursion goes on; answer what it asks first.")
        found, method = self._walk(state.search)
        end, seen, before = method.outcome(state.walking), state.walking.seen, state.search.reports
        plan, recursion = self._plan, self._recursion
        return finished(plan, recursion, self._method, self._level, found, method.study, end, seen, before)

    def _walk(self, log: Log) -> tuple[Initialisation, WalkMethod]:
        """Return what the search led to."""
        if self._known is None or self._known[0] is not log.answered:
            found = self._search.outcome(log)
            left = (self._plan.crowd.sizes - log.spent).tolist()
            study = walk_study(self._plan, found, self._recursion, self._method, log.rounds, left)
            self._known = (log.answered, found, WalkMethod(study, self._coin, self._recursion.looks))
        return self._known[1], self._known[2]


def _letters(reply: Message, round: int, site: int, count: int, before: bytes | None) -> bytes:
    """Return the letters of a report, or refuse what cannot be an answer."""
    if not isinstance(reply, Reports) or reply.round != round:
        raise BadInput(f"site {site} sent no letters of round {round}; send the reports of this round.")
    if len(reply.letters) != count or not set(reply.letters) <= {0, 1}:
        raise BadInput(
            f"round {round} asked site {site} for {count} letters of 0 or 1; send the reports of this round."
        )
    if before is not None and before != reply.letters:
        raise BadInput(f"site {site} has answered round {round} before, and otherwise; a retry sends the same again.")
    return reply.letters


def _arrived(solution: RegressionSolution | SelfNormalisedSolution) -> bool:
    """Tell whether a walk ended at a number, and a line through its reports was seen to rise."""
    try:
        return math.isfinite(solution.point) and solution.state.slope > 0
    except Infeasible:
        return False


def _constant(plan: QuantilePlan, left: list[int]) -> float:
    """Return the constant of the paper's step: 20 for its ten equal sites, less where the merged noise is larger."""
    ratios = np.array(left) / max(left)
    return 2 / float(np.sum(plan.crowd.shares**2 / ratios))


def _relaxation(study: WalkStudy, found: Initialisation) -> float:
    """Return after which part of the run the point has forgotten where it was: 1 / (step x density), in rounds."""
    rounds, last = len(study.elapsed), int(study.elapsed[-1])
    step = step_length(study.pace, rounds, last, study.pace.slope) * last
    return 1 / (step * found.density * rounds)


def ring(n: int) -> npt.NDArray[np.bool_]:
    """Return the neighbours on a circle of sites.

    >>> ring(4).astype(int).tolist()
    [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    """
    if n < 2:
        raise BadInput(f"a ring needs at least two sites, not {n!r}; use averaging by the server.")
    place = np.arange(n)
    adjacency = np.zeros((n, n), dtype=np.bool_)
    adjacency[place, (place + 1) % n] = adjacency[(place + 1) % n, place] = True
    return adjacency


def metropolis(adjacency: npt.ArrayLike, shares: npt.ArrayLike) -> Floats:
    """Return the matrix by which each site mixes its point with its neighbours' (section C of Cai, Hu and Wu).

    ``adjacency`` says who talks to whom: symmetric, connected, (sites, sites). The paper prints the mixing weight of
    neighbour ``j`` as ``w_kj p_j`` with a doubly stochastic ``w``. Its rows then sum to ``1 / K`` instead of one, so
    every round divides all points by ``K`` and the estimate is 0 whatever the data. What is needed is a matrix ``W``
    whose rows sum to one and which keeps the weighted average, ``p' W = p'``: the weights of Metropolis and Hastings
    (1970) with target ``p``.

    >>> mixing = metropolis(ring(4), [0.1, 0.2, 0.3, 0.4])
    >>> mixing.sum(axis=1).round(12).tolist(), (np.array([0.1, 0.2, 0.3, 0.4]) @ mixing).round(12).tolist()
    ([1.0, 1.0, 1.0, 1.0], [0.1, 0.2, 0.3, 0.4])
    """
    links = _checked(adjacency)
    weights = np.asarray(shares, dtype=np.float64)
    if weights.shape != (len(links),) or not np.all(weights > 0):
        raise BadInput(f"shares must be {len(links)} positive numbers, one a site; correct them.")
    degree = links.sum(axis=1)
    # propose a neighbour (or oneself) evenly, accept with the ratio of target times proposal
    flow = weights / (degree + 1)
    mixing = np.where(links, np.minimum(flow[:, None], flow[None, :]) / weights[:, None], 0.0)
    mixing[np.diag_indices(len(links))] = 1 - mixing.sum(axis=1)
    return cast(Floats, mixing)


def _checked(adjacency: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Refuse what is not a connected graph."""
    links = np.array(adjacency, dtype=np.bool_)
    if links.ndim != 2 or links.shape[0] != links.shape[1]:
        raise BadInput(f"the graph must be a square matrix, not of shape {links.shape}; give one row a site.")
    np.fill_diagonal(links, False)
    if not np.array_equal(links, links.T):
        raise BadInput("the graph is not symmetric: each site must hear the sites that hear it; add the missing links.")
    reached = np.zeros(len(links), dtype=np.bool_)
    reached[0] = True
    while True:
        wider = reached | links[reached].any(axis=0)
        if np.array_equal(wider, reached):
            break
        reached = wider
    if not reached.all():
        raise BadInput(f"{int((~reached).sum())} sites of the graph cannot be reached from the first; link them.")
    return links
