"""The certified conversation, without sites: rounds, reports, bounds, replay, and what it leaves of any law."""

import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.inference.quantile.error_budgets import folded, hull
from sottovoce.server.quantile.asking import Ask, SiteProfile, decode
from sottovoce.server.quantile.certified import lottery
from sottovoce.server.quantile.certified.lottery import Lottery
from sottovoce.server.quantile.certified.protocol import (
    MOST_ROUNDS,
    Certificate,
    CertifiedStudy,
    certified_protocol,
)
from sottovoce.server.quantile.solutions import CertifiedSolution
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.populations import blend, population

Answer = Callable[[Ask], Ints]
ONE = SiteProfile(np.ones(1), np.array([0.75]), np.array([12_000]))
THREE = SiteProfile(np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.8, 0.3]), np.array([50_001, 30_000, 20_017]))
SMALL = SiteProfile(np.array([0.6, 0.4]), np.array([0.9, 0.8]), np.array([400, 300]))
CROWDS = {"one": ONE, "three": THREE, "small": SMALL}
LAWS = {
    "normal": population("normal"),
    "far": population("student", 3.0).moved(1e6, 10.0),
    "lognormal": population("lognormal", 1.0).moved(0.0, 3000.0),
    "gap": blend([population("uniform"), population("uniform").moved(9.0)], [0.5, 0.5]),
}


class Atom:
    """Records that all have one value."""

    def __init__(self, value: float) -> None:
        self._value = value

    def cdf(self, points: Any) -> Any:
        return (np.asarray(points) >= self._value).astype(np.float64)


def drawn(distribution: Any, crowd: SiteProfile, seed: int) -> Answer:
    source = dice(seed).generator()

    def answer(ask: Ask) -> Ints:
        above = np.clip(1 - np.asarray(distribution.cdf(ask.points)), 0.0, 1.0)
        letters = (1 - crowd.rates[:, None]) / 2 + crowd.rates[:, None] * above
        return np.asarray(source.binomial(ask.counts, letters), dtype=np.int64)

    return answer


def drive(conversation: Generator[Ask, Ints, Certificate], answer: Answer) -> tuple[Certificate, list[Ask]]:
    asks = []
    try:
        ask = next(conversation)
        while True:
            assert np.all(np.isfinite(ask.points))
            assert np.all(ask.counts >= 0)
            asks.append(ask)
            ask = conversation.send(answer(ask))
    except StopIteration as stop:
        return stop.value, asks


def study(crowd: SiteProfile, tau: float = 0.5, **more: Any) -> CertifiedStudy:
    return CertifiedStudy(tau, crowd, more.pop("alpha", 0.05), b"coin", **more)


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("tau", [0.2, 0.5])
def test_the_planned_reports_answer_in_few_rounds_and_cover(name: str, crowd: str, tau: float) -> None:
    # confidence 1 - 1e-6: 24 intervals, false alarm 3e-5 for the fixed seed, once
    people, distribution = CROWDS[crowd], LAWS[name]
    left, asks = drive(certified_protocol(study(people, tau)), drawn(distribution, people, 1))
    low, high = CertifiedSolution(left).interval(1 - 1e-6)
    assert low <= float(distribution.quantile(tau)) <= high
    low, high = CertifiedSolution(left).interval(0.95)
    assert low <= left.estimate <= high
    assert len(asks) <= MOST_ROUNDS
    planned = Lottery(people, b"coin").planned
    assert sum(int(ask.counts.sum()) for ask in asks) <= planned
    assert np.all(np.sum([ask.counts.sum(axis=1) for ask in asks], axis=0) <= people.sizes)
    # what the search asked is no evidence; all other planned reports are, those that found nobody too
    evidence = sum(piece.reports for piece in left.evidence)
    assert 0.6 * planned < evidence < planned
    searched = [ask for ask in asks if len(ask.points) > 2]
    assert evidence == planned - sum(int(ask.counts.sum()) for ask in searched)
    assert (left.rounds_before, left.reports_before) == (0, 0)


