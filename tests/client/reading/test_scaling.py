"""Scaling keeps to the box, and counts and names what does not."""

from typing import Any

import numpy as np
import pytest

from sottovoce.client.reading.matrix import CHUNK, open_matrix
from sottovoce.client.reading.scaling import Scaled, refuse_not_finite, scaled
from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import BadInput


def scale(table: Any, bounds: Any, clip: bool = False) -> Scaled:
    matrix = open_matrix(table)
    return scaled(matrix, read_bounds(bounds, matrix.names), clip=clip)


def refusal(table: Any, bounds: Any, clip: bool = False) -> str:
    with pytest.raises(BadInput) as refused:
        scale(table, bounds, clip)
    text = str(refused.value)
    assert "\n" not in text
    assert ". " not in text
    return text


def grid(n: int = CHUNK + 100) -> Any:
    """Return rows over more than one chunk, both columns within (0, 8)."""
    return np.column_stack([np.linspace(0.0, 8.0, n), np.linspace(8.0, 0.0, n)])


def test_every_stretch_is_scaled() -> None:
    raw = grid()
    features, clipped = scale(raw, (0, 8))
    np.testing.assert_allclose(features, raw / 4 - 1, atol=1e-15)
    assert clipped == 0
    assert features.flags.c_contiguous
    assert not np.shares_memory(features, raw)


@pytest.mark.parametrize("table", [np.asfortranarray(grid()), grid().astype(np.float32), {"a": grid()[:, 0]}])
def test_other_layouts_are_scaled_alike(table: Any) -> None:
    features = scale(table, (0, 8)).features
    np.testing.assert_allclose(features, grid()[:, : features.shape[1]] / 4 - 1, atol=1e-6)


def test_rounding_at_the_edge_is_moved_and_not_counted() -> None:
    beyond = np.nextafter(8.0, 9.0)
    for value in (beyond, 8.0 + 3e-9):
        features, clipped = scale([[value, 0.0], [-2e-9, 1.0]], (0, 8))
        assert features[0, 0] == 1.0
        assert features[1, 0] == -1.0
        assert clipped == 0
    assert "in row 1" in refusal([[8.0 + 5e-9, 0.0], [0.0, 1.0]], (0, 8))


def test_a_value_on_bounds_far_from_zero_is_within_them() -> None:
    low, high = 1.7e9 + 0.3, 1.7e9 + 0.9
    features, clipped = scale([[low], [high]], (low, high))
    assert np.abs(features).max() <= 1.0
    assert clipped == 0


def test_values_out_of_bounds_are_refused_by_column_and_row() -> None:
    raw = grid()
    raw[[CHUNK + 4, CHUNK + 60], 1] = 9.0, -40.0
    text = refusal({"miles": raw[:, 0], "hour": raw[:, 1]}, (0, 8))
    assert text == (
        "Column 'hour' of X is outside its bounds (0, 8) in 2 rows, the first of them row 16,389: widen the bounds, or "
        "give clip=True to move such values to the nearest bound"
    )


def test_without_bounds_the_sentence_asks_for_them() -> None:
    text = refusal([[0.5], [3.25]], None)
    assert "is outside [-1, 1] in row 2: give bounds=(low, high)" in text
    assert "3.25" not in text


def test_clipping_moves_values_and_counts_rows_once() -> None:
    raw = grid()
    raw[3] = 9.0, -1.0
    raw[CHUNK + 7, 0] = 1e300
    features, clipped = scale(raw, (0, 8), clip=True)
    assert clipped == 2
    assert features[3].tolist() == [1.0, -1.0]
    assert features[CHUNK + 7, 0] == 1.0
    assert np.abs(features).max() <= 1.0


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_missing_and_infinite_values_are_refused_in_any_case(value: float, kind: str, clip: bool) -> None:
    raw = grid()
    raw[0] = 99.0
    raw[[CHUNK + 1, CHUNK + 5], 1] = value
    for bounds in ((0, 8), None):
        text = refusal(raw, bounds, clip)
        assert text.startswith(f"Column 'x1' of X contains {kind} in 2 rows, the first of them row 16,386: remove")


def test_missing_values_come_before_infinite_ones() -> None:
    assert "NaN in row 2" in refusal([[np.inf, 0.0], [0.0, np.nan]], None)


def test_raw_covariates_need_only_be_finite() -> None:
    matrix = open_matrix(grid())
    refuse_not_finite(np.array([[1e300, -1e300]]), matrix)
    with pytest.raises(BadInput, match="'x1' of X contains infinity in row 2"):
        refuse_not_finite(np.array([[1.0, 2.0], [1.0, -np.inf]]), matrix)
    with pytest.raises(BadInput, match="'x0' of X contains NaN in row 2"):
        refuse_not_finite(np.array([[1.0, np.inf], [np.nan, 0.0]]), matrix)
