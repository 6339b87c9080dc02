"""On one site and without privacy the intervals and sets are those of MAPIE, to the last label and to 1e-12.

Comparable are: absolute residuals; conformalized quantile regression with MAPIE's symmetric correction (its default
corrects the two ends apart, which is another method); least ambiguous sets, but for labels that exceed the threshold by
less than MAPIE's tolerance of 1e-8; and adaptive sets once the random numbers u of MAPIE's scores are all equal. With
u = 0 they are our "aps-inclusive", and ``include_last_label=False`` gives our sets ("randomized" those without the most
probable label where it scores too much); with u = 1 they are our "aps", and MAPIE's default gives our sets. This does
not hold for labels of equal probability, whose order matters to MAPIE, or below 1e-8, which its adaptive sets leave
out.
"""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

import sottovoce as sv
from sottovoce.api.conformal.classifier import FederatedConformalClassifier
from sottovoce.api.conformal.regressor import FederatedConformalRegressor
from sottovoce.server.conformal.scores import aps_scores

regression = pytest.importorskip("mapie.regression", reason="MAPIE is not installed")
classification = pytest.importorskip("mapie.classification")

threads: Any = importlib.import_module("threadpoolctl")

ALPHAS = (0.02, 0.1, 0.2, 0.5)
SIZES = (50, 99, 100, 160)
SMALL = 200  # a data set of fewer records, which leaves fewer to calibrate with

