"""Columns of two values, categories and known moments in a regression: checked before anybody is asked, then exact."""

from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.arrays import Floats
from sottovoce.server.regression.design import design_of

GIVEN: dict[str, Any] = {"density": 0.5, "size": 1.0, "start": 0.0}
TRUE_MOMENTS = np.array([[1.0, 0.0, -0.94], [0.0, 1 / 3, 0.0], [-0.94, 0.0, 1.0]])


def people(n: int, seed: int = 5) -> tuple[dict[str, Floats], Floats]:
    """Draw people with a rare column of two values."""
    draw = sv.sim.dice(seed).generator()
    x = {"a": draw.uniform(-1, 1, n), "b": np.where(draw.random(n) < 0.03, 1.0, -1.0)}
    return x, 0.2 + 0.5 * x["a"] - 0.4 * x["b"] + draw.logistic(0, 0.5, n)


def width(**more: Any) -> float:
    """Return how long the interval of the rare column is, the median of five studies."""
    found = []
    for seed in range(5):
        m = sv.PrivateQuantileRegressor(0.5, 4.0, **GIVEN, **more, randomness=sv.sim.dice(seed)).fit(
            *people(60_000, seed + 20)
        )
        low, high = m.confidence_interval()[2]
        assert low < -0.4 < high
        found.append(high - low)
    return float(np.median(found))


def test_declaring_makes_the_interval_of_a_rare_column_shorter() -> None:
    plain = width()
    assert width(two_valued=["b"]) < 0.9 * plain  # letters show that its square is one, so little is left to declare
    assert width(two_valued=["b"], moments=TRUE_MOMENTS) < 0.9 * plain


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"two_valued": ["a"]}, "declared in two_valued and lies between its bounds in"),
        ({"two_valued": ["c"]}, "two_valued names 'c', which is not among"),
        ({"two_valued": "b"}, "two_valued must be a list of names"),
        ({"two_valued": ["b", "b"]}, "two_valued must name columns, each once"),
        ({"moments": 3}, "moments must be a mapping"),
        ({"moments": {"c": 0.0}}, "moments names 'c'"),
        ({"moments": {"a": 2.0}}, "mean that is not within its bounds"),
        ({"moments": {"a": (0.0, 1.5)}}, "standard deviation that no column of that mean has"),
        ({"moments": {"b": (0.0, 0.2)}, "two_valued": ["b"]}, "than a column of two values"),
        ({"moments": {"a": (0.0, 0.2, 1.0)}}, "must be a mean, or"),
        ({"moments": np.eye(2)}, "x has 3 entries"),
        ({"moments": np.eye(3) + 0.2 * np.eye(3, k=1)}, "symmetric"),
        ({"moments": np.diag([1.0, 2.0, 1.0])}, "what its bounds do not allow"),
        ({"moments": np.diag([1.0, 0.0, 1.0])}, "positive definite"),
    ],
)
def test_what_cannot_be_is_refused_before_anybody_is_asked(more: dict[str, Any], text: str) -> None:
    m = sv.PrivateQuantileRegressor(0.5, 4.0, **GIVEN, **more, randomness=sv.sim.dice(3))
    with pytest.raises(sv.BadInput) as refused:
        m.fit(*people(2000))
    assert text in str(refused.value)
    assert not hasattr(m, "n_reports_")


def test_known_moments_are_those_of_raw_columns() -> None:
    from sottovoce.core.bounds import Bounds
    from sottovoce.server.regression.settings import DEFAULTS, read_settings

    bounds = Bounds(np.array([0.0, 0.0]), np.array([10.0, 1.0]), ("a", "b"))
    z = np.column_stack([np.ones(4), [-0.5, 0.5, 0.1, 0.9], [-1, 1, -1, -1]])
    raw = np.column_stack([np.ones(4), bounds.centre + bounds.half * z[:, 1:]])
    settings = read_settings({**DEFAULTS, "two_valued": ["b"], "moments": raw.T @ raw / 4})
    assert design_of(settings, bounds).known.information == pytest.approx(z.T @ z / 4)
