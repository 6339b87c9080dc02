"""From counts to a cell: the scan, the sums, and messages that cannot be."""

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.coverage.pooled import PooledChoice
from sottovoce.server.conformal.pooled import cell_of_sum, cell_of_tallies, first_above

LOCAL = PooledChoice(3, (10, 10, 10), 0.9, 0.5, 0.0, 0.1, (1.0, 2.0), (1, 3), asked=(8, 5))
SUM = PooledChoice(3, (12, 10, 8), 0.9, 0.5, 0.0, 0.1, (1.0,), (1,))


@pytest.mark.parametrize(
    ("counts", "cell"),
    [([9, 9, 9], 3), ([9, 9, 4], 2), ([5, 4, 4], 1), ([4, 4, 4], 0), ([1, 9, 1], 2), ([9, 1, 9], 3)],
)
def test_the_scan_stops_at_the_highest_count_above_its_threshold(counts: list[int], cell: int) -> None:
    assert first_above(counts, [4, 4, 4]) == cell


def test_each_comparison_has_its_own_threshold() -> None:
    assert first_above([9, 9, 9], [0, 8, 9]) == 2


def test_votes_weigh_the_answers() -> None:
    assert cell_of_tallies([[8, 5, 2], [4, 2, 2]], LOCAL) == 2  # 20, 11, 8
    assert cell_of_tallies([[8, 5, 2], [4, 1, 3]], LOCAL) == 3  # 20, 8, 11
    assert cell_of_tallies([[1, 1, 1], [3, 3, 3]], LOCAL) == 0  # 10 each


@pytest.mark.parametrize(
    "ones", [[[8, 5, 2], [4, 2, 6]], [[8, 5, 2], [4, 2, -1]], [[8, 5], [4, 2]], [[9, 5, 2], [4, 2, 1]]]
)
def test_impossible_tallies(ones: list[list[int]]) -> None:
    with pytest.raises(BadInput, match="site number"):
        cell_of_tallies(ones, LOCAL)


def test_a_missing_site() -> None:
    with pytest.raises(BadInput, match="2 sites were asked but 1 answered"):
        cell_of_tallies([[1, 1, 1]], LOCAL)


def test_cells_are_added_from_above() -> None:
    assert cell_of_sum([0, 3, 9], SUM) == 3
    assert cell_of_sum([0, 3, 8], SUM) == 2
    assert cell_of_sum([3, 2, 8], SUM) == 1
    assert cell_of_sum([2, 2, 8], SUM) == 0


def test_noise_may_be_negative() -> None:
    below = [2, 14, 2**32 - 5]  # -5, 9, 11
    assert cell_of_sum(below, SUM) == 0
    assert cell_of_sum([below[0] + 2, *below[1:]], SUM) == 1


def test_a_sum_of_another_length() -> None:
    with pytest.raises(BadInput, match="3 cells"):
        cell_of_sum([0] * 4, SUM)
