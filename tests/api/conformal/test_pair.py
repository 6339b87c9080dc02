"""Which two quantile regressors stand behind an estimator."""

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor, Ridge, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sottovoce as sv
from sottovoce.api.conformal.regressor import quantile_pair


class Boosted(BaseEstimator):  # type: ignore[misc]
    """A regressor with the settings of another library."""

    def __init__(self, objective: str = "reg:quantileerror", quantile_alpha: float = 0.5) -> None:
        self.objective = objective
        self.quantile_alpha = quantile_alpha


CLONED = {
    "linear": (QuantileRegressor(alpha=0.25), "quantile"),
    "boosted": (GradientBoostingRegressor(loss="quantile"), "alpha"),
    "histograms": (HistGradientBoostingRegressor(loss="quantile"), "quantile"),
    "another library": (Boosted(), "quantile_alpha"),
    "pipeline": (make_pipeline(StandardScaler(), QuantileRegressor()), "quantileregressor__quantile"),
    "target": (TransformedTargetRegressor(QuantileRegressor()), "regressor__quantile"),
}


@pytest.mark.parametrize("kind", CLONED)
def test_a_quantile_regressor_is_cloned_at_both_levels(kind: str) -> None:
    model, name = CLONED[kind]
    before = model.get_params()[name]
    low, high = quantile_pair(model, 0.2)
    assert (low.get_params()[name], high.get_params()[name]) == (0.1, 0.9)
    assert model.get_params()[name] == before
    assert low is not model
    assert high is not model


def test_other_settings_stay() -> None:
    assert [each.alpha for each in quantile_pair(QuantileRegressor(alpha=0.25), 0.2)] == [0.25, 0.25]


def test_a_pair_is_cloned_as_it_is() -> None:
    given = [Ridge(1.0), Ridge(2.0)]
    low, high = quantile_pair(given, 0.2)
    assert (low.alpha, high.alpha) == (1.0, 2.0)
    assert low is not given[0]


@pytest.mark.parametrize("model", [LinearRegression(), sv.PrivateQuantileRegressor(tau=[0.05, 0.95])])
def test_any_other_regressor_must_predict_both(model: Any) -> None:
    (only,) = quantile_pair(model, 0.2)
    assert type(only) is type(model)
    assert only is not model


@pytest.mark.parametrize(
    ("model", "alpha", "complaint"),
    [
        ((Ridge(),), 0.1, "the estimator is a sequence of 1: give a pair"),
        ([Ridge()] * 3, 0.1, "the estimator is a sequence of 3: give a pair"),
        (HistGradientBoostingRegressor(), 0.1, "the loss of the estimator is 'squared_error': set it to \"quantile\""),
        (SGDRegressor(), 0.1, "the loss of the estimator is 'squared_error'"),
        (QuantileRegressor(), 1.0, "alpha must lie strictly between 0 and 1, not 1.0"),
        (QuantileRegressor(), "a", "alpha must be a number, not 'a'"),
        (
            TransformedTargetRegressor(QuantileRegressor(), transformer=QuantileRegressor()),
            0.1,
            "the estimator has several levels, regressor__quantile and transformer__quantile: give a pair",
        ),
    ],
)
def test_refusals(model: Any, alpha: Any, complaint: str) -> None:
    with pytest.raises(sv.BadInput, match=complaint):
        quantile_pair(model, alpha)
