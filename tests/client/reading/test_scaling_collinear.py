"""Columns that no data could tell apart are refused by name; columns that are merely alike are not."""

from typing import Any

import numpy as np
import pytest

from sottovoce.client.reading.matrix import CHUNK, from_columns
from sottovoce.client.reading.scaling import refuse_collinear, scatter
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice

RNG = dice(7).generator()
N = CHUNK + 500
A, B, C = RNG.uniform(-1, 1, (3, N))


def check(**columns: Any) -> None:
    features = np.column_stack(list(columns.values()))
    refuse_collinear(features, from_columns(list(columns), list(columns.values())))


def refusal(**columns: Any) -> str:
    with pytest.raises(BadInput) as refused:
        check(**columns)
    return str(refused.value)


def test_the_scatter_is_the_centred_one() -> None:
    features = np.column_stack([A, B + 0.3, np.sort(C)])
    np.testing.assert_allclose(scatter(features) / N, np.cov(features.T, bias=True), atol=1e-13)


def test_the_scatter_keeps_its_digits_far_from_zero() -> None:
    features = np.column_stack([0.9 + 1e-7 * A, np.where(np.arange(N) < CHUNK, -1.0, 1.0)])
    exact = np.cov((features - features.mean(axis=0)).T, bias=True)
    np.testing.assert_allclose(scatter(features) / N, exact, rtol=1e-6)


def test_constant_columns_are_named() -> None:
    assert refusal(a=A, b=np.full(N, 0.1)) == (
        "Column 'b' of X is constant within its bounds, as the intercept is: leave it out"
    )
    assert "changes by less than a billionth" in refusal(a=A, b=0.5 + 1e-12 * B)


def test_a_narrow_column_is_not_constant() -> None:
    check(a=A, b=0.5 + 1e-7 * B)


LIKENESSES: dict[str, tuple[dict[str, Any], str]] = {
    "a copy": ({"a": A, "b": B, "c": A}, "'a' and 'c'"),
    "another unit": ({"a": A, "b": B, "c": 0.2 - 0.6 * A}, "'a' and 'c'"),
    "a sum": ({"a": A / 2, "b": B / 2, "c": C, "d": A / 2 + B / 2}, "'a', 'b' and 'd'"),
    "groups": ({"a": A < -0.5, "b": (A >= -0.5) & (A < 0.3), "c": A >= 0.3, "d": B}, "'a', 'b' and 'c'"),
    "two likenesses": ({"a": A, "b": B, "c": -A, "d": -B}, "'a' and 'c'"),
    "single precision": ({"a": A.astype(np.float32), "b": A, "c": B}, "'a' and 'b'"),
    "far from zero": ({"a": 0.9 + 1e-4 * A, "b": 0.8 - 1e-5 * A}, "'a' and 'b'"),
}


@pytest.mark.parametrize(("columns", "names"), LIKENESSES.values(), ids=LIKENESSES)
def test_collinear_columns_are_named(columns: dict[str, Any], names: str) -> None:
    text = refusal(**{name: np.asarray(column, dtype=np.float64) for name, column in columns.items()})
    assert text == (
        f"columns {names} are collinear, each being fixed by the others and the intercept: leave one of them out"
    )


def test_columns_that_are_merely_alike_pass() -> None:
    check(a=A, b=A + 1e-3 * B)
    check(a=A, b=A**2, c=A**3)
    check(a=0.9 + 1e-4 * A, b=0.9 + 1e-4 * A + 1e-6 * B)


def test_few_rows_are_left_to_the_gate() -> None:
    check(a=np.array([0.5]))
    check(a=np.array([0.5, 0.5]), b=np.array([0.1, 0.2]))
    assert "constant" in refusal(a=np.array([0.5, 0.5, 0.5]), b=np.array([0.1, 0.2, 0.2]))
