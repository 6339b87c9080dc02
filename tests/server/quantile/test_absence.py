"""Sites that miss rounds: nothing is counted twice, nothing is lost but rounds, and shares stay what they were."""

import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest
from scipy import special

from sottovoce.core import codec
from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.protocol.messages import Message, Query, Tally
from sottovoce.server.method import Absent, Queries, restore
from sottovoce.server.quantile.apart import completed
from sottovoce.server.quantile.asking import ABSENT, CERTIFYING, GUIDING, LOCAL, LOST, PATIENCE, Ask, Attendance, decode
from sottovoce.server.quantile.conversation import LEFT, Conversation, Log
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.layouts import KeptStage
from sottovoce.server.quantile.levels import StagedQuantiles
from sottovoce.server.quantile.method import AWAY, FENCED, StagedQuantile
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.server.quantile.quorum import Quorum, quorum_of
from sottovoce.server.quantile.recursion.method import RecursionMethod, plan_recursion
from sottovoce.server.quantile.sequence import SequenceQuantile
from sottovoce.sim.randomness import dice

NAMES, SIZES, PLACES = ("north", "south", "west"), (20_000, 10_000, 30_000), (0.0, 2.5, 1.0)
SHARES = np.array(SIZES) / sum(SIZES)
pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
Making = Callable[[], Any]


def plan_of(tau: float = 0.5, sizes: tuple[int, ...] = SIZES, epsilon: float = 2.0) -> QuantilePlan:
    return plan_quantile(Roster(NAMES, sizes, Unit("number")), tau, epsilon, limits=CERTIFIED)


PLAN = plan_of()
METHODS: dict[str, Making] = {
    "staged": lambda: StagedQuantile(PLAN),
    "scarce": lambda: StagedQuantile(plan_of(0.8, (400, 200, 600))),
    "certified": lambda: StagedQuantile(PLAN, coin=b"coin", certified=True),
    "sequence": lambda: SequenceQuantile(PLAN, coin=b"coin"),
    "levels": lambda: StagedQuantiles([plan_of(tau) for tau in (0.3, 0.6)], (0.5, 0.5), coin=b"coin"),
}


def mixture(shares: Any) -> float:
    low, high = -5.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if shares @ special.ndtr(middle - np.array(PLACES)) < 0.5 else (low, middle)
    return low


MIDDLE = mixture(SHARES)
every = pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)


def tally(site: int, query: Message, rate: float = float(PLAN.crowd.rates[0]), lump: float = 0.0) -> Tally:
    """Answer as unlike normal records would, some of chance off, whatever the number of the round is.

    Records of ``lump`` after lump beside the median of all stand at its end.
    """
    assert isinstance(query, Query)
    counts, points = np.array(query.counts), np.array(query.points)
    seen = points if not lump else MIDDLE + lump * np.floor((points - MIDDLE) / lump)
    above = special.ndtr(PLACES[site] - seen) if not query.periods else np.full(len(points), 0.5)
    noise = 0.25 * np.sqrt(counts) * np.sin(1e3 * points + site)
    ones = np.rint(counts * ((1 - rate) / 2 + rate * above) + noise).astype(np.int64)
    return Tally(query.round, tuple(np.clip(ones, 0, counts).tolist()))


def run(method: Any, absent: Callable[[int, Queries], set[int]], lump: float = 0.0) -> tuple[Any, Log]:
    """Run a method whose sites miss rounds: the number of the round and the question say who."""
    state, rounds = method.init(), 0
    while (queries := method.query(state)) is not None:
        rounds += 1
        away = absent(rounds, queries)
        said = [
            None if message is None else Absent(queries.round) if k in away else tally(k, message, lump=lump)
            for k, message in enumerate(queries.messages)
        ]
        state = method.step(state, said)
        assert rounds < 2_000
    return method.outcome(state), state


