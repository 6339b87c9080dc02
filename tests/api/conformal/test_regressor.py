"""A conformal regressor: what it scores, sends on, predicts, forgets and refuses."""

import importlib
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, QuantileRegressor, Ridge

import sottovoce as sv
from sottovoce.api.conformal import estimator as conformal_estimator
from sottovoce.api.conformal.regressor import FederatedConformalRegressor

pickle: Any = importlib.import_module("pickle")
SECRET = 987654.321


def people(n: int = 400, seed: int = 1) -> tuple[Any, Any]:
    """Return covariates and responses whose spread grows with the first covariate."""
    source = sv.sim.dice(seed).generator()
    x = source.uniform(0, 1, (n, 3))
    return x, 2 * x[:, 0] + x[:, 1] + (0.2 + x[:, 0]) * source.normal(size=n)


X, Y = people()
SITES = {"north": (X[100:200], Y[100:200]), "south": (X[200:300], Y[200:300])}
NEW = X[300:]


def fitted(**settings: Any) -> FederatedConformalRegressor:
    return FederatedConformalRegressor(**settings).fit(X[:100], Y[:100])


class Both(BaseEstimator):  # type: ignore[misc]
    """A model that predicts whatever it is told to."""

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.low = low
        self.high = high

    def predict(self, x: Any) -> Any:
        return np.tile([self.low, self.high], (len(x), 1))


def test_the_interval_is_the_prediction_and_the_threshold_on_both_sides() -> None:
    model = fitted(estimator=Ridge(0.5), alpha=0.2).conformalize(SITES)
    plain = Ridge(0.5).fit(X[:100], Y[:100])
    t = model.threshold_.value
    assert t in np.concatenate([np.abs(y - plain.predict(x)) for x, y in SITES.values()])
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))
    expected = np.stack([plain.predict(NEW) - t, plain.predict(NEW) + t], axis=1)
    np.testing.assert_array_equal(model.predict_interval(NEW), expected)
    covered = np.mean((expected[:, 0] <= Y[300:]) & (Y[300:] <= expected[:, 1]))
    assert 0.65 < covered < 0.95


def test_scores_are_those_of_the_model_for_each_site() -> None:
    plain = LinearRegression().fit(X[:100], Y[:100])
    told = fitted().score_sites(SITES)
    assert list(told) == ["north", "south"]
    for name, (x, y) in SITES.items():
        np.testing.assert_array_equal(told[name], np.abs(y - plain.predict(x)))


def test_all_forms_of_calibration_data_give_one_threshold() -> None:
    one = pytest.approx(fitted().conformalize(SITES).threshold_.value, rel=1e-12)
    labels = np.repeat(["north", "south"], 100)
    assert fitted().conformalize(list(SITES.values())).threshold_.value == one
    assert fitted().conformalize(X[100:300], Y[100:300], site=labels).threshold_.value == one
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = FederatedConformalRegressor().fit(frame[:100], pd.Series(Y[:100]))
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    assert model.conformalize(frame[100:300], pd.Series(Y)[100:300], site=pd.Series(labels)).threshold_.value == one


def test_quantile_intervals_follow_the_data_and_cover() -> None:
    model = fitted(alpha=0.2, conformity_score="quantiles").conformalize(SITES)
    low, high = (QuantileRegressor(quantile=q, alpha=0).fit(X[:100], Y[:100]).predict(NEW) for q in (0.1, 0.9))
    t = model.threshold_.value
    ends = model.predict_interval(NEW)
    np.testing.assert_allclose(ends, np.stack([low - t, high + t], axis=1), atol=1e-12)
    np.testing.assert_allclose(model.predict(NEW), (low + high) / 2, atol=1e-12)
    assert np.corrcoef(ends[:, 1] - ends[:, 0], NEW[:, 0])[0, 1] > 0.8
    assert 0.65 < np.mean((ends[:, 0] <= Y[300:]) & (Y[300:] <= ends[:, 1])) < 0.95
    north = QuantileRegressor(quantile=0.1, alpha=0).fit(X[:100], Y[:100]).predict(X[100:200]) - Y[100:200]
    assert (model.score_sites(SITES)["north"] >= north - 1e-12).all()


