"""Bad input of a conformal regressor: one sentence that names the site, the row and the kind, and no value."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, QuantileRegressor, Ridge

import sottovoce as sv
from sottovoce.api.conformal.regressor import FederatedConformalRegressor

SECRET = 987654.321
X = np.linspace(0, 1, 900).reshape(300, 3) ** np.array([1.0, 2.0, 0.5])
Y = X.sum(axis=1) + np.sin(1000 * X[:, 0])
SITES = {"north": (X[100:200], Y[100:200]), "south": (X[200:], Y[200:])}


def fitted(**settings: Any) -> FederatedConformalRegressor:
    return FederatedConformalRegressor(**settings).fit(X[:100], Y[:100])


class Both:
    """A model that predicts whatever it is told to."""

    def __init__(self, low: float) -> None:
        self.low = low

    def predict(self, x: Any) -> Any:
        return np.tile([self.low, 1.0], (len(x), 1))


def with_secret(row: int, column: int | None = None, value: Any = math.nan) -> Any:
    """Return a site that holds a secret and, in some row, a value that cannot be used."""
    x, y = X[100:200].copy(), Y[100:200].copy()
    x[50, 1] = y[50] = SECRET
    if column is None:
        y[row] = value
    else:
        x[row, column] = value
    return {"north": SITES["north"], "south": (x, y)}


def texts() -> Any:
    x = X[100:200].astype(object)
    x[3, 1] = str(SECRET) + "a"
    return {"south": (x, Y[100:200])}


@pytest.mark.parametrize(
    ("sites", "complaint"),
    [
        (with_secret(6), "The response y of site 'south' contains NaN in row 7"),
        (with_secret(6, value=math.inf), "The response y of site 'south' contains infinity in row 7"),
        (with_secret(8, 2), "X of site 'south' holds NaN in row 9: the model does not take it"),
        (with_secret(8, 2, -math.inf), "X of site 'south' holds infinity in row 9"),
        (texts(), "X of site 'south' is refused by the model .*are there texts in it"),
        ({"south": (X[:2], [str(SECRET), "b"])}, "The response y of site 'south' holds text in row 1"),
        ({"south": (X[:5], Y[:4])}, "site 'south' has 5 rows in X and 4 in y"),
        ({"south": (X[:0], Y[:0])}, "site 'south' has no records: leave it out"),
        ({"south": (X[:5], np.ones((5, 2)))}, r"The response y of site 'south' has the shape \(5, 2\)"),
        ({"south": (X[:5, :2], Y[:5])}, "X of site 'south' does not fit the model: X has 2 features"),
        ({"south": (X[:5, 0], Y[:5])}, "X of site 'south' does not fit the model: X does not contain any features"),
        ({"a": (X, Y), "b": (X[::-1], Y)}, "sites 'a' and 'b' share records"),
    ],
)
def test_refusals_name_the_site_and_no_value(sites: Any, complaint: str) -> None:
    with pytest.raises(sv.BadInput, match=complaint) as refused:
        fitted().conformalize(sites)
    assert str(int(SECRET)) not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_names_of_columns_are_compared() -> None:
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = FederatedConformalRegressor().fit(frame[:100], Y[:100])
    with pytest.raises(
        sv.BadInput, match="X of site 'a' does not fit the model: The feature names should match"
    ) as one:
        model.conformalize({"a": (frame[100:][["v", "u", "w"]], Y[100:])})
    assert "\n" not in str(one.value)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.conformalize({"a": (X[100:], Y[100:])})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_model_that_predicts_no_number_is_refused(value: float) -> None:
    model = FederatedConformalRegressor(Both(value), conformity_score="quantiles", prefit=True)
    kind = "NaN" if math.isnan(value) else "infinity"
    with pytest.raises(sv.BadInput, match=f"predictions with {kind} in row 1 for the rows of site 'north'"):
        model.conformalize(SITES)
    with pytest.raises(sv.BadInput, match=f"predictions with {kind} in row 1 for the rows: remove"):
        model.predict(X)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"conformity_score": "lac"}, "conformity_score 'lac' is unknown; choose one of 'absolute', 'quantiles'"),
        ({"estimator": (Ridge(), Ridge())}, "the estimator is a pair of regressors"),
        ({"estimator": "ridge"}, "the estimator is text without predict"),
        ({"estimator": [Ridge()], "conformity_score": "quantiles", "prefit": True}, "the estimator is a sequence of 1"),
        ({"estimator": QuantileRegressor(), "conformity_score": "quantiles", "alpha": 2}, "alpha must lie strictly"),
    ],
)
def test_bad_settings(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(sv.BadInput, match=complaint):
        fitted(**settings)


def test_the_words_of_a_private_regressor_come_with_the_site() -> None:
    inner = sv.PrivateQuantileRegressor([0.05, 0.95], 8.0, bounds=(0, 1), density=0.5, size=2.0, start=1.5)
    model = FederatedConformalRegressor(inner.fit(X, Y), conformity_score="quantiles", prefit=True)
    with pytest.raises(sv.BadInput, match="site 'south': Column 'x2' of X contains NaN in row 9"):
        model.conformalize(with_secret(8, 2))


def test_what_was_not_called_is_asked_for() -> None:
    model = FederatedConformalRegressor()
    for ask in (lambda: model.predict(X), lambda: model.conformalize(SITES), lambda: model.predict_interval(X)):
        with pytest.raises(NotFittedError, match=r"not fitted yet: call fit\(X, y\) before \w+, or give a fitted"):
            ask()
    unfitted = FederatedConformalRegressor(LinearRegression(), prefit=True)
    with pytest.raises(NotFittedError, match="LinearRegression instance is not fitted"):
        unfitted.conformalize(SITES)


def test_settings_are_checked_before_any_site_is_scored() -> None:
    class Asked(LinearRegression):  # type: ignore[misc]
        def predict(self, X: Any) -> Any:  # noqa: N803
            raise AssertionError("a site was scored")

    model = Asked().fit([[0.0], [1.0]], [0.0, 1.0])
    for wrong, words in (({"epsilon": 1.0}, "public maximum"), ({"bins": 5}, "bins belongs"), ({"rule": "x"}, "rule")):
        c = FederatedConformalRegressor(model, prefit=True, **wrong)
        with pytest.raises(sv.BadInput, match=words):
            c.conformalize({"north": ([[0.0], [1.0]], [0.0, 1.0])})
