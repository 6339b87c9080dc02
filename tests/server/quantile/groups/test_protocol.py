"""The common search, and conversations side by side: who is asked what, and what turns groups to certified."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.quantile.asking import Ask, SiteProfile
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.groups.protocol import groups_protocol, has_common_search
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import Local, StagedStudy
from sottovoce.sim.randomness import dice

Law = Callable[[Floats], Floats]
RATE = rate_of(binary(2.0))
TAIL_ERROR = 1e-6


class Told(NamedTuple):
    """What a conversation came to, and all its questions."""

    outcomes: list[Any]
    asks: list[Ask]


def drive(talk: Generator[Ask, Ints, Any], laws: Sequence[Law], seed: int = 1) -> Told:
    """Answer for sites whose records have these distribution functions, through the channel."""
    source, asks = dice(seed).generator(), []
    ask = next(talk)
    while True:
        asks.append(ask)
        above = np.array([1 - law(ask.points) for law in laws])
        if ask.periods is not None:  # smooth records lie evenly on both halves of a period
            above = np.where(ask.periods > 0, 0.5, above)
        chance = (1 - RATE) / 2 + RATE * above
        try:
            ask = talk.send(source.binomial(ask.counts, chance).astype(np.int64))
        except StopIteration as end:
            return Told(end.value, asks)


def normal(shift: float, scale: float = 1.0) -> Law:
    return lambda points: np.asarray(stats.norm.cdf(points, shift, scale))


def apart(points: Floats) -> Floats:
    """Two narrow modes far apart: between them the distribution function is flat at the median."""
    return np.asarray(0.5 * stats.norm.cdf(points, -10, 1) + 0.5 * stats.norm.cdf(points, 10, 1))


def crowd(sizes: Sequence[int]) -> SiteProfile:
    return SiteProfile(np.array(sizes) / sum(sizes), np.full(len(sizes), RATE), np.array(sizes, dtype=np.int64))


def talk(sizes: Sequence[int], tau: float = 0.5, certified: bool = False) -> Generator[Ask, Ints, Any]:
    """Begin a study in which every group is one site."""
    studies = [StagedStudy(tau, crowd([size]), coin=bytes([i]), phases=True) for i, size in enumerate(sizes)]
    return groups_protocol(studies, [np.array([i]) for i in range(len(sizes))], crowd(sizes), [certified] * len(sizes))


def asked(told: Told) -> Ints:
    return np.asarray(np.sum([ask.counts.sum(axis=1) for ask in told.asks], axis=0), dtype=np.int64)


SIZES = [4_000] * 12


def test_groups_get_quantiles_of_their_own() -> None:
    shifts = np.linspace(-0.5, 0.5, 12)
    told = drive(talk(SIZES), [normal(float(shift)) for shift in shifts])
    held = 0
    for outcome, shift in zip(told.outcomes, shifts, strict=True):
        low, high = staged_solution(outcome).interval(1 - TAIL_ERROR)
        held += low <= shift <= high
        assert high - low < 1.5
    assert held == 12


def test_every_record_answers_at_most_once_and_nearly_all_do() -> None:
    for sizes, certified in (([300, 1_000, 20_000, 5_000], False), ([300, 1_000, 20_000, 5_000], True), (SIZES, False)):
        told = drive(talk(sizes, certified=certified), [normal(0.0)] * len(sizes))
        assert np.all(asked(told) <= sizes)
        if not certified:
            assert asked(told).sum() > 0.98 * sum(sizes)


def test_each_group_is_asked_its_own_questions_alone() -> None:
    told = drive(talk(SIZES), [normal(float(shift)) for shift in np.linspace(-0.5, 0.5, 12)])
    shared = [bool(np.all((ask.counts > 0).sum(axis=0) == 12)) for ask in told.asks]
    alone = [bool(np.all((ask.counts > 0).sum(axis=0) <= 1)) for ask in told.asks]
    search = shared.index(False)
    assert search > 0
    assert all(alone[search:])


def test_the_search_takes_little_of_many() -> None:
    told = drive(talk([20_000] * 10), [normal(0.0)] * 10)
    together = [ask for ask in told.asks if np.all((ask.counts > 0).sum(axis=0) == 10)]
    assert sum(int(ask.counts.sum()) for ask in together) < 0.03 * 200_000


@pytest.mark.parametrize(("sizes", "searching"), [([1_000] * 40, 0.1), ([600] * 4, 0.25)], ids=["many", "few"])
def test_groups_whose_records_are_scarce_are_certified(sizes: Sequence[int], searching: float) -> None:
    told = drive(talk(sizes), [normal(0.1 * (i % 5)) for i in range(len(sizes))])
    assert all(isinstance(outcome, Certificate) for outcome in told.outcomes)
    together = sum(int(ask.counts.sum()) for ask in told.asks if np.all((ask.counts > 0).sum(axis=0) > 1))
    assert together < searching * sum(sizes)


def heaped(points: Floats) -> Floats:
    """More than half are zero, the others spread above."""
    return np.where(points < 0, 0.0, 0.55 + 0.45 * stats.gamma.cdf(points, 2, 0, 10))


def test_a_small_group_is_not_taken_to_be_smooth_because_the_others_are() -> None:
    large: Law = lambda points: np.asarray(stats.gamma.cdf(points, 2, 0, 11))  # noqa: E731
    for seed in range(8):
        told = drive(talk([20_000] * 4 + [900]), [large] * 4 + [heaped], seed)
        low, high = staged_solution(told.outcomes[-1]).interval(0.95)
        assert isinstance(told.outcomes[-1], Certificate)
        assert low <= 0 <= high


def test_large_groups_look_for_themselves() -> None:
    told = drive(talk([30_000, 40_000]), [normal(0.0), apart])
    assert isinstance(told.outcomes[0], Local)
    assert isinstance(told.outcomes[1], Certificate)


def test_a_certified_group_far_from_all_others_still_holds_its_quantile() -> None:
    # beyond the window in which certified groups are asked, an end stays open: nothing is cut off
    told = drive(talk([3_000] * 20, certified=True), [*[normal(0.0)] * 19, normal(1_000.0)])
    low, high = staged_solution(told.outcomes[-1]).interval(0.95)
    assert low <= 1_000 <= high
    assert high == np.inf
    for outcome in told.outcomes[:-1]:
        low, high = staged_solution(outcome).interval(0.95)
        assert high - low < 3


def test_a_staged_group_far_from_all_others_is_found_or_certified() -> None:
    told = drive(talk([5_000] * 20), [*[normal(0.0)] * 19, normal(40.0)])
    low, high = staged_solution(told.outcomes[-1]).interval(1 - TAIL_ERROR)
    assert low <= 40 <= high


def test_one_group_or_few_records_do_not_search_together() -> None:
    assert not has_common_search(crowd([100_000]), 1)
    assert not has_common_search(crowd([50, 50]), 2)
    assert has_common_search(crowd([5_000, 5_000]), 2)


def test_sites_of_few_records_may_be_used_up_by_the_search() -> None:
    # 3,000 strata of one or two records beside large ones: some have nothing left for their own group
    sizes = [1] * 1_500 + [2] * 1_500 + [6_000] * 2
    members = [np.arange(i, 3_000, 2) for i in (0, 1)]
    members = [np.append(own, 3_000 + i) for i, own in enumerate(members)]
    whole = crowd(sizes)
    studies = []
    for own in members:
        shares = whole.shares[own]
        part = SiteProfile(shares / shares.sum(), whole.rates[own], whole.sizes[own])
        studies.append(StagedStudy(0.5, part, coin=b"few", phases=True))
    told = drive(groups_protocol(studies, members, whole, [False, False]), [normal(0.0)] * 3_002)
    assert np.all(asked(told) <= sizes)
    for outcome in told.outcomes:
        low, high = staged_solution(outcome).interval(1 - TAIL_ERROR)
        assert low <= 0 <= high
