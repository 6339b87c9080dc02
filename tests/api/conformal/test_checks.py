"""Scikit-learn's own checks of the conformal estimators: none fails, one is skipped where no array library is there."""

import importlib
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

from sottovoce.api.conformal.classifier import FederatedConformalClassifier
from sottovoce.api.conformal.regressor import FederatedConformalRegressor

threads: Any = importlib.import_module("threadpoolctl")

ESTIMATORS = {
    "regressor": FederatedConformalRegressor(),
    "private": FederatedConformalRegressor(Ridge(), epsilon=1.0, maximum=10.0),
    "pair": FederatedConformalRegressor((Ridge(), Ridge(2.0)), conformity_score="quantiles"),
    "quantiles": FederatedConformalRegressor(QuantileRegressor(alpha=0.01), conformity_score="quantiles"),
    "classifier": FederatedConformalClassifier(),
    "bayes": FederatedConformalClassifier(GaussianNB(), conformity_score="aps-inclusive"),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_check_estimator(kind: str) -> None:
    with warnings.catch_warnings(), threads.threadpool_limits(1):
        warnings.simplefilter("ignore")
        done = check_estimator(ESTIMATORS[kind], on_skip=None)
    assert len(done) > 45
    assert {each["check_name"] for each in done if each["status"] != "passed"} <= {"check_array_api_input"}


def test_the_checks_notice_a_model_that_predicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ridge, "predict", lambda self, X: np.zeros(len(X)))  # noqa: N803
    with pytest.raises(AssertionError):
        check_estimator(FederatedConformalRegressor(Ridge()), on_skip=None)


def test_they_are_estimators_among_others() -> None:
    x = np.linspace(0, 1, 60)[:, None]
    assert cross_val_score(FederatedConformalRegressor(), x, 3 * x[:, 0], cv=3, scoring="r2").min() > 0.9
    assert cross_val_score(FederatedConformalClassifier(), x - 0.5, x[:, 0] > 0.5, cv=3).min() > 0.7