@every
def test_an_absence_costs_rounds_and_nothing_else(make: Making) -> None:
    whole, log = run(make(), lambda rounds, queries: set())
    # nobody misses more than two rounds one after the other, so that everything is asked in the end
    late, longer = run(make(), lambda rounds, queries: {(rounds // 2) % 3} if rounds % 5 else set())
    assert longer.rounds > log.rounds
    assert longer.spent.tolist() == log.spent.tolist()
    assert longer.reports == log.reports
    results = [getattr(result, "results", (result,)) for result in (whole, late)]
    for one, two in zip(*results, strict=True):
        assert (one.estimate, one.interval, one.reports) == (two.estimate, two.interval, two.reports)
        assert AWAY not in two.warnings


@every
def test_no_record_counts_twice_and_none_is_asked_that_is_not_there(make: Making) -> None:
    generator = dice(11).generator()
    method = make()
    sizes = (method.plans[0] if hasattr(method, "plans") else method.plan).roster.sizes
    state, answered, ledger, losses = method.init(), dict[tuple[int, int], Tally](), np.zeros(3, dtype=np.int64), 0
    for turn in range(4_000):
        kept = codec.to_bytes(state)
        state = restore(method, kept)
        assert codec.to_bytes(state) == kept
        if turn % 40 == 20:  # another process goes on
            method = make()
        if (queries := method.query(state)) is None:
            break
        replies: list[Message | None] = [None] * 3
        for k, message in enumerate(queries.messages):
            if message is None:
                continue
            assert isinstance(message, Query)
            place, chance = (k, queries.round), generator.random()
            if place in answered:  # a site that has answered says the same again
                replies[k] = answered[place]
            elif chance < 0.55:
                replies[k] = answered[place] = tally(k, message)
                ledger[k] += sum(message.counts)
            elif chance < 0.8:
                replies[k] = Absent(queries.round)
            elif chance < 0.82:
                replies[k] = Absent(queries.round, spent=True)
        before = state
        state = method.step(state, replies)
        if state.rounds > before.rounds:  # what was lost is known when the round closes
            closed = state.answered[-1][:, 0]
            losses += int(np.count_nonzero(closed == LOST))
            for site in np.flatnonzero(closed == LOST).tolist():
                ledger[site] += int(state.asked[-1].counts[site].sum())
        assert np.all(ledger <= sizes)
    method.outcome(state)
    assert state.spent.tolist() == ledger.tolist()
    assert losses > 0


def test_a_site_that_stays_away_costs_length_and_not_truth() -> None:
    truth, rest = mixture(SHARES), mixture(np.array([20, 10, 0]) / 30)
    whole, _ = run(StagedQuantile(PLAN), lambda rounds, queries: set())
    result, log = run(StagedQuantile(PLAN), lambda rounds, queries: {2} if rounds > 19 else set())
    assert result.method == "staged"  # no false alarm either
    assert result.interval.low < truth < result.interval.high
    assert not result.interval.low < rest < result.interval.high
    assert result.interval.high - result.interval.low > 1.3 * (whole.interval.high - whole.interval.low)
    assert AWAY in result.warnings
    assert log.spent[2] < SIZES[2]
    assert log.spent[:2].tolist() == list(SIZES[:2])
    assert result.shares == whole.shares
    again = type(result).from_state(codec.to_plain(result.to_state()))
    assert again.interval == result.interval


def test_the_checks_of_a_stage_hear_what_the_absent_would_have_said() -> None:
    """Half of the records lie up to the median and half beyond the next lump: the interval reaches over all between."""
    result, log = run(StagedQuantile(PLAN), lambda rounds, queries: {1} if rounds > 19 else set(), lump=0.2)
    assert log.spent[1] < SIZES[1]
    assert FENCED in result.warnings
    assert result.interval.low < MIDDLE + 0.01
    assert result.interval.high > MIDDLE + 0.2


def test_a_site_that_comes_back_is_asked_what_it_missed() -> None:
    result, log = run(StagedQuantile(PLAN), lambda rounds, queries: {2} if 14 < rounds < 21 else set())
    assert log.spent.tolist() == list(SIZES)
    assert result.interval.low < mixture(SHARES) < result.interval.high


@pytest.mark.parametrize("certified", [False, True])
def test_search_and_certificates_wait_for_a_large_site(certified: bool) -> None:
    method = StagedQuantile(PLAN, coin=b"coin", certified=certified)
    state = method.init()
    for turn in range(30):
        queries = method.query(state)
        assert queries is not None
        asked = [k for k, message in enumerate(queries.messages) if message is not None]
        assert asked == ([0, 1, 2] if turn == 0 else [2])
        state = method.step(
            state,
            [
                None if message is None else Absent(queries.round) if k == 2 else tally(k, message)
                for k, message in enumerate(queries.messages)
            ],
        )


def test_a_small_site_that_stays_away_counts_against_its_queries() -> None:
    plan = plan_of(0.5, (20_000, 600, 30_000))
    whole, _ = run(StagedQuantile(plan, coin=b"coin", certified=True), lambda rounds, queries: set())
    result, log = run(StagedQuantile(plan, coin=b"coin", certified=True), lambda rounds, queries: {1})
    assert log.spent[1] == 0
    assert [piece.reports for piece in whole.solution.certificate.evidence] == [
        piece.reports for piece in result.solution.certificate.evidence
    ]
    assert result.interval.high - result.interval.low > whole.interval.high - whole.interval.low


def test_an_answer_without_a_small_site_counts_what_it_might_have_said() -> None:
    plan = plan_of(0.8, (4_000, 100, 6_000))
    result, log = run(StagedQuantile(plan), lambda rounds, queries: {1})
    assert log.spent[1] == 0
    assert math.isfinite(result.interval.high)


def test_walks_refuse_an_absence_and_stay_where_they_are() -> None:
    recursion = plan_recursion(PLAN, "regression", "every:1", 1.0, None, "l2")
    method = RecursionMethod(PLAN, recursion, "regression")
    state = method.init()
    queries = method.query(state)
    assert queries is not None
    with pytest.raises(BadInput, match="needs every site in every round"):
        method.step(state, [Absent(queries.round)] * 3)
    assert method.query(state) == queries


def two_questions() -> Generator[Ask, Ints, list[Ints]]:
    heard = [(yield Ask(np.array([1.0, 2.0]), np.array([[3, 2], [4, 0], [0, 0]])))]
    return [*heard, (yield Ask(np.array([5.0]), np.array([[1], [1], [1]])))]


def talk(quorum: Quorum | None) -> Conversation[list[Ints]]:
    return Conversation(two_questions, quorum)


ANY = quorum_of(np.array([0.2, 0.3, 0.5]), 1)


def test_a_round_closes_without_the_absent_and_the_log_says_so() -> None:
    one = talk(ANY)
    log = one.step(one.init(), [Tally(1, (1, 2)), Absent(1), None])
    assert log.rounds == 1
    assert log.answered[0].tolist() == [[1, 2], [ABSENT, ABSENT], [0, 0]]
    assert (log.reports, log.spent.tolist()) == (5, [5, 0, 0])
    lost = one.step(one.init(), [Tally(1, (1, 2)), Absent(1, spent=True), None])
    assert (lost.reports, lost.spent.tolist()) == (5, [5, 4, 0])
    assert codec.to_bytes(restore(one, codec.to_bytes(lost))) == codec.to_bytes(lost)
    end = one.step(log, [Absent(2), Absent(2), Tally(2, (1,))])
    assert [heard.tolist() for heard in talk(ANY).outcome(restore(one, codec.to_bytes(end)))] == [
        [[1, 2], [ABSENT, ABSENT], [0, 0]],
        [[ABSENT], [ABSENT], [1]],
    ]


def test_a_site_may_answer_while_its_round_is_open_and_its_answer_stays() -> None:
    one = talk(ANY)
    waiting = one.step(one.init(), [None, Absent(1), None])
    queries = one.query(waiting)
    assert queries is not None
    assert [message is None for message in queries.messages] == [False, True, True]
    answered = one.step(waiting, [None, Tally(1, (4, 0)), None])
    still = one.step(answered, [None, Absent(1), None])
    closed = one.step(still, [Tally(1, (0, 0)), None, None])
    assert closed.answered[0].tolist() == [[0, 0], [4, 0], [0, 0]]


@pytest.mark.parametrize(("quorum", "closes"), [(1, True), (2, True), (3, False), (0.8, True), (0.9, False)])
def test_a_round_with_too_few_stays_open_and_asks_the_absent_again(quorum: float, closes: bool) -> None:
    one = talk(quorum_of(np.array([0.2, 0.3, 0.5]), quorum))
    first = one.query(one.init())
    assert first is not None
    log = one.step(one.init(), [Absent(1), Tally(1, (4, 0)), None])
    assert log.rounds == closes
    if not closes:
        again = one.query(log)
        assert again is not None
        assert again.messages == [first.messages[0], None, None]


def test_nobody_at_all_never_closes_a_round() -> None:
    one = talk(ANY)
    log = one.step(one.init(), [Tally(1, (0, 0)), Tally(1, (0, 0)), None])
    assert one.query(one.step(log, [Absent(2)] * 3)) == one.query(log)


@pytest.mark.parametrize(
    ("quorum", "replies", "match"),
    [
        (None, [Absent(1), None, None], "needs every site"),
        (ANY, [Absent(2), None, None], "site 0 cannot be absent from round 1"),
        (ANY, [None, None, Absent(1)], "site 2 cannot be absent from round 1"),
    ],
)
def test_an_absence_that_does_not_fit_is_refused(
    quorum: Quorum | None, replies: list[Message | None], match: str
) -> None:
    one = talk(quorum)
    with pytest.raises(BadInput, match=match):
        one.step(one.init(), replies)


@pytest.mark.parametrize("quorum", [0, 4, -1, True, 0.0, 1.5, math.nan])
def test_a_quorum_is_a_number_of_sites_or_a_part_of_the_shares(quorum: float) -> None:
    with pytest.raises(BadInput, match="quorum must be a number of sites from 1 to 3"):
        quorum_of(np.array([0.2, 0.3, 0.5]), quorum)


def gathered(need: Any, said: list[list[int]], left: int = 100) -> tuple[list[list[int]], Any]:
    """Return what is asked round after round, and what is given in the end."""
    attendance = Attendance(np.array([0.9, 0.1]))
    gathering = attendance.gather(Ask(np.array([1.0]), np.array([[10], [4]])), lambda: np.full(2, left), need)
    asked = [next(gathering).counts[:, 0].tolist()]
    for answers in said:
        try:
            asked.append(gathering.send(np.array(answers)[:, None]).counts[:, 0].tolist())
        except StopIteration as end:
            return asked, end.value
    return asked, None


def test_the_absent_are_asked_alone_until_they_answer_or_are_away() -> None:
    missed = [[3, ABSENT], *[[0, ABSENT]] * (PATIENCE - 1)]
    asked, given = gathered(LOCAL, [[3, ABSENT], [0, 2]])
    assert asked == [[10, 4], [0, 4]]
    assert given.ones.tolist() == [[3], [2]]
    assert (given.absent, given.rounds) == (None, 2)
    asked, given = gathered(LOCAL, missed)
    assert len(asked) == PATIENCE
    assert given.absent.tolist() == [False, True]
    assert (given.counts.tolist(), given.ones.tolist()) == ([[10], [0]], [[3], [0]])
    for need in (GUIDING, CERTIFYING):  # a tenth of the shares is too much to go on without
        assert gathered(need, missed)[1] is None
    # what was lost on the way is not asked again
    asked, given = gathered(GUIDING, [[3, LOST], [0, LOST], [0, 1]], left=9)
    assert asked == [[10, 4], [0, 4], [0, 1]]
    assert given.lost.tolist() == [0, 8]
    assert gathered(GUIDING, [[3, LOST]], left=4)[1].absent.tolist() == [False, True]


def test_a_stage_is_completed_by_the_curves_of_the_absent() -> None:
    """Letters without noise of unlike sites: what the large one would have said is put in, and not what others say."""
    points, crowd = np.array([0.8, 0.9, 1.0]), PLAN.crowd
    below = special.ndtr(points - np.array(PLACES)[:, None])
    counts = np.full((3, 3), 10**9)
    ones = np.rint(counts * ((1 - crowd.rates[:, None]) / 2 + crowd.rates[:, None] * (1 - below))).astype(np.int64)
    before = decode(crowd, points, counts, ones)
    kept = [KeptStage(before, points - 0.9, 0.1, 1e-3, 0.9, 0.0)]
    absent, here = np.array([False, False, True]), counts * np.array([[1], [1], [0]])
    heard = decode(crowd, points, here, np.minimum(ones, here), absent)
    found = completed(heard, kept, crowd, 0.5)
    assert found.below == pytest.approx(SHARES @ below, abs=1e-6)
    assert np.all(np.abs(heard.below - SHARES @ below) > 0.01)
    assert found.variances == pytest.approx(before.variances, rel=0.01)


@pytest.mark.parametrize("name", ["certified", "sequence"])
@pytest.mark.parametrize("last", [0, 14])
def test_a_certificate_ends_with_what_was_heard_where_a_large_site_is_gone_for_good(name: str, last: int) -> None:
    method = METHODS[name]()
    state, whole = method.init(), run(METHODS[name](), lambda rounds, queries: set())[0]
    while (queries := method.query(state)) is not None:
        said = [
            None
            if message is None
            else Absent(queries.round, gone=True)
            if k == 2 and queries.round > last
            else tally(k, message)
            for k, message in enumerate(queries.messages)
        ]
        state = method.step(state, said)
    assert state.rounds == last + 1
    result = method.outcome(state)
    assert LEFT in result.warnings
    assert result.interval.low <= whole.interval.low < mixture(SHARES) < whole.interval.high <= result.interval.high
    assert math.isfinite(result.interval.low) == (last > 0)


def test_stages_go_on_at_once_without_a_site_that_is_gone_for_good() -> None:
    method, gone = StagedQuantile(PLAN), []
    state = method.init()
    while (queries := method.query(state)) is not None:
        here = [message is not None for message in queries.messages]
        if queries.round > 19:
            gone.append(here[2])
        said = [
            None
            if message is None
            else Absent(queries.round, gone=True)
            if k == 2 and queries.round > 19
            else tally(k, message)
            for k, message in enumerate(queries.messages)
        ]
        state = method.step(state, said)
    assert gone == [True, *[False] * (len(gone) - 1)]  # asked once more, and never again
    result = method.outcome(state)
    assert result.interval.low < mixture(SHARES) < result.interval.high
    assert result.method == "staged"
