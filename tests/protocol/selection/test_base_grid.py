"""A grid is increasing and cannot be changed."""

import math

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection.base import grid


def test_a_grid_is_a_copy_that_stays_as_it_is() -> None:
    given = np.array([0.0, 1.0])
    made = grid(given)
    given[0] = 9.0
    assert made.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        made[0] = 1.0


@pytest.mark.parametrize("edges", [[], [1.0, 1.0], [2.0, 1.0], [0.0, math.inf], [math.nan], [[0.0, 1.0]]])
def test_what_is_no_grid_is_refused(edges: list[float]) -> None:
    with pytest.raises(BadInput, match="larger than the one before"):
        grid(edges)
