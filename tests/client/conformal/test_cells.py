"""Every score is counted once, in the cell whose upper edge is the first not below it."""

from itertools import pairwise

import numpy as np
import pytest

from sottovoce.client.conformal import draw
from sottovoce.client.conformal.draw import cell_counts
from sottovoce.client.record import Records
from sottovoce.sim.randomness import dice


def test_a_score_on_an_edge_belongs_to_the_cell_below() -> None:
    edges = np.array([-1.0, 0.0, 2.5])
    scores = np.array([-1.0, -0.0, np.nextafter(0.0, 1), 2.5, np.nextafter(2.5, 3), np.inf, -np.inf, -7.0])
    assert cell_counts(Records(scores), edges).tolist() == [3, 1, 2, 2]


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_pieces_add_up(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw, "PIECE", piece)
    scores, edges = dice(3).generator().normal(size=333), np.linspace(-2, 2, 9)
    found = cell_counts(Records(scores), edges)
    bounds = [-np.inf, *edges, np.inf]
    assert found.tolist() == [int(((scores > low) & (scores <= high)).sum()) for low, high in pairwise(bounds)]
    assert found.dtype == np.int64


def test_no_score_is_in_no_cell() -> None:
    assert cell_counts(Records(np.empty(0)), np.array([1.0])).tolist() == [0, 0]
