"""The interval from a noisy count inverts the exact distribution of the sum, and covers for every share and size."""

import math

import mpmath
import pytest

from sottovoce.inference.conformal import at_most, exact_at_most, exact_limits, limits


def distribution(n: int, share: float, ratio: float, reach: int) -> dict[int, float]:
    """Return the distribution of count plus noise by plain convolution."""
    found = dict.fromkeys(range(-reach, n + reach + 1), 0.0)
    for x in range(n + 1):
        chance = math.comb(n, x) * share**x * (1 - share) ** (n - x)
        for step in range(-reach, reach + 1):
            found[x + step] += chance * ratio ** abs(step) * (1 - ratio) / (1 + ratio)
    return found


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("n", [1, 6, 25])
def test_it_covers_whatever_the_share(n: int, epsilon: float) -> None:
    ratio, reach = math.exp(-epsilon), math.ceil(20 / epsilon)
    for level in (0.8, 0.95):
        found = {count: limits(count, n, level, ratio) for count in range(-1, n + 2)}
        for share in [i / 25 for i in range(26)] + [low + 1e-9 for low, _ in found.values() if low < 1]:
            chance = 0.0
            for said, p in distribution(n, share, ratio, reach).items():
                low, high = found[min(max(said, -1), n + 1)]
                chance += p * (low <= share <= high)
            assert chance >= level - 1e-6


def test_the_probability_is_that_of_the_convolution() -> None:
    for share in (0.0, 0.3, 0.9, 1.0):
        whole = distribution(9, share, 0.6, 80)
        for count in range(9):
            below = sum(p for said, p in whole.items() if said <= count)
            assert at_most(count, 9, share, 0.6) == pytest.approx(below, rel=1e-9)
    assert at_most(9, 9, 0.3, 0.6) == at_most(12, 9, 0.3, 0.6) == 1.0
    assert at_most(-4, 9, 0.3, 0.6) == at_most(0, 9, 0.3, 0.6)


def test_many_records_lose_no_digits() -> None:
    n, ratio = 40_000, mpmath.mpf(1) / 2
    with mpmath.workdps(40):
        whole = [
            mpmath.binomial(n, x) * mpmath.mpf("0.9") ** x * mpmath.mpf("0.1") ** (n - x) for x in range(35_400, 36_600)
        ]
        below = sum(
            p * (1 - ratio ** (35_900 - x + 1) / (1 + ratio) if x <= 35_900 else ratio ** (x - 35_900) / (1 + ratio))
            for x, p in enumerate(whole, start=35_400)
        )
        assert abs(1 - sum(whole)) < 1e-20
    assert at_most(35_900, n, 0.9, 0.5) == pytest.approx(float(below), rel=1e-9)


def test_each_limit_leaves_half_of_the_rest() -> None:
    low, high = limits(88, 100, 0.9, 0.7)
    assert at_most(88, 100, high, 0.7) == pytest.approx(0.05, rel=1e-9)
    assert 1 - at_most(87, 100, low, 0.7) == pytest.approx(0.05, rel=1e-9)


def test_no_noise_is_clopper_and_pearson_and_more_noise_is_longer() -> None:
    assert limits(88, 100, 0.95, 0.0) == exact_limits(88, 100, 0.95)
    assert at_most(88, 100, 0.9, 0.0) == exact_at_most(88, 100, 0.9)
    lengths = [high - low for low, high in (limits(88, 100, 0.95, ratio) for ratio in (0.0, 1e-9, 0.3, 0.6, 0.9))]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-6)
    assert lengths[1:] == sorted(lengths[1:])


def test_an_unlucky_noise_does_not_refute_every_share() -> None:
    assert limits(300, 100, 0.95, 0.5) == limits(100, 100, 0.95, 0.5)
    low, high = limits(300, 100, 0.95, 0.5)
    assert 0.9 < low < high == 1.0
    assert limits(-7, 100, 0.95, 0.5)[0] == 0.0
    assert limits(3, 5, 0.95, 0.99) == (0.0, 1.0)  # noise drowns five records