@pytest.mark.parametrize("as_list", [False, True])
def test_a_prefit_pair_is_used_as_it_is_and_fit_may_be_skipped(as_list: bool) -> None:
    pair = [QuantileRegressor(quantile=q, alpha=0).fit(X[:100], Y[:100]) for q in (0.1, 0.9)]
    given = pair if as_list else tuple(pair)
    model = FederatedConformalRegressor(given, 0.2, conformity_score="quantiles", prefit=True).conformalize(SITES)
    again = fitted(estimator=QuantileRegressor(alpha=0), alpha=0.2, conformity_score="quantiles").conformalize(SITES)
    np.testing.assert_allclose(model.predict_interval(NEW), again.predict_interval(NEW), atol=1e-12)
    assert model.estimator_[0] is pair[0]
    assert model.fit(None, None).estimator_ == tuple(pair)


def test_a_prefit_or_frozen_regressor_is_not_fitted_again() -> None:
    plain = LinearRegression().fit(X[:100], Y[:100])
    wanted = fitted().conformalize(SITES).predict_interval(NEW)
    prefit = FederatedConformalRegressor(plain, prefit=True)
    assert prefit.predict(NEW).tolist() == plain.predict(NEW).tolist()
    np.testing.assert_array_equal(prefit.conformalize(SITES).predict_interval(NEW), wanted)
    frozen = FederatedConformalRegressor(FrozenEstimator(plain)).fit(-X, -Y)
    np.testing.assert_array_equal(frozen.conformalize(SITES).predict_interval(NEW), wanted)


def test_one_model_may_predict_both_ends() -> None:
    model = FederatedConformalRegressor(Both(), conformity_score="quantiles", prefit=True)
    scores = model.score_sites(SITES)
    np.testing.assert_array_equal(scores["north"], np.maximum(-1 - Y[100:200], Y[100:200] - 1))


def test_a_private_quantile_regressor_predicts_both_ends() -> None:
    guesses: dict[str, Any] = {"bounds": (0, 1), "density": 0.5, "size": 2.0, "start": 1.5}
    inner = sv.PrivateQuantileRegressor([0.05, 0.95], 4.0, **guesses, randomness=sv.sim.dice(5))
    x, y = people(2_500, seed=8)
    model = FederatedConformalRegressor(inner, 0.1, conformity_score="quantiles")
    model.fit(x[:1_500], y[:1_500]).conformalize([(x[1_500:1_900], y[1_500:1_900]), (x[1_900:2_100], y[1_900:2_100])])
    ends, new = model.predict_interval(x[2_100:]), y[2_100:]
    both = clone(inner).fit(x[:1_500], y[:1_500]).predict(x[2_100:])
    t = model.threshold_.value
    np.testing.assert_allclose(ends, both + np.array([-t, t]), atol=1e-12)
    # of mean .90 and sd below .0217 (400 new responses, and the threshold): five of these below, less than 1e-6
    assert 0.79 < np.mean((ends[:, 0] <= new) & (new <= ends[:, 1])) < 1.0
    assert model.n_features_in_ == 3
    single = FederatedConformalRegressor(inner.set_params(tau=0.5), conformity_score="quantiles")
    with pytest.raises(sv.BadInput, match=r"predictions of shape \(100,\) .*site 'north', not \(100, 2\): give a pair"):
        single.fit(x[:1_500], y[:1_500]).conformalize(SITES)