@pytest.mark.parametrize("crowd", CROWDS)
def test_evidence_is_labelled_within_its_horizon_and_marked_round_by_round(crowd: str) -> None:
    people = CROWDS[crowd]
    left, asks = drive(certified_protocol(study(people)), drawn(LAWS["normal"], people, 2))
    assert all(0 <= piece.below <= piece.reports <= piece.horizon for piece in left.evidence)
    assert {piece.side for piece in left.evidence} == {-1, 1}
    for side in (-1, 1):
        *_, last = (piece for piece in left.evidence if piece.side == side)
        assert last.horizon == last.reports
    rounds = [mark.rounds for mark in left.milestones]
    assert rounds == list(range(rounds[0], len(asks) + 1))
    assert left.milestones[-1].reports == sum(int(ask.counts.sum()) for ask in asks)
    assert left.milestones[-1].evidence == len(left.evidence)
    asked = {float(point) for ask in asks[rounds[0] - 1 :] for point in ask.points}
    assert {piece.point for piece in left.evidence} == asked


def test_the_success_probability_is_that_of_the_lottery() -> None:
    left, _ = drive(certified_protocol(study(THREE, 0.3)), drawn(LAWS["normal"], THREE, 3))
    rate = 1 / float(np.sum(THREE.shares / THREE.rates))
    assert left.success == pytest.approx((1 - rate) / 2 + 0.3 * rate)


@pytest.mark.parametrize("crowd", CROWDS)
def test_the_same_answers_give_the_same_end_and_another_coin_other_lots(crowd: str) -> None:
    people = CROWDS[crowd]
    first, asks = drive(certified_protocol(study(people)), drawn(LAWS["lognormal"], people, 4))
    again, same = drive(certified_protocol(study(people)), drawn(LAWS["lognormal"], people, 4))
    assert first == again
    for one, two in zip(asks, same, strict=True):
        assert one.points.tolist() == two.points.tolist()
        assert one.counts.tolist() == two.counts.tolist()
    other = certified_protocol(CertifiedStudy(0.5, people, 0.05, b"other"))
    assert (next(other).counts.tolist() == asks[0].counts.tolist()) == (len(people.sizes) == 1)


@pytest.mark.parametrize("bounds", [(-8.0, 24.0), (0.5, 8.0), (-1e12, 1e12), (-1e300, 1e300), (0.0, 5e-324)])
def test_nothing_is_asked_or_told_outside_public_bounds(bounds: tuple[float, float]) -> None:
    left, asks = drive(certified_protocol(study(ONE, bounds=bounds)), drawn(LAWS["normal"], ONE, 5))
    assert all(bounds[0] <= float(point) <= bounds[1] for ask in asks for point in ask.points)
    low, high = CertifiedSolution(left).interval(0.95)
    assert bounds[0] <= low <= left.estimate <= high <= bounds[1]
    if bounds[0] < 0:
        assert low < 0.0 < high


@pytest.mark.parametrize(("shift", "factor"), [(0.0, 2.0**-40), (0.0, 2.0**20), (0.0, 2.0**900), (0.0, 2.0**-900)])
def test_with_bounds_and_a_scale_the_same_questions_are_asked_in_every_unit(shift: float, factor: float) -> None:
    distribution = population("normal").moved(3.0, 0.05)
    plain = study(ONE, bounds=(-8.0, 24.0), scale=1.0)
    moved = study(ONE, bounds=(shift - 8.0 * factor, shift + 24.0 * factor), scale=factor)
    one, asks = drive(certified_protocol(plain), drawn(distribution, ONE, 6))
    two, same = drive(certified_protocol(moved), drawn(distribution.moved(shift, factor), ONE, 6))
    assert [ask.points.tolist() for ask in same] == [(shift + factor * ask.points).tolist() for ask in asks]
    assert CertifiedSolution(two).interval(0.95) == tuple(factor * end for end in CertifiedSolution(one).interval(0.95))


@pytest.mark.parametrize("value", [0.0, 5.0, -1e6, 1e9])
def test_an_atom_is_within_its_interval(value: float) -> None:
    for crowd in (ONE, THREE):
        left, _ = drive(certified_protocol(study(crowd)), drawn(Atom(value), crowd, 7))
        low, high = CertifiedSolution(left).interval(1 - 1e-6)
        assert low < value <= high
        low, high = CertifiedSolution(left).interval(0.95)
        assert low < value <= high
        assert high - low < 0.01 * max(1.0, abs(value))


