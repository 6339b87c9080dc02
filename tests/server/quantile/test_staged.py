"""The whole staged conversation, without sites: answers are drawn from known distribution functions."""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.inference.quantile.inversion import invert
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator, SiteProfile
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.layouts import Layout, five, pair, three
from sottovoce.server.quantile.method import OPEN, TURNED, staged_warnings
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.search import Found
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import LATER, Local, StagedStudy, _stages, staged_protocol
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.populations import Population, blend, population

Answer = Callable[[Ask], Ints]
Left = Local | Fitted | Certificate
Conversation = Generator[Ask, Ints, Left]
CROWD = SiteProfile(np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.8, 0.3]), np.array([50_001, 30_000, 20_017]))
LAWS = {
    "normal": population("normal"),
    "large unit": population("exponential").moved(0.0, 1e6),
    "tiny unit": population("gumbel").moved(0.0, 1e-6),
    "far": population("student", 3.0).moved(1e6, 1.0),
    "lognormal": population("lognormal", 1.0).moved(0.0, 3000.0),
    "bounded": population("uniform"),
}
MODES = blend([population("normal").moved(-3.0), population("normal").moved(3.0)], [0.5, 0.5])
LARGE = SiteProfile(CROWD.shares, CROWD.rates, CROWD.sizes * 20)
NOISES = [1e-4, 1e-3, 5e-3, 0.02]


def expected(distribution: Population, crowd: SiteProfile = CROWD) -> Answer:
    """Answer with the expected letters, rounded."""
    return lambda ask: np.round(ask.counts * _letters(distribution, crowd, ask)).astype(np.int64)


def drawn(distribution: Population, seed: int, crowd: SiteProfile = CROWD) -> Answer:
    source = dice(seed).generator()
    return lambda ask: source.binomial(ask.counts, _letters(distribution, crowd, ask)).astype(np.int64)


def _letters(distribution: Population, crowd: SiteProfile, ask: Ask) -> Any:
    above = np.clip(1 - np.asarray(distribution.cdf(ask.points)), 0.0, 1.0)
    return (1 - crowd.rates[:, None]) / 2 + crowd.rates[:, None] * above


def drive(conversation: Conversation, answer: Answer) -> tuple[Local, list[Ask], list[Ints]]:
    local, asks, replies = end_of(conversation, answer)
    assert isinstance(local, Local)  # all crowds here have records enough for stages
    return local, asks, replies


def end_of(conversation: Conversation, answer: Answer) -> tuple[Left, list[Ask], list[Ints]]:
    asks, replies = [], []
    try:
        ask = next(conversation)
        while True:
            assert np.all(np.isfinite(ask.points))
            assert np.all(ask.counts >= 0)
            asks.append(ask)
            replies.append(answer(ask))
            ask = conversation.send(replies[-1])
    except StopIteration as stop:
        return stop.value, asks, replies


def certified(conversation: Conversation, answer: Answer) -> tuple[Certificate, list[Ask]]:
    """Return what a conversation leaves that must have gone on as certified, and what it asked."""
    left, asks, _ = end_of(conversation, answer)
    assert isinstance(left, Certificate)
    assert 0 < left.rounds_before < len(asks)
    assert np.all(np.sum([ask.counts.sum(axis=1) for ask in asks], axis=0) <= CROWD.sizes)
    return left, asks


def interval(local: Local, z: float = 5.0) -> tuple[float, float, float]:
    point, low, high = invert(local.stages, local.centre, local.reach, z)
    return point, low, high


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("tau", [0.2, 0.5, 0.8])
def test_the_quantile_is_covered_in_any_unit_and_every_record_answers_once(name: str, tau: float) -> None:
    # five standard errors: 18 intervals, false alarm 18 x 6e-7 = 1e-5 for the fixed seed, once
    distribution = LAWS[name]
    local, asks, _ = drive(staged_protocol(StagedStudy(tau, CROWD)), drawn(distribution, 1))
    _, low, high = interval(local)
    assert low <= float(distribution.quantile(tau)) <= high
    spread = float(distribution.quantile(0.75) - distribution.quantile(0.25))
    _, low, high = interval(local, 1.96)
    assert high - low < 0.4 * spread
    assert np.sum([ask.counts.sum(axis=1) for ask in asks], axis=0).tolist() == CROWD.sizes.tolist()
    assert len(asks) < 60


