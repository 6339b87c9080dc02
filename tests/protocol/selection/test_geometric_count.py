"""The noise of a count costs what its integer says: no more than the budget, and all of it."""

import math

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.selection.geometric import WORD, NoisyCount, noisy_count


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 3.7, 20.0, 44.0, 60.0])
def test_the_budget_is_kept_exactly_and_spent(epsilon: float) -> None:
    noise = noisy_count(epsilon)
    assert within(noise.ratio, epsilon)
    assert noise.numerator == 1 or not within(NoisyCount(noise.numerator - 1).ratio, epsilon)
    if epsilon <= 20:
        assert noise.epsilon == pytest.approx(epsilon, rel=1e-8)
        assert noise.fall == pytest.approx(math.exp(-epsilon), rel=1e-8)


def test_neighbouring_counts_differ_by_the_ratio_and_no_more() -> None:
    noise = noisy_count(0.7)
    fall = noise.numerator / WORD

    def distribution(said: int, count: int) -> float:
        return fall ** abs(said - count) * (1 - fall) / (1 + fall)

    ratios = [distribution(said, 10) / distribution(said, 11) for said in range(-5, 30)]
    assert max(ratios) == pytest.approx(float(noise.ratio))
    assert min(ratios) == pytest.approx(1 / float(noise.ratio))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-9, math.inf, math.nan])
def test_a_budget_that_makes_no_noise_is_refused(epsilon: float) -> None:
    with pytest.raises(BadInput, match="finite budget"):
        noisy_count(epsilon)
