"""Holm's adjusted p-values agree with his rule, and levels of several intervals with their laws."""

import numpy as np
import pytest

from sottovoce.inference.common.several import adjusted, each_of
from sottovoce.inference.conformal import rejected
from sottovoce.sim.randomness import dice


@pytest.mark.parametrize("seed", range(5))
def test_adjusted_p_values_reject_what_the_rule_rejects(seed: int) -> None:
    p_values = (dice(seed).generator().random(12) ** 3).tolist()
    holm = adjusted(p_values)
    for error in (0.01, 0.05, 0.2):
        assert tuple(p <= error for p in holm) == rejected(p_values, error)


def test_adjusted_p_values_keep_the_order_and_stay_below_one() -> None:
    p_values = [0.5, 0.001, 0.5, 0.9]
    holm = np.array(adjusted(p_values))
    assert holm.tolist() == [1.0, 0.004, 1.0, 1.0]
    assert adjusted([]) == ()


def test_a_false_rejection_is_as_rare_as_stated() -> None:
    # 20,000 families of ten true hypotheses: a binomial count at .05, false alarm 1e-6, once
    from scipy.stats import binom

    drawn = dice(4).generator().random((20_000, 10))
    wrong = sum(min(adjusted(row)) <= 0.05 for row in drawn.tolist())
    assert wrong <= binom.ppf(1 - 1e-6, 20_000, 0.05)


@pytest.mark.parametrize("number", [1, 2, 50])
def test_levels_hold_together(number: int) -> None:
    assert each_of(0.95, number) ** number == pytest.approx(0.95)
    assert number * (1 - each_of(0.95, number, independent=False)) == pytest.approx(0.05)
    assert each_of(0.95, number) <= each_of(0.95, number, independent=False)
