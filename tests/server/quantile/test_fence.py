"""Fences: what answers say by monotonicity alone lengthens an interval, to points that are sure or to public bounds."""

import math
from typing import Any

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.inference.common import normal
from sottovoce.server.description import Interval
from sottovoce.server.quantile.asking import Ask, Decoded, SiteProfile
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.fence import fence_of, touching
from sottovoce.server.quantile.kept import kept, restored
from sottovoce.server.quantile.method import FENCED, staged_warnings
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import StagedStudy, staged_protocol
from sottovoce.sim.randomness import dice


def heard_of(points: list[float], below: list[float], error: float = 0.01) -> Decoded:
    counts = np.ones((1, len(points)), dtype=np.int64)
    return Decoded(np.array(points), np.array(below), np.full(len(points), error**2), counts, counts)


ANSWERS = [heard_of([0.0, 3.0], [0.2, 0.8]), heard_of([1.0, 2.0], [0.47, 0.49])]


def test_an_interval_goes_on_to_the_next_points_that_are_sure() -> None:
    fence = fence_of(ANSWERS, 0.5, None)
    assert fence.around(Interval(1.4, 1.6), 1.96) == (1.0, 3.0)
    assert fence.around(Interval(1.4, 1.6), 5.0) == (0.0, 3.0)  # three errors are not sure enough at this level
    assert fence.around(Interval(-1.0, 4.0), 1.96) == (-1.0, 4.0)


def test_where_no_point_is_sure_it_goes_on_to_the_public_bound() -> None:
    assert fence_of(ANSWERS[1:], 0.5, None).around(Interval(1.4, 1.6), 1.96) == (1.0, math.inf)
    assert fence_of(ANSWERS[1:], 0.5, (-9.0, 9.0)).around(Interval(1.4, 1.6), 5.0) == (-9.0, 9.0)


def test_a_value_is_touched_where_the_level_is_that_of_its_distance() -> None:
    def interval(level: float) -> Interval:
        z = normal.two_sided(level)
        return Interval(-z, z)

    assert touching(interval, 1.5, math.inf) == pytest.approx(1.5, abs=1e-6)
    assert touching(interval, 1.5, 1.0) == pytest.approx(1.0, abs=1e-6)


def top_coded(x: Any) -> Any:
    """Return a uniform distribution whose last tenth was given the value .9."""
    at = np.asarray(x, dtype=np.float64)
    return np.where(at >= 0.9, 1.0, np.clip(at, 0.0, 0.9))


CROWD = SiteProfile(np.full(2, 0.5), np.full(2, 0.76), np.full(2, 20_000))


def fenced(tau: float, runs: int) -> tuple[list[Fitted], int]:
    found, covered, source = [], 0, dice(5).generator()
    for _ in range(runs):
        conversation = staged_protocol(StagedStudy(tau, CROWD, (0.0, 2.0)))
        ask: Ask = next(conversation)
        try:
            while True:
                above = 0.76 * (1 - top_coded(ask.points)) + 0.12
                ones: Ints = source.binomial(ask.counts, np.broadcast_to(above, ask.counts.shape))
                ask = conversation.send(ones)
        except StopIteration as stop:
            left = stop.value
        low, high = staged_solution(left).interval(0.95)
        covered += low <= 0.9 <= high
        assert isinstance(left, Fitted | Certificate)
        if isinstance(left, Fitted) and left.fence is not None:
            found.append(left)
    return found, covered


def test_a_last_pair_beside_the_top_code_has_a_fence_that_covers() -> None:
    found, covered = fenced(0.95, 40)  # s / t0 = .05: pairs
    assert len(found) >= 3
    assert covered >= 32  # .95 in truth; false alarm 2e-4 at .95
    for left in found:
        assert staged_warnings(left, "staged") == (FENCED,)
        solution = staged_solution(left)
        low, high = solution.interval(0.95)
        assert low < 0.9 <= high
        assert restored(kept(solution)).interval(0.95) == (low, high)
        outside = high + 0.01 * (high - low)
        assert solution.p_value(outside, "two-sided") <= 0.0501
        assert solution.p_value(0.9, "two-sided") >= 0.0499
