import numpy as np

from sottovoce_papers.simulation.experiment import StagedCell, score, score_all
from sottovoce_papers.simulation.populations import homogeneous, population

CELL = StagedCell("normal", homogeneous(population("normal"), 4), 0.5, (0.9,) * 4, (20_000,) * 4)


def test_the_oracle_is_the_textbook_standard_error() -> None:
    # rate r: variance of a decoded bit at the median is 1 / (4 r^2), density 1 / sqrt(2 pi)
    assert np.isclose(CELL.oracle, np.sqrt(2 * np.pi / (4 * 0.81 * 80_000)), rtol=1e-6)
    assert CELL.truth == 0.0
    assert np.isclose(CELL.support, 1 / (2 * 0.9 * np.sqrt(80_000)) / 0.5)


def test_a_score_is_reproducible_and_sane() -> None:
    one, two = score(CELL, 20, 5), score(CELL, 20, 5)
    assert one == two
    assert 0.5 < one.coverage <= 1
    assert 0.9 < one.length < 1.5
    assert one.certified == 0
    assert score(CELL, 20, 6) != one


def test_many_cells_get_seeds_of_their_own_and_keep_their_order() -> None:
    cells = [CELL, StagedCell("wide", homogeneous(population("normal").moved(0, 8), 4), 0.5, (0.9,) * 4, (20_000,) * 4)]
    scores = score_all(cells, 3, 5, jobs=2)
    assert [s.name for s in scores] == ["normal", "wide"]
    assert scores[0] == score(CELL, 3, 5)
    assert scores[1] == score(cells[1], 3, 6)