@pytest.mark.parametrize("ones", [lambda ask: ask.counts * 0, lambda ask: ask.counts * 1, lambda ask: ask.counts // 2])
def test_answers_that_say_nothing_of_the_question_leave_an_end_open(ones: Answer) -> None:
    for crowd in CROWDS.values():
        left, _ = drive(certified_protocol(study(crowd)), ones)
        low, high = CertifiedSolution(left).interval(0.95)
        assert not (math.isfinite(low) and math.isfinite(high))
        assert low <= left.estimate <= high
        assert math.isfinite(left.estimate)


def test_lots_that_find_nobody_count_against_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    # more reports are planned than there are records, and all say that the quantile lies above
    monkeypatch.setattr(lottery, "SPARE", -9.0)
    left, asks = drive(certified_protocol(study(SMALL)), lambda ask: ask.counts)
    pairs = [ask for ask in asks if len(ask.points) == 2]
    answered = [int(count) for ask in pairs for count in ask.counts.sum(axis=0)]
    missing = [piece.reports - count for piece, count in zip(left.evidence, answered, strict=True)]
    assert min(missing) == 0
    assert sum(missing) > 20
    assert [piece.below for piece in left.evidence] == [
        lots if piece.side < 0 else 0 for piece, lots in zip(left.evidence, missing, strict=True)
    ]


def test_known_answers_guide_and_are_no_evidence() -> None:
    points = np.linspace(-2.0, 2.0, 9)
    counts = np.full((1, 9), 400)
    letters = (1 - 0.75) / 2 + 0.75 * (1 - LAWS["normal"].cdf(points))
    known = decode(ONE, points, counts, np.rint(counts * letters).astype(np.int64))
    alone, asked = drive(certified_protocol(study(ONE)), drawn(LAWS["normal"], ONE, 9))
    helped, fewer = drive(certified_protocol(study(ONE), [known], (4, 3_600)), drawn(LAWS["normal"], ONE, 9))
    assert (helped.rounds_before, helped.reports_before) == (4, 3_600)
    searched = [sum(int(ask.counts.sum()) for ask in asks if len(ask.points) > 2) for asks in (asked, fewer)]
    assert searched[1] < searched[0]
    assert sum(piece.reports for piece in helped.evidence) == 12_000 - searched[1]
    assert sum(piece.reports for piece in alone.evidence) == 12_000 - searched[0]
    rows = CertifiedSolution(helped).trajectory(0.95)
    assert rows[-1].reports == 3_600 + 12_000
    assert rows[-1].round == 4 + len(fewer)


def test_the_interval_is_the_hull_of_the_evidence() -> None:
    left, _ = drive(certified_protocol(study(THREE, 0.7, alpha=0.1)), drawn(LAWS["lognormal"], THREE, 10))
    assert CertifiedSolution(left).interval(0.9) == hull(folded(left.evidence, left.success, np.array([0.1])))


def test_a_study_for_a_lower_level_is_shorter() -> None:
    lengths: dict[float, list[float]] = {0.5: [], 0.1: []}
    for seed in range(10, 17):
        for alpha, found in lengths.items():
            left, _ = drive(certified_protocol(study(THREE, 0.7, alpha=alpha)), drawn(LAWS["lognormal"], THREE, seed))
            low, high = CertifiedSolution(left).interval(1 - alpha)
            found.append(high - low)
    assert np.median(lengths[0.5]) < 0.8 * np.median(lengths[0.1])


@pytest.mark.parametrize("sizes", [(30,), (3, 4, 5), (1, 1), (2,), (1,)])
def test_a_handful_of_records_crashes_nothing(sizes: tuple[int, ...]) -> None:
    number = len(sizes)
    crowd = SiteProfile(np.full(number, 1 / number), np.full(number, 0.9), np.array(sizes))
    for tau in (0.05, 0.5):
        left, asks = drive(certified_protocol(study(crowd, tau)), drawn(LAWS["normal"], crowd, 11))
        low, high = CertifiedSolution(left).interval(0.95)
        assert low <= left.estimate <= high
        assert np.all(np.sum([ask.counts.sum(axis=1) for ask in asks], axis=0) <= crowd.sizes)
