"""The exact interval of a share covers at least as often as it says, for every share and every number of records."""

import itertools
import math

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.conformal import exact_at_most, exact_limits

LEVELS = (0.5, 0.9, 0.95, 0.999)


def distribution(n: int, share: float) -> list[float]:
    return [math.comb(n, x) * share**x * (1 - share) ** (n - x) for x in range(n + 1)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_it_covers_whatever_the_share(n: int, level: float) -> None:
    found = [exact_limits(count, n, level) for count in range(n + 1)]
    ends = [end for pair in found for end in pair]
    # coverage falls to its lowest beside the ends
    for share in [i / 40 for i in range(41)] + [end + step for end in ends for step in (-1e-9, 1e-9)]:
        if 0 <= share <= 1:
            chance = sum(
                p for p, (low, high) in zip(distribution(n, share), found, strict=True) if low <= share <= high
            )
            assert chance >= level - 1e-7


def test_each_limit_leaves_half_of_the_rest() -> None:
    for count, level in itertools.product((1, 40, 89, 99), LEVELS):
        low, high = exact_limits(count, 100, level)
        assert sum(distribution(100, low)[count:]) == pytest.approx((1 - level) / 2, rel=1e-9)
        assert exact_at_most(count, 100, high) == pytest.approx((1 - level) / 2, rel=1e-9)


def test_nothing_and_everything_have_closed_forms() -> None:
    assert list(exact_limits(0, 50, 0.95)) == pytest.approx([0.0, 1 - 0.025 ** (1 / 50)])
    assert list(exact_limits(50, 50, 0.95)) == pytest.approx([0.025 ** (1 / 50), 1.0])


def test_covered_and_missed_are_mirrored_and_levels_nested() -> None:
    low, high = exact_limits(89, 100, 0.95)
    assert list(exact_limits(11, 100, 0.95)) == pytest.approx([1 - high, 1 - low])
    inner = exact_limits(89, 100, 0.9)
    assert low < inner[0] < 0.89 < inner[1] < high


def test_the_probability_of_few_is_the_binomial_sum() -> None:
    for count in range(13):
        assert exact_at_most(count, 12, 0.7) == pytest.approx(sum(distribution(12, 0.7)[: count + 1]), rel=1e-12)


@pytest.mark.parametrize(("count", "n", "level"), [(-1, 5, 0.9), (6, 5, 0.9), (0, 0, 0.9), (2, 5, 0.0), (2, 5, 1.0)])
def test_what_is_no_count_or_level_is_refused(count: int, n: int, level: float) -> None:
    with pytest.raises(BadInput, match="lies"):
        exact_limits(count, n, level)
