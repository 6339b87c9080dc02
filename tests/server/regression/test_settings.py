"""Parameters are put in order once: levels ascend, and what was given for each level goes with them."""

import re
from typing import Any

import numpy as np
import pytest

from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import BadInput
from sottovoce.server.regression.settings import SCHEDULES, RegressionSettings, read_settings

BOUNDS = read_bounds([(0, 10), (-4, 0)], ("a", "b"))


def settings(**options: Any) -> RegressionSettings:
    return read_settings(PrivateQuantileRegressor(**options).get_params(deep=False))


def test_defaults() -> None:
    found = settings()
    assert (found.taus, found.several, found.epsilon, found.inference) == ((0.5,), False, 1.0, "dithered")
    assert found.searches
    assert found.limit == np.inf
    assert found.tree == (4, 4)
    assert found.starts(BOUNDS.to_scaled) is None


def test_what_is_given_for_each_level_follows_it() -> None:
    found = settings(tau=(0.9, 0.1), density=[1.0, 2.0], start=[[9.0, 0.0, 0.0], [1.0, 0.0, 0.0]], size=3)
    assert found.taus == (0.1, 0.9)
    assert found.density is not None
    assert found.density.tolist() == [2.0, 1.0]
    starts = found.starts(BOUNDS.to_scaled)
    assert starts is not None
    assert starts[:, 0].tolist() == [1.0, 9.0]
    assert not found.searches


def test_a_raw_start_is_scaled_and_a_number_is_the_intercept() -> None:
    raw = np.array([5.0, 2.0, -3.0])
    starts = settings(tau=[0.2, 0.4], start=raw).starts(BOUNDS.to_scaled)
    assert starts is not None
    assert starts.shape == (2, 3)
    assert np.allclose(BOUNDS.to_raw @ starts[1], raw)
    only = settings(start=7).starts(BOUNDS.to_scaled)
    assert only is not None
    assert only.tolist() == [[7.0, 0.0, 0.0]]


@pytest.mark.parametrize("inference", SCHEDULES)
def test_every_inference_has_one_schedule(inference: str) -> None:
    right = SCHEDULES[inference]
    wrong = "paper" if right == "information" else "information"
    assert settings(inference=inference, schedule=right).inference == inference
    with pytest.raises(BadInput, match="leave schedule out"):
        settings(inference=inference, schedule=wrong)


@pytest.mark.parametrize("guess", ["size", "density"])
@pytest.mark.parametrize("value", [1e-300, 1e-16, 1e16, 1e300])
def test_guesses_out_of_all_proportion_are_refused(guess: str, value: float) -> None:
    with pytest.raises(BadInput, match=re.escape(f"{guess} must lie between 1e-15 and 1e+15, not {value:g}")):
        settings(**{guess: value})
    settings(**{guess: 1e-15})
    settings(**{guess: 1e15})


def test_size_and_density_have_to_go_together() -> None:
    settings(size=1e-15, density=1e15)
    with pytest.raises(BadInput, match="size times density is 1e-13"):
        settings(size=1e-6, density=[1e-7, 1.0], tau=[0.2, 0.5])
    for start in (np.inf, [0.0, -np.inf], np.nan):
        with pytest.raises(BadInput, match="start must be a finite number"):
            settings(start=start)


def test_numbers_of_numpy_are_numbers() -> None:
    found = settings(tau=np.float64(0.3), epsilon=np.float32(2), groups=np.int64(4), shuffle=np.bool_(False))
    assert (found.taus, found.several, found.groups, found.shuffle) == ((0.3,), False, 4, False)
    assert settings(tau=np.array([0.3, 0.6])).several
