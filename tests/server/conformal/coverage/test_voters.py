"""How sites vote: distributions of noisy values against sums over all counts, and orders as near as any."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.protocol.selection import selection
from sottovoce.server.conformal.coverage.voters import Kind, below, binomial, corners, information, orders_for
from sottovoce.sim.randomness import dice


def private(size: int, epsilon: float, name: str = "sparse-vector") -> Kind:
    return Kind(size, selection(name, size, size, 51, epsilon).failure, bounded=name != "sparse-vector")


def written_out(kind: Kind, order: int, level: float) -> float:
    """Sum over all counts, each weighed exactly."""
    exact = Fraction(level)
    mass = [math.comb(kind.size, c) * exact**c * (1 - exact) ** (kind.size - c) for c in range(kind.size + 1)]
    distance = np.arange(kind.size + 1) - order
    fails = (distance >= 0).astype(float) if kind.failure is None else kind.failure(distance)
    return float(sum(p * Fraction(float(f)) for p, f in zip(mass, fails, strict=True)))


@pytest.mark.parametrize(
    "kind",
    [Kind(7), Kind(60), private(7, 1.0), private(60, 0.2), private(60, 30.0), private(40, 2.0, "exponential")],
)
def test_chances_are_sums_over_counts(kind: Kind) -> None:
    levels = np.array([0.001, 0.3, 0.9, 0.999])
    orders = [1, kind.size // 2 + 1, kind.size]
    found = below([kind], np.array([orders]), levels)[0]
    for i, order in enumerate(orders):
        for j, level in enumerate(levels.tolist()):
            assert found[i, j] == pytest.approx(written_out(kind, order, level), abs=1e-13)


def test_private_orders_may_lie_outside_the_scores() -> None:
    kind = private(50, 0.5)
    for order in (-40, 0, 51, 90):
        assert float(below([kind], np.array([[order]]), np.array([0.9]))[0, 0, 0]) == pytest.approx(
            written_out(kind, order, 0.9), abs=1e-13
        )


def test_a_site_with_too_few_scores_is_never_below() -> None:
    assert below([Kind(5)], np.array([[6]]), np.array([0.1, 0.999999])).tolist() == [[[0.0, 0.0]]]


@pytest.mark.parametrize("size", [1, 30, 5000, 1_000_000])
def test_binomial_laws(size: int) -> None:
    levels = np.array([0.0, 1e-12, 0.2, 0.5, 0.97, 1 - 1e-12, 1.0])
    counts, mass = binomial(size, levels)
    np.testing.assert_allclose(mass.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose((mass * counts).sum(axis=1), size * levels, rtol=1e-9, atol=1e-9)
    assert counts.min() >= 0
    assert counts.max() <= size
    variance = (mass * (counts - (size * levels)[:, None]) ** 2).sum(axis=1)
    np.testing.assert_allclose(variance, size * levels * (1 - levels), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "kind",
    [Kind(100), Kind(3), private(100, 1.0), private(100, 0.01), private(2, 0.3), private(60, 3.0, "exponential")],
)
@pytest.mark.parametrize("level", [0.9, 0.5, 0.01])
def test_orders_are_the_nearest(kind: Kind, level: float) -> None:
    wanted = np.array([0.9, 0.6, 0.5, 0.2])
    found = orders_for([kind], level, wanted)[0]
    first, last = (1, kind.size) if kind.failure is None or kind.bounded else (-2000, 2000 + kind.size)
    every: Ints = np.arange(first, last + 1)
    chance = below([kind], every[None, :], np.array([level]))[0, :, 0]
    at = below([kind], found[None, :], np.array([level]))[0, :, 0]
    np.testing.assert_allclose(np.abs(at - wanted), np.abs(chance[:, None] - wanted).min(axis=0), atol=1e-12)


def test_information_is_slope_over_variance() -> None:
    source = dice(3).generator()
    for kind in (Kind(80), Kind(5), private(80, 0.5), private(300, 5.0)):
        for order in np.rint(kind.size * (0.85 + 0.1 * source.random(3) - 0.05)).astype(int):
            level, step = 0.85, 1e-5
            orders = np.array([[order]])
            low, at, high = (
                float(below([kind], orders, np.array([t]))[0, 0, 0]) for t in (level - step, level, level + step)
            )
            told = float(information([kind], orders, level)[0])
            assert told == pytest.approx((high - low) / (2 * step) / max(at * (1 - at), 1e-12), rel=1e-4)


def test_corners_are_those_of_private_sites_of_weight() -> None:
    kinds = [private(100, 1.0), Kind(100), private(400, 1.0), private(50, 1.0)]
    found = corners(kinds, [(90,), (90,), (360,), (50,)], [10, 10, 20, 10])
    assert [corner.place for corner in found] == pytest.approx([math.log(9), math.log(9)])
    assert [corner.width for corner in found] == pytest.approx([1 / 3, 1 / 6])
    assert len(corners(kinds, [(90,), (90,), (360,), (49,)], [1, 1, 100, 1])) == 1