@pytest.mark.parametrize("score", ["absolute", "quantiles"])
def test_a_grid_below_all_scores_gives_the_whole_line_and_no_warning(score: str) -> None:
    far = {name: (x, y + 100) for name, (x, y) in SITES.items()}
    settings: dict[str, Any] = {"epsilon": 20.0, "maximum": 1.0, "randomness": sv.sim.dice(4)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(conformity_score=score, **settings).conformalize(far)
        ends = model.predict_interval(NEW)
    assert model.threshold_.value == math.inf
    assert ends.tolist() == [[-math.inf, math.inf]] * len(NEW)


def test_too_few_records_are_refused_with_the_number_needed() -> None:
    model = fitted()
    with pytest.raises(sv.Infeasible, match="at least 9 are needed"):
        model.conformalize({"tiny": (X[100:104], Y[100:104])})
    assert not hasattr(model, "threshold_")


def test_an_empty_set_is_the_point_in_the_middle() -> None:
    model = FederatedConformalRegressor(Both(-5.0, 5.0), 0.5, conformity_score="quantiles", prefit=True)
    model.conformalize({"one": (X, np.zeros(400))})
    assert model.threshold_.value == -5.0
    model.estimator_ = Both(1.0, 2.0)
    assert model.predict_interval(NEW[:1]).tolist() == [[1.5, 1.5]]


class Told:
    """Stands for the threshold, and remembers with what it was asked for."""

    value = 1.0

    def __init__(self, scores: Any, alpha: float, **settings: Any) -> None:
        self.scores, self.alpha, self.settings = scores, alpha, settings


def test_every_setting_reaches_the_threshold_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformal_estimator, "plan_threshold", Told)
    monkeypatch.setattr(conformal_estimator, "run_threshold", lambda planned: planned)
    monkeypatch.setattr(Told, "warnings", (), raising=False)
    monkeypatch.setattr(Told, "counted_by", lambda told, _: told, raising=False)
    for check in ("check_settings", "check_edges"):  # settings that no study could have together
        monkeypatch.setattr(conformal_estimator, check, lambda *_: None)
    given: dict[str, Any] = {
        "epsilon": {"north": 1.0, "south": 2.0},
        "maximum": 7.5,
        "minimum": 0.5,
        "bins": 40,
        "grid": [1.0, 2.0],
        "mechanism": "exponential",
        "guarantee": "training-conditional",
        "delta": 0.2,
        "rule": "paper",
        "statistics": 3,
        "exact": True,
    }
    told: Any = fitted(alpha=0.3, **given).conformalize(SITES).threshold_
    assert told.alpha == 0.3
    assert list(told.scores) == ["north", "south"]
    assert told.settings == {**given, "randomness": None}
    private: dict[str, Any] = {"epsilon": 1.0, "maximum": 9.0}
    for settings, minimum, maximum in (
        (private, None, 9.0),
        ({**private, "conformity_score": "quantiles"}, -9.0, 9.0),
        ({**private, "conformity_score": "quantiles", "minimum": -2.0}, -2.0, 9.0),
        ({"epsilon": 1.0, "conformity_score": "quantiles"}, None, None),
        ({"epsilon": 1.0, "conformity_score": "quantiles", "grid": [1.0]}, None, None),
        ({"conformity_score": "quantiles"}, None, None),
    ):
        told = fitted(**settings).conformalize(SITES).threshold_
        assert (told.settings["minimum"], told.settings["maximum"]) == (minimum, maximum)


def test_private_intervals() -> None:
    settings: dict[str, Any] = {"epsilon": 3.0, "randomness": sv.sim.dice(4)}
    for score in ("absolute", "quantiles"):
        model = fitted(conformity_score=score, maximum=6.0, **settings)
        first = model.conformalize(SITES).predict_interval(NEW)
        assert np.isfinite(first).all()
        assert model.conformalize(SITES).predict_interval(NEW).tolist() == first.tolist()
        with pytest.raises(sv.BadInput, match="maximum"):
            fitted(conformity_score=score, **settings).conformalize(SITES)


def test_neither_scores_nor_calibration_data_are_kept() -> None:
    model = fitted(estimator=Ridge()).conformalize(SITES)
    scores = np.concatenate(list(model.score_sites(SITES).values()))
    assert set(vars(model)) - set(model.get_params(deep=False)) == {"estimator_", "n_features_in_", "threshold_"}
    sent = pickle.dumps(model)
    for order in ("<f8", ">f8"):
        values = (*scores, *X[100:300].ravel(), *Y[100:300])
        kept = {value for value in values if np.array(value, dtype=order).tobytes() in sent}
        assert kept <= {model.threshold_.value}
    assert repr(model) == "FederatedConformalRegressor(estimator=Ridge())"
    np.testing.assert_array_equal(pickle.loads(sent).predict_interval(NEW), model.predict_interval(NEW))


def test_a_new_fit_forgets_the_threshold_and_a_clone_has_none() -> None:
    model = fitted().conformalize(SITES)
    for other in (clone(model).fit(X, Y), model.fit(X, Y)):
        with pytest.raises(NotFittedError, match=r"not conformalized yet: call conformalize\(sites\) before"):
            other.predict_interval(NEW)
        other.predict(NEW)


def test_a_column_of_responses_is_read_with_a_warning() -> None:
    plain = fitted().conformalize(SITES).threshold_.value
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model = FederatedConformalRegressor().fit(X[:100], Y[:100, None])
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert model.conformalize({name: (x, y[:, None]) for name, (x, y) in SITES.items()}).threshold_.value == plain


def test_fit_parameters_reach_the_model() -> None:
    model = FederatedConformalRegressor().fit(X[:100], Y[:100], sample_weight=np.repeat([1.0, 0.0], 50))
    np.testing.assert_allclose(model.predict(NEW), LinearRegression().fit(X[:50], Y[:50]).predict(NEW))
