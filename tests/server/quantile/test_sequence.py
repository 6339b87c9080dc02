"""The confidence sequence as a conversation: valid at every time, it stops when told to, and goes on."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.certified.protocol import CertifiedStudy
from sottovoce.server.quantile.certified.sequence import Growing, Sequel, sequence_protocol
from sottovoce.server.quantile.solutions import SequenceSolution
from sottovoce.sim.randomness import dice

Curve = Callable[[Floats], Floats]


def study(sizes: list[int], rate: float = 0.8, tau: float = 0.5, bounded: bool = True) -> CertifiedStudy:
    number = len(sizes)
    crowd = SiteProfile(np.full(number, 1 / number), np.full(number, rate), np.array(sizes))
    return CertifiedStudy(tau, crowd, 0.05, b"coin", (-20.0, 20.0) if bounded else None)


def driven(asked: CertifiedStudy, curve: Curve, seed: int, until: float = 0.0, after: Sequel | None = None) -> Sequel:
    """Answer with fresh letters, the first of which stand for what lies above a point."""
    source, talk = dice(seed).generator(), sequence_protocol(asked, lambda low, high, _: high - low <= until, after)
    spent, ask = np.zeros_like(asked.crowd.sizes), next(talk)
    while True:
        spent += ask.counts.sum(axis=1)
        assert np.all(spent <= asked.crowd.sizes)
        rate = asked.crowd.rates[:, None]
        ones = source.binomial(ask.counts, (1 - rate) / 2 + rate * (1 - curve(ask.points)))
        try:
            ask = talk.send(ones)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def flat(points: Floats) -> Floats:
    """Two atoms, far out, with the level everywhere between: every answer is at the boundary."""
    return np.where(points < -5, 0.0, np.where(points < 5, 0.5, 1.0))


def test_both_ends_of_a_flat_stretch_are_covered_at_every_time() -> None:
    misses = [0, 0]
    for seed in range(40):
        rows = SequenceSolution(driven(study([3_000]), flat, seed)).trajectory(0.95)
        for place, value in enumerate((-5.0, 5.0)):
            misses[place] += any(not row.low < value <= row.high for row in rows)
    assert max(misses) <= 8  # more in one of 5,000 such tests, were the probability .05


def test_the_interval_shrinks_as_fast_as_the_noise() -> None:
    sequel = driven(study([100_000]), ndtr, 1)
    rows = SequenceSolution(sequel).trajectory(0.95)
    assert all(row.low < 0 <= row.high for row in rows)
    assert all(a.low <= b.low and a.high >= b.high for a, b in pairwise(rows))
    for row in rows[-12:]:
        oracle = 3.92 * math.sqrt(0.25 / row.reports) / 0.8 * math.sqrt(2 * math.pi)
        assert 0.5 * oracle < row.high - row.low < 7 * oracle
    assert rows[-1].round <= 45
    assert rows[-1].reports == 100_000
    assert abs(sequel.milestones[-1].estimate) < 0.03


def test_it_stops_when_the_interval_is_short_enough() -> None:
    sequel = driven(study([100_000]), ndtr, 2, until=0.2)
    low, high = sequel.interval(0.05)
    assert high - low <= 0.2
    assert sequel.milestones[-1].reports < 40_000
    *_, before, _ = SequenceSolution(sequel).trajectory(0.95)
    assert before.high - before.low > 0.2


def test_it_goes_on_with_other_sites_and_rates() -> None:
    first = driven(study([20_000], 0.8), ndtr, 3)
    second = driven(study([30_000, 30_000], 0.5), ndtr, 4, after=first)
    assert second.wagers[: len(first.wagers)] == first.wagers
    assert second.milestones[: len(first.milestones)] == first.milestones
    assert sorted({round(wager.rate, 9) for wager in second.wagers}) == [0.5, 0.8]
    assert second.milestones[-1].reports > 20_000 + 55_000
    one, two = first.interval(0.05), second.interval(0.05)
    assert one[0] <= two[0] < 0 < two[1] <= one[1]
    assert two[1] - two[0] < 0.85 * (one[1] - one[0])


def test_a_few_more_records_are_asked_in_a_few_rounds() -> None:
    first = driven(study([20_000]), ndtr, 5)
    second = driven(study([500]), ndtr, 6, after=first)
    assert len(second.milestones) - len(first.milestones) == 1
    assert second.milestones[-1].reports == 20_500


def test_without_bounds_an_end_may_stay_open_and_no_longer() -> None:
    rows = SequenceSolution(driven(study([50_000], bounded=False), lambda x: ndtr((x - 3e5) / 1e4), 7)).trajectory(0.95)
    assert math.isinf(rows[0].high - rows[0].low)
    assert rows[-1].high - rows[-1].low < 1_500


def test_rounds_grow_more_slowly_as_they_go() -> None:
    growing, so_far, sizes = Growing(100, 100_000, 33), 100, []
    while so_far < 100_000:
        sizes.append(growing.portion(so_far, 100_000 - so_far) / so_far)
        so_far += round(sizes[-1] * so_far)
    assert so_far == 100_000
    assert 28 <= len(sizes) <= 36
    assert sizes[0] > 2 * sizes[-2]