Parts = tuple[tuple[Any, Any], tuple[Any, Any], Any]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Keep to one thread: data so small are slower on several."""
    with threads.threadpool_limits(1):
        yield


def parts(data: Any, n: int) -> Parts:
    """Part a data set into records to fit to, n to calibrate with, and rows to predict for."""
    order = sv.sim.dice(7).generator().permutation(len(data.target))
    x, y = data.data[order], data.target[order]
    third = (len(y) - n) // 2
    return (x[:third], y[:third]), (x[third : third + n], y[third : third + n]), x[third + n :]


def all_equal(value: float) -> Any:
    """Return a generator for MAPIE whose uniform numbers all have one value."""
    kind = type(check_random_state(0))
    return type("AllEqual", (kind,), {"uniform": lambda self, size: np.full(size, value)})()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("model", [LinearRegression(), KNeighborsRegressor()])
def test_absolute_residuals(model: Any, n: int) -> None:
    fitting, calibration, new = parts(load_diabetes(), n)
    for alpha in ALPHAS:
        theirs = regression.SplitConformalRegressor(model, 1 - alpha, prefit=False).fit(*fitting)
        points, ends = theirs.conformalize(*calibration).predict_interval(new)
        ours = FederatedConformalRegressor(model, alpha).fit(*fitting).conformalize({"one": calibration})
        np.testing.assert_allclose(ours.predict_interval(new), ends[:, :, 0], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(ours.predict(new), points)
        np.testing.assert_array_equal(ours.score_sites([calibration])["site 1"], theirs.conformity_scores)


@pytest.mark.parametrize(
    "model",
    [
        QuantileRegressor(alpha=0.0),
        make_pipeline(StandardScaler(), QuantileRegressor(alpha=0.01)),
        GradientBoostingRegressor(loss="quantile", n_estimators=8, random_state=0),
        HistGradientBoostingRegressor(loss="quantile", max_iter=2, early_stopping=False),
    ],
    ids=["linear", "pipeline", "boosted", "histograms"],
)
def test_conformalized_quantile_regression(model: Any) -> None:
    for n, alpha in ((99, 0.1), (100, 0.2), (160, 0.5)):
        fitting, calibration, new = parts(load_diabetes(), n)
        theirs = regression.ConformalizedQuantileRegressor(model, 1 - alpha)
        ours = FederatedConformalRegressor(model, alpha, conformity_score="quantiles")
        theirs.fit(*fitting).conformalize(*calibration)
        ours.fit(*fitting).conformalize([calibration])
        _, ends = theirs.predict_interval(new, symmetric_correction=True)
        found = ours.predict_interval(new)
        assert (ends[:, 0] <= ends[:, 1]).all()
        np.testing.assert_allclose(found, ends[:, :, 0], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(ours.score_sites([calibration])["site 1"], theirs.conformity_scores[2])


def test_where_the_ends_of_mapie_cross_ours_meet_in_their_middle() -> None:
    fitting, calibration, new = parts(load_diabetes(), 100)
    spread = [QuantileRegressor(quantile=level, alpha=0.0).fit(*fitting) for level in (0.05, 0.95, 0.5)]
    theirs = regression.ConformalizedQuantileRegressor(spread, 0.05, prefit=True).conformalize(*calibration)
    _, ends = theirs.predict_interval(new, symmetric_correction=True)
    narrow = FederatedConformalRegressor(spread[:2], 0.95, conformity_score="quantiles", prefit=True)
    found = narrow.conformalize([calibration]).predict_interval(new)
    crossed = ends[:, 0, 0] > ends[:, 1, 0]
    np.testing.assert_allclose(found[~crossed], ends[~crossed, :, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[crossed], ends[crossed, :, 0].mean(axis=1)[:, None].repeat(2, axis=1), atol=1e-9)
    assert crossed.any()


def logistic(strength: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=strength))


def cases(model: Any, data: Any) -> Iterator[tuple[Any, Any, Any, float]]:
    """Fit a model to a part of the data; yield it with calibration data, new rows and alpha."""
    for n in (50, 99) if len(data.target) < SMALL else (99, 1000):
        fitting, calibration, new = parts(data, n)
        fitted = clone(model).fit(*fitting)
        for alpha in ALPHAS:
            yield fitted, calibration, new, alpha


@pytest.mark.parametrize("data", [load_digits(), load_wine()], ids=["digits", "wine"])
@pytest.mark.parametrize(
    "model", [logistic(0.01), GaussianNB(), DecisionTreeClassifier(max_depth=4)], ids=["logistic", "bayes", "tree"]
)
def test_least_ambiguous_sets(model: Any, data: Any) -> None:
    several = 0
    for fitted, calibration, new, alpha in cases(model, data):
        theirs = classification.SplitConformalClassifier(fitted, 1 - alpha).conformalize(*calibration)
        labels, sets = theirs.predict_set(new)
        ours = FederatedConformalClassifier(fitted, alpha, prefit=True).conformalize([calibration])
        found, scores = ours.predict_set(new), 1 - ours.predict_proba(new)
        near = np.abs(scores - ours.threshold_.value) <= 1e-8  # MAPIE keeps these, we only up to 1e-12
        np.testing.assert_array_equal(found[~near], sets[~near, 0])
        assert isinstance(model, GaussianNB) or not (near & ~found).any()
        np.testing.assert_array_equal(ours.predict(new), labels)
        np.testing.assert_array_equal(ours.score_sites([calibration])["site 1"], theirs.conformity_scores[:, 0])
        several += int(np.count_nonzero(found.sum(axis=1) != 1))
    assert several > 0


@pytest.mark.parametrize(
    ("score", "draws", "how"),
    [("aps-inclusive", 0.0, False), ("aps-inclusive", 0.0, "randomized"), ("aps", 1.0, True)],
    ids=["with the label", "with the label and empty sets", "before the label"],
)
@pytest.mark.parametrize("data", [load_digits(), load_wine()], ids=["digits", "wine"])
@pytest.mark.parametrize("strength", [0.002, 0.1])
def test_adaptive_sets(strength: float, data: Any, score: str, draws: float, how: Any) -> None:
    several = 0
    for fitted, calibration, new, alpha in cases(logistic(strength), data):
        theirs = classification.SplitConformalClassifier(
            fitted, 1 - alpha, conformity_score="aps", random_state=all_equal(draws)
        ).conformalize(*calibration)
        _, sets = theirs.predict_set(new, {"include_last_label": how})
        ours = FederatedConformalClassifier(fitted, alpha, conformity_score=score, prefit=True)
        found = ours.conformalize([calibration]).predict_set(new)
        if how == "randomized":
            found &= aps_scores(ours.predict_proba(new)) <= ours.threshold_.value + 1e-12
        np.testing.assert_array_equal(found, sets[:, :, 0])
        several += int(np.count_nonzero(found.sum(axis=1) != 1))
    assert several > 0 or strength > 0.01


@pytest.mark.parametrize(("score", "draws"), [("aps-inclusive", 0.0), ("aps", 1.0)])
def test_adaptive_scores(score: str, draws: float) -> None:
    for fitted, calibration, _, alpha in cases(logistic(0.1), load_digits()):
        theirs = classification.SplitConformalClassifier(
            fitted, 1 - alpha, conformity_score="aps", random_state=all_equal(draws)
        ).conformalize(*calibration)
        ours = FederatedConformalClassifier(fitted, alpha, conformity_score=score, prefit=True)
        found = ours.score_sites([calibration])["site 1"]
        np.testing.assert_allclose(found, theirs.conformity_scores[:, 0], rtol=0, atol=1e-12)