def test_expected_answers_are_inverted_almost_exactly() -> None:
    for distribution in (population("normal"), population("exponential"), population("logistic")):
        local, _, _ = drive(staged_protocol(StagedStudy(0.7, CROWD)), expected(distribution))
        assert abs(float(distribution.cdf(interval(local)[0])) - 0.7) < 0.5 * CROWD.unit_variance**0.5


def test_the_same_answers_give_the_same_end() -> None:
    local, asks, replies = drive(staged_protocol(StagedStudy(0.6, CROWD)), drawn(LAWS["lognormal"], 3))
    again = iter(replies)
    second, same, _ = drive(staged_protocol(StagedStudy(0.6, CROWD)), lambda ask: next(again))
    assert interval(second, 1.96) == interval(local, 1.96)
    assert [ask.points.tolist() for ask in same] == [ask.points.tolist() for ask in asks]


def test_milestones_ascend_and_end_with_everything() -> None:
    local, asks, _ = drive(staged_protocol(StagedStudy(0.5, CROWD)), drawn(LAWS["normal"], 4))
    rounds = [mark.rounds for mark in local.milestones]
    reports = [mark.reports for mark in local.milestones]
    assert rounds == sorted(set(rounds))
    assert rounds[-1] == len(asks)
    assert reports == sorted(set(reports))
    assert reports[-1] == int(CROWD.sizes.sum())
    assert len(local.milestones) == len(local.stages)
    assert local.milestones[-1].centre == local.centre


@pytest.mark.parametrize(
    ("law", "watch"),
    [(LAWS["normal"], False), (LAWS["normal"], True), (MODES, False)],
    ids=["one mode", "one mode, watched", "two modes"],
)
def test_stages_grow_and_have_three_points_or_five_and_two_in_the_end(law: Population, watch: bool) -> None:
    study = StagedStudy(0.5, LARGE, watch=watch)
    local, asks, _ = drive(staged_protocol(study), expected(law, LARGE))
    widths, sizes = [len(stage.places) for stage in local.stages], [int(ask.counts.sum()) for ask in asks]
    sizes = sizes[-len(widths) :]
    assert sizes[:-1] == sorted(sizes[:-1])  # the last takes what is left
    used = np.cumsum(sizes) / LARGE.sizes.sum()
    assert all(watch and part > LATER for part, width in zip(used, widths, strict=True) if width == 2)
    assert (widths[-1] == 2) == watch
    stages = [width for width in widths if width > 2]
    assert set(stages) == ({3, 5} if law is MODES else {3})
    assert stages == sorted(stages)  # what was seen to bend goes on with five


