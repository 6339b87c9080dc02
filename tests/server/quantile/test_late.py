"""Answers that come a round late: counted under the round that asked them, in every method, and after any restart."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sottovoce.core import codec
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.core.unit import NUMBER
from sottovoce.inference.quantile.error_budgets import Evidence
from sottovoce.inference.quantile.wealth import Wager
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile, late_answers
from sottovoce.server.quantile.certified.protocol import late_piece
from sottovoce.server.quantile.conversation import Log
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.levels import StagedQuantiles, together
from sottovoce.server.quantile.levels_plan import plan_levels
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import plan_quantile
from sottovoce.server.quantile.sequence import SequenceQuantile
from sottovoce.server.quantile.solutions import CertifiedSolution, FittedSolution, SequenceSolution, StagedSolution
from sottovoce.sim import dice

RATE = math.tanh(0.5)  # of epsilon 1
METHODS = ("sequence", "certified", "staged", "scarce", "levels")
Method = SequenceQuantile | StagedQuantile | StagedQuantiles
Draw = Callable[[Any, int], Floats]


def begun(method: str, people: int = 20_000, coin: bytes = b"c") -> Method:
    roster = Roster(("people",), (people,), NUMBER)
    if method == "levels":
        plan = plan_levels(roster, [0.5, 0.8], 1.0, bounds=(0, 200))
        return StagedQuantiles(plan.plans, plan.parts, 0.95, coin)
    certified, tau = method in ("certified", "sequence"), 0.9 if method == "scarce" else 0.5
    plan_ = plan_quantile(roster, tau, 1.0, bounds=(0, 200), limits=CERTIFIED, certified=certified)
    return SequenceQuantile(plan_, 0.95, coin) if method == "sequence" else StagedQuantile(plan_, 0.95, coin, certified)


def letters(generator: Any, draw: Draw, points: Floats, periods: Floats | None, counts: Ints) -> Ints:
    """Return how many of so many people, at each point, send a one."""
    ones = np.zeros_like(counts)
    for k, point in enumerate(points):
        values = draw(generator, int(counts[0, k]))
        period = 0.0 if periods is None else periods[k]
        above = values > point if period == 0 else np.mod((values - point) / period, 1.0) >= 0.5
        ones[0, k] = np.count_nonzero(above ^ (generator.random(len(values)) < (1 - RATE) / 2))
    return ones


def talked(method: Method, seed: int, draw: Draw, late: tuple[float, float] = (0.05, 0.15)) -> list[Log]:
    """Hold a conversation of which 70 to 110 % come, and of these some a round late; return all its logs."""
    generator = dice(seed).generator()
    logs, before = [method.init()], None
    while (queries := method.query(logs[-1])) is not None:
        asked: Any = queries.messages
        came = np.maximum((asked.counts * generator.uniform(0.7, 1.1)).astype(np.int64), asked.counts > 0)
        after = (came * generator.uniform(*late)).astype(np.int64)
        said = [letters(generator, draw, asked.points, asked.periods, part) for part in (came - after, after)]
        logs.append(method.arrive(logs[-1], said[0], came - after, before))
        before = said[1], after
    return logs


def ages(generator: Any, count: int) -> Floats:
    """Whole ages, whose median is 20."""
    return np.asarray(np.floor(80 * generator.random(count) ** 2))


def heaps(generator: Any, count: int) -> Floats:
    """Waits of which two in three are told in tens; the median is 30."""
    waits = generator.gamma(2.0, 18.0, count)
    return np.asarray(np.where(generator.random(count) < 2 / 3, np.round(waits, -1), np.round(waits)))


def zeros(generator: Any, count: int) -> Floats:
    """Amounts of which two in five are zero; the median is 10 log(6/5)."""
    return np.where(generator.random(count) < 0.4, 0.0, generator.exponential(10.0, count))


@pytest.mark.parametrize("name", METHODS)
def test_nothing_that_came_late_changes_nothing(name: str) -> None:
    plain, other = begun(name), begun(name)
    log, again, before = plain.init(), other.init(), None
    generator = dice(5).generator()
    while (queries := plain.query(log)) is not None:
        asked: Any = queries.messages
        ones = letters(generator, ages, asked.points, asked.periods, asked.counts)
        log = plain.arrive(log, ones, asked.counts)
        again = other.arrive(again, ones, asked.counts, before)
        before = np.zeros_like(ones), np.zeros_like(ones)
    assert codec.to_bytes(log) == codec.to_bytes(again)
    assert plain.outcome(log).to_dict() == other.outcome(again).to_dict()
    assert again.late == 0


@pytest.mark.parametrize("name", METHODS)
def test_a_replay_is_the_same_bit_for_bit(name: str) -> None:
    method = begun(name)
    logs = talked(method, 6, ages)
    for before, after in zip(logs[::4], logs[1::4], strict=False):
        stored = codec.from_bytes(codec.to_bytes(before), Log)
        again = begun(name).query(stored)
        assert again is not None
        asked: Any = again.messages
        ask = after.asked[-1]
        assert asked.points.tobytes() == ask.points.tobytes()
        assert asked.counts.tobytes() == ask.counts.tobytes()
    stored = codec.from_bytes(codec.to_bytes(logs[-1]), Log)
    assert begun(name).outcome(stored).to_dict() == method.outcome(logs[-1]).to_dict()
    assert stored.late == logs[-1].late > 0
    assert stored.reports == sum(int(answered[1].sum()) for answered in stored.answered)


def test_what_is_asked_next_does_not_depend_on_what_is_still_to_come() -> None:
    """The question of a round is the same whatever comes late to the round before; the one after it may differ."""
    for name in METHODS:
        generator, method = dice(7).generator(), begun(name)
        log, before, left = method.init(), None, 6
        while left:
            asked: Any = method.query(log).messages  # type: ignore[union-attr]
            ones = letters(generator, ages, asked.points, asked.periods, asked.counts)
            heard = log
            log = method.arrive(log, ones, asked.counts, before)
            before, left = (ones // 2, asked.counts // 2), left - 1
        other = begun(name).arrive(heard, ones, asked.counts)
        assert other.asked[-1].points.tobytes() == log.asked[-1].points.tobytes()
        assert not np.array_equal(other.answered[-1], log.answered[-1])


def test_late_letters_are_evidence_at_their_own_point_before_that_of_the_next_round() -> None:
    method = begun("certified")
    log = talked(method, 8, ages)[-1]
    solution: Any = method.outcome(log).solution  # type: ignore[union-attr]
    assert isinstance(solution, CertifiedSolution)
    told, before = [], None
    for ask, answered in zip(log.asked, log.answered, strict=True):
        n = len(ask.points)
        late = late_answers(answered, n)
        rounds = [(ask.points, answered[:, 0, :n])] if n <= 2 else []  # a search asks more, and is no evidence
        if before is not None and late is not None:
            rounds.insert(0, (before, late[:, 0]))
        told += [
            (point, count, count - ones)
            for points, said in rounds
            for point, ones, count in zip(points, *said, strict=True)
            if count
        ]
        before = ask.points if n <= 2 else None
    assert [(piece.point, piece.reports, piece.below) for piece in solution.certificate.evidence] == told
    assert len(told) > 2 * len([ask for ask in log.asked if len(ask.points) <= 2])


def test_the_evidence_of_late_letters_is_that_of_its_query_over_what_is_left_of_the_horizon() -> None:
    piece = Evidence(3.0, -1, 40, 12, 100, 0.5)
    assert late_piece(piece, 5, 2) == Evidence(3.0, -1, 5, 2, 60, 0.0)
    assert late_piece(piece, 70, 2) == Evidence(3.0, -1, 70, 2, 70, 0.0)


def test_late_letters_are_wagered_under_the_bet_of_their_own_question() -> None:
    method = begun("sequence")
    log = talked(method, 9, ages)[-1]
    solution: Any = method.outcome(log).solution  # type: ignore[union-attr]
    assert isinstance(solution, SequenceSolution)
    wagers: tuple[Wager, ...] = solution.sequel.wagers
    marks = solution.sequel.milestones
    starts = [0, *(mark.wagers for mark in marks[:-1])]
    assert sum(mark.wagers - start for mark, start in zip(marks, starts, strict=True)) == len(wagers)
    late = 0
    for before, start, mark in zip(starts[:-1], starts[1:], marks[1:], strict=True):
        older, newer = wagers[before:start][-2:], wagers[start : mark.wagers]
        for extra in newer[:-2]:
            late += extra.reports
            own = next(wager for wager in older if wager.point == extra.point and wager.side == extra.side)
            assert extra == own._replace(reports=extra.reports, below=extra.below)
    assert 0 < late <= log.late


@pytest.mark.parametrize("name", ["staged", "scarce"])
def test_a_stage_has_the_sums_of_all_who_answered_it(name: str) -> None:
    def smooth(generator: Any, count: int) -> Floats:
        return np.asarray(generator.gamma(4.0, 10.0, count))

    method = begun(name)
    log = talked(method, 10, smooth)[-1]
    solution: Any = method.outcome(log).solution  # type: ignore[union-attr]
    assert isinstance(solution, StagedSolution | FittedSolution)
    asked, answered = log.asked[-2], log.answered[-2]
    late = late_answers(log.answered[-1], len(log.asked[-1].points))
    assert late is not None
    ones, counts = answered[:, 0, : len(asked.points)] + late[:, 0]
    above = (ones / counts - (1 - RATE) / 2) / RATE
    if isinstance(solution, StagedSolution):
        assert np.allclose(solution.local.stages[-2].mixed, 1 - above - 0.5, rtol=0, atol=1e-12)
    else:
        assert np.allclose(solution.fitted.answers.values[-4:-2], 1 - above, rtol=0, atol=1e-12)


def test_answers_join_those_of_the_question_before() -> None:
    crowd = SiteProfile(np.array([1.0]), np.array([0.5]), np.array([1_000]))
    talker = QueryAllocator(crowd)
    first, second = talker.ask([1.0, 2.0], [0.1, 0.1]), talker.ask([3.0], [0.1])
    next(first)
    with pytest.raises(StopIteration) as ended:
        first.send(np.array([[[40, 20]], [[100, 90]]]))
    heard = ended.value.value
    assert talker.with_late(heard) is heard
    next(second)
    with pytest.raises(StopIteration):
        second.send(np.array([[[30, 2, 0]], [[80, 10, 0]]]))
    now = talker.with_late(heard)
    assert now.ones.tolist() == [[42, 20]]
    assert now.counts.tolist() == [[110, 90]]
    assert talker.heard[0] is now
    assert talker.reports == 280
    assert talker.asked.tolist() == [280]


def test_joined_conversations_hear_what_came_late_to_their_own_question() -> None:
    told: dict[str, list[list[int]]] = {"a": [], "b": []}

    def talk(name: str, rounds: int, points: int) -> Any:
        for k in range(rounds):
            ones = yield Ask(np.arange(float(points + k)), np.full((1, points + k), 9))
            told[name].append(ones[1, 0].tolist())
        return name

    joined = together([talk("a", 2, 1), talk("b", 3, 2)])
    assert len(next(joined).points) == 3
    sent = [[1, 2, 3], [4, 5, 6, 7, 8, 10, 20, 30], [1, 1, 1, 1, 40, 50, 60, 70, 80]]
    for counts in sent[:2]:
        joined.send(np.array([[[0] * len(counts)], [counts]]))
    with pytest.raises(StopIteration) as ended:
        joined.send(np.array([[[0] * 9], [sent[2]]]))
    assert ended.value.value == ["a", "b"]
    # a asks at 1 and then 2 points, b at 2, 3 and 4; a has ended when its second round has late answers
    assert told == {"a": [[1], [4, 5, 10]], "b": [[2, 3], [6, 7, 8, 20, 30], [1, 1, 1, 1, 60, 70, 80]]}


def test_what_cannot_have_come_late_is_refused() -> None:
    method = begun("certified")
    log = method.init()
    first: Any = method.query(log).messages  # type: ignore[union-attr]
    none, some = np.zeros_like(first.counts), np.ones_like(first.counts)
    with pytest.raises(BadInput, match="late to round 0"):
        method.arrive(log, none, first.counts, (none, none))
    log = method.arrive(log, none, first.counts)
    second: Any = method.query(log).messages  # type: ignore[union-attr]
    for ones, counts in ((some, none), (-some, some), (none, -some)):
        with pytest.raises(BadInput, match="cannot have answered it"):
            method.arrive(log, np.zeros_like(second.counts), second.counts, (ones, counts))
    for shape in (some[:, 1:], some[0], np.ones((2, *some.shape[1:]), dtype=np.int64)):
        with pytest.raises(BadInput, match="give its points"):
            method.arrive(log, np.zeros_like(second.counts), second.counts, (shape, shape))


@pytest.mark.parametrize("name", ["certified", "sequence", "staged"])
def test_coverage_with_answers_that_come_late(name: str) -> None:
    """Of each round 70 to 110 % come, 5 to 15 % of them a round late; an interval of 95 % covers, of ordinary data."""
    missed = runs = 0
    for truth, draw in ((20.0, ages), (30.0, heaps), (10 * math.log(1.2), zeros)):
        for run in range(14):
            method = begun(name, 4_000, coin=bytes([run]))
            interval: Any = method.outcome(talked(method, 1_000 + run, draw)[-1]).interval  # type: ignore[union-attr]
            missed, runs = missed + (not interval.low <= truth <= interval.high), runs + 1
    assert runs == 42
    assert missed <= 11  # binomial(42, .05) is above it with probability 8e-7
