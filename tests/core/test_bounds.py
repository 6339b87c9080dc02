"""Bounds are read from every shape people give them in, and scale there and back."""

import copy
import importlib
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sottovoce.core.bounds import Bounds, read_bounds
from sottovoce.core.errors import BadInput

NAMES = ("miles", "hour")


def refusal(bounds: Any, names: tuple[str, ...] = NAMES) -> str:
    with pytest.raises(BadInput) as refused:
        read_bounds(bounds, names)
    text = str(refused.value)
    assert "\n" not in text
    assert ". " not in text
    assert refused.value.__cause__ is None
    return text


SPELLINGS: dict[str, Any] = {
    "pairs": [(0, 30), (2, 24)],
    "tuple of lists": ([0, 30], [2, 24]),
    "array": np.array([[0, 30], [2, 24]]),
    "mapping": {"hour": (2, 24), "miles": (0, 30)},
    "mapping of arrays": {"hour": np.array([2.0, 24.0]), "miles": pa.array([0, 30])},
    "scalars": [(pa.scalar(0), np.float32(30)), (Decimal(2), pd.Series([24]).iloc[0])],
}


@pytest.mark.parametrize("given", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_gives_the_same_bounds(given: Any) -> None:
    bounds = read_bounds(given, NAMES)
    assert bounds.low.tolist() == [0.0, 2.0]
    assert bounds.high.tolist() == [30.0, 24.0]
    assert bounds.names == NAMES
    assert bounds.given


@pytest.mark.parametrize("given", [(0, 9), [0, 9], np.array([0, 9]), pa.array([0, 9]), pd.Series([0.0, 9.0])])
def test_one_pair_is_for_all_columns(given: Any) -> None:
    bounds = read_bounds(given, NAMES)
    assert (bounds.low.tolist(), bounds.high.tolist()) == ([0.0, 0.0], [9.0, 9.0])


def test_no_bounds_leave_covariates_as_they_are() -> None:
    bounds = read_bounds(None, NAMES)
    assert not bounds.given
    raw = np.array([[0.1, -0.3], [1.0, -1.0]])
    assert np.array_equal(bounds.scale(raw), raw)
    assert np.array_equal(bounds.to_raw, np.eye(3))


def test_bounds_become_the_corners() -> None:
    bounds = read_bounds([(-3, 5), (100, 101)], NAMES)
    assert bounds.scale(np.array([[-3, 101], [5, 100], [1, 100.5]])).tolist() == [[-1, 1], [1, -1], [0, 0]]


def test_wide_bounds_do_not_overflow() -> None:
    bounds = read_bounds((-1.5e308, 1.5e308), ("x",))
    assert bounds.scale([[1.5e308], [-1.5e308]]).tolist() == [[1.0], [-1.0]]


def example() -> tuple[Bounds, Any, Any]:
    bounds = read_bounds({"miles": (-2, 30), "hour": (5, 24)}, NAMES)
    raw = np.array([[0.0, 6.5], [29.0, 23.0], [-1.0, 5.0], [7.0, 7.0]])
    return bounds, raw, np.array([3.0, -1.5, 0.25])


def test_raw_coefficients_predict_as_scaled_ones() -> None:
    bounds, raw, beta = example()
    intercept, slopes = bounds.unscale_coefficients(beta)
    np.testing.assert_allclose(intercept + raw @ slopes, beta[0] + bounds.scale(raw) @ beta[1:], rtol=1e-14)


def test_the_matrices_are_the_map_and_its_inverse() -> None:
    bounds, _, beta = example()
    intercept, slopes = bounds.unscale_coefficients(beta)
    np.testing.assert_allclose(bounds.to_raw @ beta, [intercept, *slopes], rtol=1e-14)
    np.testing.assert_allclose(bounds.to_scaled @ bounds.to_raw, np.eye(3), atol=1e-14)


def test_several_fits_are_unscaled_at_once() -> None:
    bounds, _, beta = example()
    both = np.stack([beta, 2 * beta])
    intercepts, slopes = bounds.unscale_coefficients(both)
    assert intercepts.shape == (2,)
    np.testing.assert_allclose(np.column_stack([intercepts, slopes]), both @ bounds.to_raw.T, rtol=1e-14)


def test_bounds_are_public_and_can_be_copied() -> None:
    bounds = read_bounds((0, 1), NAMES)
    pickle: Any = importlib.import_module("pickle")
    for twin in (copy.deepcopy(bounds), pickle.loads(pickle.dumps(bounds))):
        assert np.array_equal(twin.high, bounds.high)


def test_missing_and_unknown_names_are_listed() -> None:
    text = refusal({"miles": (0, 1), "huor": (0, 1), "day": (0, 1)})
    assert "has no pair for 'hour' and names 'huor', 'day', which X does not have" in text
    assert "names" not in refusal({"miles": (0, 1)})
    assert "no pair" not in refusal({"miles": (0, 1), "hour": (0, 1), "day": (0, 1)})


REFUSED: dict[str, tuple[Any, str]] = {
    "text": ("ab", "bounds is text"),
    "a number": (3, "bounds is an int"),
    "an array without dimension": (np.array(3.0), "bounds is a ndarray"),
    "three pairs": ([(0, 1)] * 3, "3 entries and X has 2 columns"),
    "a pair and a number": ([(0, 1), 1], "2 entries and X has 2 columns"),
    "one number": ((0,), "1 entries"),
    "three numbers": ([(0, 1, 2), (0, 1)], "'miles' has 3 numbers"),
    "equal": ([(0, 1), (9, 9)], "'hour' are (9, 9): give low < high"),
    "reversed": ((1, 0), "are (1, 0): give low < high"),
    "infinite": ((0, np.inf), "are (0, inf): give two finite numbers"),
    "NaN": ((np.nan, 1), "two finite numbers"),
    "text in a pair": ((0, "a"), "holds text"),
    "None in a pair": ((None, 1), "holds None"),
    "truth": ((False, True), "holds a truth value"),
    "complex": ((0, 1j), "holds a complex number"),
    "too close": ((1e9, 1e9 + 1e-6), "too close together"),
    "a mapping to numbers": ({"miles": 1, "hour": 2}, "'miles' is an int"),
}


@pytest.mark.parametrize(("bounds", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_bounds_are_refused_in_one_sentence(bounds: Any, words: str) -> None:
    assert words in refusal(bounds)
