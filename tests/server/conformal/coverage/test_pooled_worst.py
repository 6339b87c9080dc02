"""The worst distribution of the scores against brute force over levels."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.server.conformal.coverage.pooled import worst_of_any, worst_of_independent


def curve(levels: Floats, middle: float = 0.85, steep: float = 30.0) -> Floats:
    return np.asarray(1 / (1 + np.exp(-steep * (levels - middle))))


def missed(levels: Floats, below: Sequence[float] | Floats) -> float:
    """The miss probability: P(answer < b) times the mass of cell b, summed."""
    return float(np.diff([*levels, 1.0]) @ np.array(below))


def products(fails: Floats) -> Floats:
    return np.asarray(np.cumprod(fails[::-1])[::-1])


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_independent_against_all_levels_of_a_grid(cells: int) -> None:
    levels = np.linspace(0, 1, 25)
    failure = curve(levels, 0.7, 12.0)
    every = itertools.combinations_with_replacement(range(25), cells)
    best = max(missed(levels[list(chosen)], products(failure[list(chosen)])) for chosen in every)
    assert worst_of_independent(failure, levels, cells) - 1 / 24 == pytest.approx(best, abs=1e-14)


def test_any_against_all_levels_of_a_grid() -> None:
    levels = np.linspace(0, 1, 25)
    failures = np.array([curve(levels, 0.7, 9.0), curve(levels, 0.8, 12.0), curve(levels, 0.75, 40.0)])
    best = max(
        missed(levels[list(chosen)], [failures[b, place] for b, place in enumerate(chosen)])
        for chosen in itertools.combinations_with_replacement(range(25), 3)
    )
    assert worst_of_any(failures, levels) - 1 / 24 == pytest.approx(best, abs=1e-14)


def test_flat_stretches_and_equal_slopes() -> None:
    levels = np.linspace(0, 1, 21)
    failure = np.where(levels < 0.5, 0.0, np.where(levels < 0.8, 0.4, 1.0))
    every = itertools.combinations_with_replacement(range(21), 3)
    best = max(missed(levels[list(chosen)], products(failure[list(chosen)])) for chosen in every)
    assert worst_of_independent(failure, levels, 3) - 1 / 20 == pytest.approx(best, abs=1e-14)


@pytest.mark.parametrize("cells", [2, 5])
def test_levels_between_those_of_the_grid_are_covered(cells: int) -> None:
    coarse, fine = np.linspace(0, 1, 120), np.linspace(0, 1, 1191)
    # the finer grid's own maximum, without what it adds for levels between
    exact = worst_of_independent(curve(fine), fine, cells) - 1 / 1190
    bound = worst_of_independent(curve(coarse), coarse, cells)
    assert exact < bound < exact + 1.2 / 119
    both = np.tile(curve(fine), (cells, 1)), np.tile(curve(coarse), (cells, 1))
    exact = worst_of_any(both[0], fine) - 1 / 1190
    assert exact < worst_of_any(both[1], coarse) < exact + 1.2 / 119


def test_a_window_is_as_good_as_the_whole() -> None:
    whole, window = np.linspace(0, 1, 1001), np.linspace(0.5, 0.99, 491)
    steep = curve(whole, 0.75, 150.0), curve(window, 0.75, 150.0)
    assert worst_of_independent(steep[1], window, 4) == pytest.approx(
        worst_of_independent(steep[0], whole, 4), abs=1e-12
    )


def test_more_knowledge_gives_smaller_bounds() -> None:
    levels = np.linspace(0, 1, 2001)
    failure = curve(levels)
    whole = float(np.sum(failure[1:]) / 2000)  # no distribution misses more than the upper sum of the failure
    for cells in (1, 4, 16):
        independent = worst_of_independent(failure, levels, cells)
        dependent = worst_of_any(np.tile(failure, (cells, 1)), levels)
        assert independent <= dependent <= whole + 1 / 2000
    assert independent < dependent - 0.02