def test_a_dip_between_two_modes_is_noticed_and_a_plain_law_is_not() -> None:
    watched, _, _ = end_of(staged_protocol(StagedStudy(0.5, LARGE)), expected(MODES, LARGE))
    assert isinstance(watched, Certificate)
    local, _, _ = drive(staged_protocol(StagedStudy(0.5, LARGE, watch=False)), expected(MODES, LARGE))
    assert local.dips
    assert staged_warnings(local, "staged")[0].endswith('compare with method="certified"')
    for tau in (0.2, 0.5, 0.8):
        plain, _, _ = drive(staged_protocol(StagedStudy(tau, LARGE)), expected(population("normal"), LARGE))
        assert not plain.dips


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_a_pilot_as_narrow_as_doubles_go_hands_over_instead_of_asking_nowhere() -> None:
    counts = np.full((3, 3), 100, dtype=np.int64)
    points, below = np.array([0.0, 5e-324, 1e-323]), np.array([0.2, 0.5, 0.8])
    pilot = Decoded(points, below, np.full(3, 1e-4), counts // 2, counts)
    with pytest.raises(StopIteration) as end:
        next(_stages(QueryAllocator(CROWD), StagedStudy(0.5, CROWD), pilot))
    assert end.value.value is None


@pytest.mark.parametrize(("shift", "factor"), [(0.0, 2.0**-8), (0.0, 2.0**20), (2.0**10, 1.0), (-(2.0**10), 0.25)])
def test_with_bounds_the_same_questions_are_asked_in_every_unit(shift: float, factor: float) -> None:
    distribution = population("normal").moved(3.0, 0.05)
    plain, asks, replies = drive(staged_protocol(StagedStudy(0.7, CROWD, bounds=(-8.0, 24.0))), drawn(distribution, 6))
    moved_bounds = (shift - 8.0 * factor, shift + 24.0 * factor)
    again = iter(replies)
    moved, same, _ = drive(staged_protocol(StagedStudy(0.7, CROWD, bounds=moved_bounds)), lambda ask: next(again))
    assert len(same) == len(asks)
    for one, two in zip(asks, same, strict=True):
        assert two.points == pytest.approx(shift + factor * one.points, rel=1e-9)
        assert two.counts.tolist() == one.counts.tolist()
    wanted = [shift + factor * value for value in interval(plain, 1.96)]
    assert list(interval(moved, 1.96)) == pytest.approx(wanted, rel=1e-6)


def test_a_mistaken_pilot_ends_as_certified_and_misleads_no_interval() -> None:
    distribution, liar = population("normal"), population("normal").moved(1.0)
    pilots = 0

    def answer(ask: Ask) -> Ints:
        nonlocal pilots
        said = expected(liar if pilots == 0 else distribution)(ask)
        asked = ask.counts[0]
        pilots += len(asked) == 3 and 1.2 < asked[1] / max(asked[0], 1) < 1.5  # parts of .3, .4 and .3
        return said

    left, _ = certified(staged_protocol(StagedStudy(0.5, CROWD)), answer)
    assert pilots == 1
    low, high = staged_solution(left).interval(0.95)
    assert low < 0.0 < high
    assert low <= left.estimate <= high
    known = np.isfinite(low) and np.isfinite(high)
    assert staged_warnings(left, "staged") == ((TURNED[True],) if known else (TURNED[True], OPEN))


def test_bounds_far_from_the_quantile_have_no_certificate_below() -> None:
    left, asks = certified(staged_protocol(StagedStudy(0.5, CROWD, bounds=(1e6, 2e6))), expected(population("normal")))
    low, high = staged_solution(left).interval(0.95)
    assert low == 1e6
    assert high < 1.001e6
    assert staged_warnings(left, "staged") == (TURNED[True], OPEN)
    assert all(1e6 <= point <= 2e6 for ask in asks[left.rounds_before :] for point in ask.points)


def test_answers_that_do_not_depend_on_the_question_leave_both_ends_open() -> None:
    left, _ = certified(staged_protocol(StagedStudy(0.5, CROWD)), lambda ask: ask.counts // 2)
    assert staged_solution(left).interval(0.95) == (-np.inf, np.inf)
    assert staged_warnings(left, "staged") == (TURNED[True], OPEN)


def test_what_another_conversation_found_is_used() -> None:
    distribution = population("normal").moved(1e6, 3.0)
    _, alone, _ = drive(staged_protocol(StagedStudy(0.7, CROWD)), expected(distribution))
    local, helped, _ = drive(staged_protocol(StagedStudy(0.7, CROWD), Found(1e6, 2.0, ())), expected(distribution))
    assert len(helped) < len(alone)
    assert abs(float(distribution.cdf(interval(local)[0])) - 0.7) < CROWD.unit_variance**0.5


def test_a_site_too_small_for_every_point_does_no_harm() -> None:
    crowd = SiteProfile(np.array([0.999, 0.001]), np.array([0.8, 0.8]), np.array([60_000, 2]))
    local, asks, _ = drive(staged_protocol(StagedStudy(0.5, crowd)), drawn(population("normal"), 8, crowd))
    assert np.sum([ask.counts.sum(axis=1) for ask in asks], axis=0).tolist() == [60_000, 2]
    _, low, high = interval(local)
    assert low < 0.0 < high


@pytest.mark.parametrize(
    ("records", "kind", "width"),
    [
        (6_500, Fitted, 2),
        (7_500, Local, 3),
        (450, Certificate, 2),
    ],
)
def test_pairs_are_asked_where_the_noise_exceeds_four_percent_of_the_tail(records: int, kind: type, width: int) -> None:
    # one site of rate .75: s / t0 = 1 / (.3 sqrt(N)), .0413, .0385 and .157
    crowd = SiteProfile(np.ones(1), np.full(1, 0.75), np.array([records]))
    study = StagedStudy(0.2, crowd)
    assert study.scarce == (kind is Fitted or records == 450)
    assert study.too_few == (kind is Certificate)
    left, asks, _ = end_of(staged_protocol(study), drawn(population("normal"), 10, crowd))
    assert isinstance(left, kind)
    assert len(asks[-1].points) == width
    if isinstance(left, Certificate):
        assert (left.rounds_before, left.reports_before) == (0, 0)
        assert staged_warnings(left, "staged")[0] == TURNED[False]


@pytest.mark.parametrize("noise", NOISES)
def test_a_pair_lies_a_few_errors_from_the_quantile_and_all_its_records_count(noise: float) -> None:
    plan, wide = pair(noise, 0.5, 2.0, np.inf), pair(2 * noise, 0.5, 2.0, np.inf)
    assert plan.offsets.tolist() == [-1.0, 1.0]
    assert plan.parts.tolist() == [0.5, 0.5]
    assert wide.spacing == pytest.approx(2 * plan.spacing)
    assert wide.allowance == pytest.approx(4 * plan.allowance)
    assert pair(noise, 0.5, 2.0e-6, np.inf).spacing == pytest.approx(1e6 * plan.spacing)
    assert pair(noise, 0.5, 2.0e-6, np.inf).allowance == pytest.approx(plan.allowance)
    assert pair(noise, 0.5, 2.0, 1e-9).spacing == 1e-9


def both(noise: float, tail: float, slope: float = 1.0, widest: float = np.inf) -> list[Layout]:
    return [three(noise, tail, slope, widest), five(noise, tail, slope, widest, 1.0)]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("tail", [0.05, 0.5])
def test_all_records_are_placed_symmetrically(noise: float, tail: float) -> None:
    for n, plan in zip((3, 5), both(noise, tail), strict=True):
        assert len(plan.offsets) == len(plan.parts) == n
        assert plan.parts.sum() == pytest.approx(1.0, abs=1e-14)
        assert np.all(plan.parts > 0)
        assert plan.parts == pytest.approx(plan.parts[::-1])
        assert plan.offsets == pytest.approx(-plan.offsets[::-1])
        assert plan.spacing > 0
        assert plan.allowance > 0
        assert np.all(np.diff(plan.offsets) == 1)


def test_less_noise_narrows_the_points_and_favours_the_middle() -> None:
    for layouts in zip(*(both(noise, 0.5) for noise in NOISES), strict=True):
        spacings, middles = [plan.spacing for plan in layouts], [plan.parts[len(plan.parts) // 2] for plan in layouts]
        assert spacings == sorted(spacings)
        assert spacings[0] < spacings[-1]
        assert middles == sorted(middles, reverse=True)
        assert middles[0] > middles[-1]


def test_points_hold_mass_within_the_tail() -> None:
    for noise in NOISES:
        for plan in both(noise, 0.1, slope=7.0):
            assert 7.0 * plan.spacing * plan.offsets[-1] <= 0.1


def test_the_unit_of_the_records_only_scales_the_spacing() -> None:
    for plain, scaled in zip(both(1e-3, 0.3, 2.0), both(1e-3, 0.3, 2.0e-6), strict=True):
        assert scaled.spacing == pytest.approx(1e6 * plain.spacing)
        assert scaled.parts.tolist() == plain.parts.tolist()
        assert scaled.allowance == pytest.approx(plain.allowance)


def test_no_point_beyond_the_widest() -> None:
    assert [plan.spacing for plan in both(1e-3, 0.3, 2.0, widest=1e-5)] == [1e-5, 1e-5]


def test_steep_shoulders_narrow_five_points() -> None:
    assert five(1e-3, 0.3, 1.0, np.inf, 0.5).spacing == pytest.approx(0.5 * five(1e-3, 0.3, 1.0, np.inf, 1.0).spacing)
