"""Whom a regression asks: a search for guesses first, levels drawn in public, and nobody twice."""

from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.api.regression.stream import taken
from sottovoce.client.regression.rows import Rows

N = 6000


def people(n: int = N, location: float = 1000.0, scale: float = 50.0) -> tuple[Any, Any]:
    source = sv.sim.dice(1).generator()
    features = source.uniform(-1, 1, (n, 2))
    return features, location + scale * (features[:, 0] - features[:, 1] + source.logistic(0.0, 0.5, n))


def regressor(**options: Any) -> PrivateQuantileRegressor:
    return PrivateQuantileRegressor(**{"epsilon": 4.0, "randomness": sv.sim.dice(5), **options})


@pytest.mark.parametrize(("location", "scale"), [(0.0, 1.0), (-1e6, 30.0), (1e3, 1e-3)])
def test_the_first_people_find_location_and_scale(location: float, scale: float) -> None:
    model = regressor().fit(*people(N, location, scale))
    # errors are about .05 scales; a false alarm of 1e-6 is five of them
    assert abs(model.intercept_ - location) < 0.3 * scale
    assert np.all(np.abs(model.coef_ - [scale, -scale]) < 0.5 * scale)
    assert model.n_reports_ == N


@pytest.mark.parametrize("options", [{}, {"tau": [0.25, 0.75], "channel": "cq:2,1"}, {"inference": "self-normalised"}])
def test_a_search_in_batches_is_the_same_search(options: dict[str, Any]) -> None:
    features, response = people()
    whole = regressor(shuffle=False, **options).fit(features, response)
    parts = regressor(shuffle=False, **options)
    for start in range(0, N, 250):
        parts.partial_fit(features[start : start + 250], response[start : start + 250])
    assert np.array_equal(whole.coef_, parts.coef_)
    assert np.array_equal(whole.intercept_, parts.intercept_)


def test_while_the_search_goes_on_there_is_no_estimate() -> None:
    features, response = people()
    model = regressor(shuffle=False).partial_fit(features[:100], response[:100])
    assert np.isnan(model.coef_).all()
    assert model.n_reports_ == 100
    assert "that search is not over" in model.summary()
    with pytest.raises(sv.Infeasible, match="100 people were asked for location and scale"):
        model.confidence_interval()
    with pytest.raises(sv.Infeasible, match="not over"):
        model.ellipsoid()
    model.partial_fit(features[100:], response[100:])
    assert np.isfinite(model.coef_).all()
    assert model.warnings_ == ()


def test_a_guess_that_is_given_is_kept() -> None:
    features, response = people()
    held = regressor(start=[900.0, 1.0, 2.0], size=1e-6).fit(features, response)
    assert np.allclose([held.intercept_, *held.coef_], [900.0, 1.0, 2.0], atol=1e-3)


def test_a_search_that_does_not_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(sv.Infeasible, match="location and scale"):
        regressor(epsilon=2.0).fit(*people(100))
    monkeypatch.setattr("sottovoce.server.regression.feasibility.SPARE", 0.0)
    with pytest.raises(sv.SearchFailed, match="asked all 100 people and did not end"):
        regressor(epsilon=2.0).fit(*people(100))


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e-14, 0.0, 1e16, 1e100, 1e300])
def test_a_unit_beyond_doubles_is_refused_before_the_regression_asks(scale: float) -> None:
    features, response = people(4_000, 0.0, 1.0)
    model = regressor(epsilon=8.0)
    with pytest.raises(sv.SearchFailed, match="give the response in another unit, or less a public number"):
        model.fit(features, response * scale)
    assert model._stream.people < 2_000
    assert not model._stream.runs.recursions


def test_a_location_where_doubles_end_is_refused() -> None:
    features, response = people(4_000, 0.0, 1.0)
    with pytest.raises(sv.SearchFailed, match="less a public number"):
        regressor(epsilon=8.0).fit(features, response + 1e15)
    with pytest.raises(sv.BadInput, match=r"^size is 1, which no double tells apart at a start of 1e\+15"):
        regressor(start=1e15, size=1.0, density=0.4).fit(features, response)


def test_everybody_is_asked_once_whatever_the_design() -> None:
    features, response = people()
    for options in ({}, {"tau": [0.25, 0.75], "channel": "cq:2,1"}, {"density": 0.01, "size": 50.0, "start": 1000.0}):
        told: list[int] = []
        model = regressor(**options).fit(features, response, progress=told.append)
        assert sum(told) == model.n_reports_ == N


def test_levels_are_drawn_evenly() -> None:
    options = {"density": 0.01, "size": 50.0, "start": 1000.0, "channel": "cq:2,1"}
    model = regressor(tau=[0.2, 0.5, 0.8], **options).fit(*people())
    shares = [recursion.people for recursion in model._stream.runs.recursions]
    assert sum(shares) == N
    assert max(abs(share - N / 3) for share in shares) < 5 * np.sqrt(N * 2 / 9)


def test_rows_are_taken_in_the_order_asked_for() -> None:
    rows = Rows(np.array([[0.1], [0.2], [0.3]]), np.array([1.0, 2.0, 3.0]))
    some = taken(rows, np.array([2, 0]))
    assert some.features().tolist() == [[0.3], [0.1]]
    assert some.response().tolist() == [3.0, 1.0]
    assert taken(rows, slice(1, None)).size == 2
