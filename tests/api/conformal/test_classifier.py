"""A conformal classifier: what it scores, sends on, predicts, forgets and refuses."""

import importlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import sottovoce as sv
from sottovoce.api.conformal import estimator as conformal_estimator
from sottovoce.api.conformal.classifier import FederatedConformalClassifier

pickle: Any = importlib.import_module("pickle")
threads: Any = importlib.import_module("threadpoolctl")
SCORES = ("lac", "aps-inclusive", "aps")
NAMES = np.array(["flu", "cold", "none"])


def people(n: int = 500, seed: int = 1) -> tuple[Any, Any]:
    """Return covariates and one of three labels, which overlap."""
    source = sv.sim.dice(seed).generator()
    kind = source.integers(0, 3, n)
    return source.normal(size=(n, 2)) + np.array([[0.0, 1.2], [1.5, 0.0], [-1.0, -1.0]])[kind], NAMES[kind]


X, Y = people()
SITES = {"north": (X[100:200], Y[100:200]), "south": (X[200:300], Y[200:300])}
NEW, TRUTH = X[300:], Y[300:]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Keep to one thread: data so small are slower on several."""
    with threads.threadpool_limits(1):
        yield


def fitted(**settings: Any) -> FederatedConformalClassifier:
    return FederatedConformalClassifier(**settings).fit(X[:100], Y[:100])


class Fixed(BaseEstimator):  # type: ignore[misc]
    """A model that gives every row the same probabilities."""

    def __init__(self, row: Any = (0.5, 0.3, 0.2), classes: Any = ("cold", "flu", "none")) -> None:
        self.row = row
        self.classes_ = classes

    def predict_proba(self, x: Any) -> Any:
        return np.tile(np.array(self.row, dtype=np.float64), (len(x), 1))


def test_labels_and_probabilities_are_those_of_the_model() -> None:
    plain = LogisticRegression().fit(X[:100], Y[:100])
    model = fitted()
    assert model.classes_.tolist() == ["cold", "flu", "none"]
    assert model.predict(NEW).tolist() == plain.predict(NEW).tolist()
    np.testing.assert_array_equal(model.predict_proba(NEW), plain.predict_proba(NEW))
    assert model.score(NEW, TRUTH) == plain.score(NEW, TRUTH) > 0.6


@pytest.mark.parametrize("score", SCORES)
def test_a_set_holds_the_labels_that_score_at_most_the_threshold(score: str) -> None:
    model = fitted(alpha=0.1, conformity_score=score).conformalize(SITES)
    sets = model.predict_set(NEW)
    assert sets.dtype == np.bool_
    assert sets.shape == (200, 3)
    for place, label in enumerate(model.classes_):
        scored = model.score_sites({"new": (NEW, np.full(200, label))})["new"] <= model.threshold_.value
        added = sets[:, place] & ~scored
        assert not (scored & ~sets[:, place]).any()
        assert (model.predict(NEW)[added] == label).all() if score == "aps-inclusive" else not added.any()
    covered = sets[np.arange(200), np.searchsorted(model.classes_, TRUTH)].mean()
    assert 0.8 < covered < (1.0 if score != "aps-inclusive" else 1.01)
    assert 1.0 < sets.sum(axis=1).mean() < 2.0


def test_scores_are_their_definitions() -> None:
    told = LogisticRegression().fit(X[:100], Y[:100]).predict_proba(X[100:200])
    own = told[np.arange(100), np.searchsorted(np.sort(NAMES), Y[100:200])][:, None]
    for score, wanted in (
        ("lac", 1 - own[:, 0]),
        ("aps-inclusive", np.where(told >= own, told, 0).sum(axis=1)),
        ("aps", np.where(told > own, told, 0).sum(axis=1)),
    ):
        np.testing.assert_allclose(fitted(conformity_score=score).score_sites(SITES)["north"], wanted, atol=1e-15)


def test_least_ambiguous_sets_may_be_empty_and_adaptive_ones_never() -> None:
    empty = {
        score: np.count_nonzero(
            ~fitted(alpha=0.6, conformity_score=score).conformalize(SITES).predict_set(NEW).any(axis=1)
        )
        for score in SCORES
    }
    assert empty["lac"] > 0
    assert empty["aps-inclusive"] == empty["aps"] == 0


@pytest.mark.parametrize("score", SCORES)
def test_a_grid_below_many_scores_gives_all_labels(score: str) -> None:
    settings: dict[str, Any] = {"epsilon": 20.0, "maximum": 1e-9, "randomness": sv.sim.dice(4)}
    model = fitted(conformity_score=score, **settings).conformalize(SITES)
    assert model.threshold_.value == math.inf
    assert model.predict_set(NEW).all()


@pytest.mark.parametrize(
    ("labels", "other"),
    [(np.array([3, 1, 2]), np.array([3.0, 1.0, 2.0])), (np.array([2.0, 0.0, 1.0]), np.array([2, 0, 1], dtype=object))],
)
def test_labels_may_be_of_another_kind_at_a_site(labels: Any, other: Any) -> None:
    kind = np.searchsorted(np.sort(NAMES), Y)
    model = FederatedConformalClassifier().fit(X[:100], labels[kind[:100]])
    one = model.score_sites({"a": (X[100:], labels[kind[100:]])})["a"]
    for y in (other[kind[100:]], other[kind[100:]].tolist(), pd.Series(other[kind[100:]]), other[kind[100:], None]):
        np.testing.assert_array_equal(model.score_sites({"a": (X[100:], y)})["a"], one)


def test_all_forms_of_calibration_data_give_one_threshold() -> None:
    one = pytest.approx(fitted().conformalize(SITES).threshold_.value, rel=1e-12)
    where = np.repeat(["north", "south"], 100)
    assert fitted().conformalize(list(SITES.values())).threshold_.value == one
    assert fitted().conformalize(X[100:300], Y[100:300], site=where).threshold_.value == one
    assert fitted().conformalize(pd.DataFrame(X[100:300]), pd.Series(Y[100:300]), site=where).threshold_.value == one


def test_a_prefit_classifier_is_used_as_it_is() -> None:
    plain = GaussianNB().fit(X[:100], Y[:100])
    prefit = FederatedConformalClassifier(plain, prefit=True).conformalize(SITES)
    assert prefit.estimator_ is plain
    again = fitted(estimator=GaussianNB()).conformalize(SITES)
    np.testing.assert_array_equal(prefit.predict_set(NEW), again.predict_set(NEW))


class Told:
    """Stands for the threshold, and remembers with what it was asked for."""

    value = 0.5

    def __init__(self, scores: Any, alpha: float, **settings: Any) -> None:
        self.settings = {"alpha": alpha, **settings}


def test_every_setting_reaches_the_threshold_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformal_estimator, "plan_threshold", Told)
    monkeypatch.setattr(conformal_estimator, "run_threshold", lambda planned: planned)
    monkeypatch.setattr(Told, "warnings", (), raising=False)
    for check in ("check_settings", "check_edges"):  # settings that no study could have together
        monkeypatch.setattr(conformal_estimator, check, lambda *_: None)
    given: dict[str, Any] = {
        "alpha": 0.3,
        "epsilon": 2.0,
        "maximum": 0.75,
        "minimum": 0.25,
        "bins": 40,
        "grid": [0.5, 1.0],
        "mechanism": "exponential",
        "guarantee": "training-conditional",
        "delta": 0.2,
        "rule": "paper",
        "statistics": 3,
        "exact": True,
    }
    told: Any = fitted(**given).conformalize(SITES).threshold_
    assert told.settings == {**given, "randomness": None}
    for settings, maximum in (({"epsilon": 2.0}, 1.0), ({"epsilon": 2.0, "grid": [0.5, 1.0]}, None), ({}, None)):
        told = fitted(**settings).conformalize(SITES).threshold_
        assert (told.settings["minimum"], told.settings["maximum"]) == (None, maximum)


@pytest.mark.parametrize("score", SCORES)
def test_private_sets_need_no_public_ends(score: str) -> None:
    model = fitted(conformity_score=score, epsilon=3.0, randomness=sv.sim.dice(4))
    first = model.conformalize(SITES).predict_set(NEW)
    assert 0 < model.threshold_.value <= 1
    assert model.conformalize(SITES).predict_set(NEW).tolist() == first.tolist()


def test_neither_scores_nor_calibration_data_are_kept() -> None:
    model = fitted(estimator=GaussianNB()).conformalize(SITES)
    scores = np.concatenate(list(model.score_sites(SITES).values()))
    assert set(vars(model)) - set(model.get_params(deep=False)) == {
        "classes_",
        "estimator_",
        "n_features_in_",
        "threshold_",
    }
    sent = pickle.dumps(model)
    for order in ("<f8", ">f8"):
        kept = {value for value in (*scores, *X[100:300].ravel()) if np.array(value, dtype=order).tobytes() in sent}
        assert kept <= {model.threshold_.value}
    assert repr(model) == "FederatedConformalClassifier(estimator=GaussianNB())"
    np.testing.assert_array_equal(pickle.loads(sent).predict_set(NEW), model.predict_set(NEW))


def test_what_was_not_called_is_asked_for() -> None:
    model = FederatedConformalClassifier()
    for ask in (model.predict, model.predict_proba, model.predict_set):
        with pytest.raises(NotFittedError, match=r"not fitted yet: call fit\(X, y\) before predict"):
            ask(NEW)
    for other in (fitted(), clone(fitted().conformalize(SITES)).fit(X, Y), fitted().conformalize(SITES).fit(X, Y)):
        with pytest.raises(NotFittedError, match=r"yet: call conformalize\(sites\) before predict_set"):
            other.predict_set(NEW)


def test_probabilities_in_single_precision_are_taken() -> None:
    model = FederatedConformalClassifier(Fixed((0.5, 0.3, 0.2 + 1e-7)), prefit=True, conformity_score="aps-inclusive")
    assert model.score_sites(SITES)["north"].max() == 1.0
