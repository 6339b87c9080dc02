"""The public grid: as given, in equal steps, in equal ratios, thinned; refused before anything is asked."""

import math
from typing import Any

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.methods import check_edges
from sottovoce.server.conformal.public_grid import BINS, RANGE, STEPS, PublicGrid, check_grid


def test_equal_steps_as_many_as_a_mechanism_takes() -> None:
    grid = check_grid(None, 8.0, None, None)
    for mechanism, count in (("sparse-vector", BINS), ("exponential", BINS), *STEPS.items()):
        assert grid.steps(mechanism).tolist() == np.linspace(0, 8, count + 1)[1:].tolist()
    assert check_grid(None, 8.0, 4, None).steps("local").tolist() == [2.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 5.0), (2.0, 5.0), (-3.0, 5.0), (-5.0, 0.0), (-5.0, -1.0), (0.0, 1e-300)]
)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 40])
def test_equal_ratios_are_edges_up_to_the_maximum(low: float, high: float, count: int) -> None:
    line = check_grid(low, high, None, None).ratios(count)
    assert len(line) == count
    assert line[-1] == pytest.approx(high)
    assert (line > low - 1e-12).all()
    if low == 0 and count > 1 and high > 1e-200:
        assert line[0] == pytest.approx(high / RANGE)
    if low < 0 < high and count > 2:
        assert 0.0 in line
    if low >= 0 and high > 1e-200 and count > 2:
        np.testing.assert_allclose(np.diff(np.log(line)), math.log(line[-1] / line[0]) / (count - 1))


def test_a_grid_is_thinned_evenly_with_its_highest_edge() -> None:
    grid = check_grid(None, None, None, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    assert grid.thinned(3).tolist() == [2.0, 8.0, 32.0]
    assert grid.thinned(1).tolist() == [32.0]
    assert grid.thinned(9).tolist() == grid.steps("sparse-vector").tolist()
    for count in range(1, 101):
        line = check_grid(None, 100.0, 100, None).thinned(count)
        assert len(line) == count
        assert line[-1] == 100.0
        assert np.ptp(np.diff(line)) <= 1 if count > 1 else True


def test_a_grid_is_fixed_if_its_edges_or_their_number_are() -> None:
    assert PublicGrid(0.0, 1.0, 10).fixed
    assert check_grid(None, None, None, [1.0]).fixed
    assert not check_grid(None, 1.0, None, None).fixed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "a public maximum of the scores is needed"),
        ({"maximum": 1.0, "grid": [1.0]}, "give either"),
        ({"maximum": -1.0}, "above the minimum 0"),
        ({"maximum": math.inf}, "must be finite"),
        ({"maximum": 1.0, "bins": 0}, "between 1 and 100,000"),
        ({"maximum": 1.0, "bins": 2.5}, "bins must be a whole number"),
        ({"maximum": 5e-324}, "each larger than the one before"),
        ({"grid": [2.0, 1.0]}, "each larger than the one before"),
        ({"grid": ["a"]}, "a list of numbers"),
        ({"grid": [[1.0], [1.0, 2.0]]}, "a list of numbers"),
    ],
)
def test_what_makes_no_grid_is_refused(given: dict[str, Any], said: str) -> None:
    asked = {"minimum": None, "maximum": None, "bins": None, "grid": None, **given}
    with pytest.raises(BadInput, match=said):
        check_edges(**asked, private=True)


def test_without_privacy_there_is_no_grid() -> None:
    assert check_edges(None, None, None, None, private=False) is None
    with pytest.raises(BadInput, match="bins belongs to a private study"):
        check_edges(None, None, 10, None, private=False)
