"""Holm's rule is the closure of Bonferroni's, and keeps the chance of any false rejection."""

import itertools
from collections.abc import Sequence

import pytest

from sottovoce.inference.conformal import rejected

GRID = (0.004, 0.012, 0.013, 0.017, 0.025, 0.026, 0.05, 0.2)


def closure(p_values: Sequence[float], error: float) -> tuple[bool, ...]:
    """Reject what every intersection that holds it rejects by Bonferroni's test."""
    places = range(len(p_values))
    fallen = []
    for place in places:
        groups = [g for size in range(1, len(p_values) + 1) for g in itertools.combinations(places, size) if place in g]
        fallen.append(all(min(p_values[i] for i in group) <= error / len(group) for group in groups))
    return tuple(fallen)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_it_is_the_closure_of_bonferroni(m: int) -> None:
    for p_values in itertools.product(GRID, repeat=m):
        assert rejected(p_values, 0.05) == closure(p_values, 0.05)


def test_what_bonferroni_rejects_falls() -> None:
    p_values = [0.001, 0.3, 0.0001, 0.012]
    assert all(flag or p > 0.05 / 4 for p, flag in zip(p_values, rejected(p_values, 0.05), strict=True))
    assert rejected([], 0.05) == ()
