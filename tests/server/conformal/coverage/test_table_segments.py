"""Few points stand for many whole numbers."""

import numpy as np
import pytest

from sottovoce.server.conformal.coverage.table import DEGREE, THEMSELVES, segments


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 66, 127, 128, 129, 1000, 100_003])
def test_every_number_is_reached_once(count: int) -> None:
    points, parts = segments(count)
    assert [part.stop for part in parts[:-1]] == [part.start for part in parts[1:]]
    assert (parts[0].start, parts[-1].stop) == (0, count)
    numbers = np.concatenate([part.fill(points[:, None])[:, 0] for part in parts])
    np.testing.assert_allclose(numbers, np.arange(1, count + 1), rtol=1e-13)
    assert len(points) <= THEMSELVES + DEGREE * max(count // THEMSELVES, 1).bit_length()


def test_functions_that_are_smooth_away_from_zero_are_exact() -> None:
    points, parts = segments(5000)
    k = np.arange(1, 5001)
    for function in (np.log, np.sqrt, np.reciprocal, lambda x: np.exp(-200 / x), lambda x: x / (x + 40)):
        found = np.concatenate([part.fill(function(points)) for part in parts])
        np.testing.assert_allclose(found, function(k.astype(float)), rtol=1e-12, atol=1e-13)


def test_a_point_that_is_a_whole_number_is_itself() -> None:
    points, parts = segments(128)
    values = np.sin(points)
    for part in parts[1:]:
        assert part.matrix is not None
        hit = np.isclose(part.matrix.max(axis=1), 1) & (np.count_nonzero(part.matrix, axis=1) == 1)
        numbers = np.arange(part.start + 1, part.stop + 1)[hit]
        np.testing.assert_array_equal(part.fill(values)[hit], np.sin(numbers))
