"""Every public way to ask the same records again is counted, warned of, and stopped at the limit."""

import copy
import importlib
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sottovoce as sv
from sottovoce.sim import dice

pickle: Any = importlib.import_module("pickle")
G = dice(11).generator()
WAITS = {"north": G.gamma(2, 10, 6_000), "south": G.gamma(2, 12, 5_000)}
TRIPS = G.uniform(-1, 1, (4_000, 2))
FARES = np.round(TRIPS @ [1.0, 2.0] + G.normal(size=4_000), 1)
GUESSES: dict[str, Any] = {"density": 0.3, "size": 3.0}

pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
ANSWERED = "these records have answered before in this process"


def regression(epsilon: float) -> Any:
    return sv.PrivateQuantileRegressor(0.5, epsilon, **GUESSES).fit(TRIPS, FARES).result_


ASKED: dict[str, Callable[[float], Any]] = {
    "quantile": lambda epsilon: sv.federated_quantile(WAITS, 0.5, epsilon),
    "certified": lambda epsilon: sv.federated_quantile(WAITS, 0.5, epsilon, method="certified"),
    "recursion": lambda epsilon: sv.federated_quantile(WAITS, 0.5, epsilon, method="regression"),
    "levels": lambda epsilon: sv.federated_quantiles(WAITS, [0.4, 0.6], epsilon),
    "difference": lambda epsilon: sv.quantile_difference(
        {"north": WAITS["north"]}, {"south": WAITS["south"]}, 0.5, epsilon
    ),
    "shortfall": lambda epsilon: sv.expected_shortfall(WAITS, 0.7, epsilon, bounds=(0, 200)),
    "integration": lambda epsilon: sv.integrated_quantile("north", WAITS, 0.5, epsilon),
    "threshold": lambda epsilon: sv.conformal_threshold(WAITS, 0.1, epsilon=epsilon, maximum=200.0),
    "local threshold": lambda epsilon: sv.conformal_threshold(
        WAITS, 0.1, epsilon=epsilon, maximum=200.0, mechanism="local"
    ),
    "report": lambda epsilon: sv.coverage_report(40.0, WAITS, alpha=0.1, epsilon=epsilon),
    "regression": regression,
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_a_second_study_of_the_same_records_is_added_up_and_said(ask: Callable[[float], Any], tmp_path: Path) -> None:
    first = ask(2.0)
    assert max(first.epsilon_in_all.values()) == pytest.approx(2.0, rel=1e-6)
    with pytest.warns(UserWarning, match=ANSWERED) as said:
        second = ask(3.0)
    assert said[-1].filename == __file__
    assert max(second.epsilon_in_all.values()) == pytest.approx(5.0, rel=1e-6)
    assert "epsilon 5 a record" in second.summary()
    assert sv.load(second.save(tmp_path / "r.json")).epsilon_in_all == second.epsilon_in_all
    assert second.to_dict()["epsilon_in_all"] == second.epsilon_in_all


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_the_limit_stops_every_way_to_ask(ask: Callable[[float], Any]) -> None:
    with sv.limit(epsilon=4.0):
        ask(2.0)
        with pytest.raises(sv.BadInput, match="of which 2 is spent already, and the limit is 4"):
            ask(3.0)
    with pytest.warns(UserWarning, match=f"{ANSWERED}.* epsilon 5 in all"):
        ask(3.0)  # what was refused has cost nothing


def test_other_methods_of_the_same_records_add_up() -> None:
    ASKED["quantile"](1.0)
    with pytest.warns(UserWarning, match=ANSWERED):
        assert ASKED["threshold"](1.0).epsilon_in_all == {"north": 2.0, "south": 2.0}
    sv.federated_quantile([FARES + G.normal(size=FARES.size)], 0.5, 1.0)  # other records


def test_responses_of_a_regression_are_the_records_of_a_quantile() -> None:
    response = G.normal(size=4_000)
    sv.federated_quantile([response], 0.5, 1.0)
    with pytest.warns(UserWarning, match=ANSWERED):
        fitted = sv.PrivateQuantileRegressor(0.5, 2.0, **GUESSES).fit(TRIPS, response)
    assert fitted.epsilon_in_all_ == pytest.approx(3.0)


def test_cross_validation_is_added_up_row_by_row() -> None:
    search = GridSearchCV(sv.PrivateQuantileRegressor(0.5, 2.0, **GUESSES), {"size": [2.0, 3.0, 4.0]}, cv=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(TRIPS, FARES)
    # 3 settings, 4 of 5 folds each, and the last fit to all
    assert search.best_estimator_.result_.epsilon_in_all["rows"] == pytest.approx(2.0 * 13, rel=1e-6)
    assert search.best_estimator_.epsilon_in_all_ == pytest.approx(26.0, rel=1e-6)


def test_the_same_batch_twice_in_a_stream_is_refused() -> None:
    model = sv.PrivateQuantileRegressor(0.5, 2.0, **GUESSES, randomness=sv.sim.dice(3))
    model.partial_fit(TRIPS[:2_000], FARES[:2_000])
    for rows in (slice(0, 2_000), slice(500, 900)):
        with pytest.raises(sv.BadInput, match="have answered in an earlier batch"):
            model.partial_fit(TRIPS[rows].copy(), FARES[rows].copy())
    model.partial_fit(TRIPS[2_000:], FARES[2_000:])
    assert model.n_reports_ == 4_000


@pytest.mark.parametrize(
    "twice",
    [
        lambda x: [x, x],
        lambda x: [x, x[::-1]],
        lambda x: [x.tolist(), x.tolist()],
        lambda x: [x.astype(np.float32)] * 2,
        lambda x: {"a": x, "b": G.permutation(x)},
        lambda x: {"a": x, "b": np.concatenate([x[:900], G.gamma(2, 10, 4_000)])},
    ],
)
def test_the_same_records_at_two_sites_of_a_study_are_refused(twice: Callable[[Any], Any]) -> None:
    sites = twice(WAITS["north"])
    for ask in (
        lambda: sv.federated_quantile(sites, 0.5, 1.0, randomness=sv.sim.dice(1)),
        lambda: sv.federated_quantiles(sites, [0.4, 0.6], 1.0),
        lambda: sv.conformal_threshold(sites, 0.1, epsilon=1.0, maximum=200.0),
        lambda: sv.conformal_threshold(sites, 0.1),
    ):
        with pytest.raises(sv.BadInput, match="share records"):
            ask()
    one, two = sites.values() if isinstance(sites, dict) else sites
    with pytest.raises(sv.BadInput, match="share records"):
        sv.quantile_difference([one], [two], 0.5, 1.0)
    with pytest.raises(sv.BadInput, match="records are among the sources"):
        sv.integrated_quantile(one, {"other": two}, 0.5, 1.0)


def test_two_files_of_equal_content_are_refused(tmp_path: Path) -> None:
    text = "wait\n" + "\n".join(map(str, WAITS["north"].tolist()))
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(text)
    with pytest.raises(sv.BadInput, match="share records"):
        sv.federated_quantile(sv.read_files(str(tmp_path / "*.csv"), value="wait"), 0.5, 1.0)


def test_a_study_without_a_budget_leaves_no_bound() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sv.conformal_threshold(WAITS, 0.1)
        sv.coverage_report(40.0, WAITS, alpha=0.1)  # neither promises anything
    with pytest.warns(UserWarning, match="more than any epsilon"):
        found = ASKED["quantile"](1.0)
    assert math.isinf(found.epsilon_in_all["north"])
    assert found.to_dict()["epsilon_in_all"] == {"north": None, "south": None}
    assert "no bound" in found.summary()
    with sv.limit(epsilon=100.0), pytest.raises(sv.BadInput, match="the limit is 100"):
        sv.conformal_threshold([G.normal(size=900)], 0.1)


def test_simulations_are_not_counted() -> None:
    for seed in (1, 2):
        found = sv.federated_quantile(WAITS, 0.5, 1.0, randomness=sv.sim.dice(seed))
    assert found.epsilon_in_all is None
    assert found.to_dict()["epsilon_in_all"] is None
    assert ASKED["quantile"](1.0).epsilon_in_all == {"north": 1.0, "south": 1.0}


def test_a_conformal_model_is_counted_by_its_responses() -> None:
    model = sv.FederatedConformalRegressor(LinearRegression(), epsilon=1.0, maximum=20.0).fit(TRIPS[:900], FARES[:900])
    calibration = {"north": (TRIPS[1_000:], G.normal(size=3_000))}
    assert model.conformalize(calibration).threshold_.epsilon_in_all == {"north": 1.0}
    other = sv.FederatedConformalRegressor(LinearRegression(), epsilon=1.0, maximum=20.0).fit(TRIPS[:500], FARES[:500])
    with pytest.warns(UserWarning, match=ANSWERED):
        other.conformalize(calibration)
    assert other.threshold_.epsilon_in_all == {"north": 2.0}


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, None, "1", True])
def test_a_limit_is_a_positive_number(epsilon: Any) -> None:
    with pytest.raises(sv.BadInput, match="epsilon"):
        sv.limit(epsilon=epsilon)


def test_a_limit_can_be_set_for_a_while() -> None:
    with sv.limit(epsilon=1.0) as cap:
        assert repr(cap) == "limit(epsilon=1)"
        with pytest.raises(sv.BadInput, match="the limit is 1"):
            ASKED["quantile"](2.0)
    ASKED["quantile"](2.0)


def test_a_score_says_that_it_is_not_private() -> None:
    model = sv.PrivateQuantileRegressor(0.5, 2.0, **GUESSES).fit(TRIPS, FARES)
    with pytest.warns(UserWarning, match="score compares with the responses themselves"):
        model.score(TRIPS, FARES)


def test_covariates_scaled_by_themselves_are_noticed() -> None:
    model = make_pipeline(StandardScaler(), sv.PrivateQuantileRegressor(0.5, 2.0, bounds=(-4, 4), **GUESSES))
    with pytest.warns(UserWarning, match="as if scaled by the data themselves"):
        model.fit(TRIPS, FARES)


def test_what_is_refused_has_cost_nothing_and_forgets_nothing() -> None:
    model = sv.PrivateQuantileRegressor(0.5, 2.0, **GUESSES)
    with sv.limit(epsilon=1.0), pytest.raises(sv.BadInput, match="the limit is 1"):
        model.partial_fit(TRIPS[:2_000], FARES[:2_000])
    fitted = model.partial_fit(TRIPS[:2_000], FARES[:2_000]).coef_  # the refused batch has not answered
    with sv.limit(epsilon=3.0), pytest.raises(sv.BadInput, match="the limit is 3"):
        model.fit(TRIPS, FARES)
    assert (model.coef_ == fitted).all()
    assert model.n_reports_ == 2_000


def test_a_warning_that_is_an_error_counts_nothing() -> None:
    ASKED["quantile"](1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=ANSWERED):
            ASKED["quantile"](1.0)
    with pytest.warns(UserWarning, match=ANSWERED):
        assert ASKED["quantile"](1.0).epsilon_in_all == {"north": 2.0, "south": 2.0}


def test_the_names_of_sites_are_told() -> None:
    model = sv.FederatedConformalRegressor(LinearRegression()).fit(TRIPS[:900], FARES[:900])
    labels = ["northern", "southern"] * 1_000
    same = np.repeat(TRIPS[:1_000], 2, axis=0), np.repeat(G.normal(size=1_000), 2)
    with pytest.raises(sv.BadInput, match="sites 'northern' and 'southern' share records"):
        model.conformalize(*same, site=labels)


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_rows_that_have_answered_are_no_further_batch(first: str) -> None:
    model = getattr(sv.PrivateQuantileRegressor(0.5, 2.0, **GUESSES), first)(TRIPS[:2_000], FARES[:2_000])
    with pytest.raises(sv.BadInput, match="some of these rows have answered in an earlier batch"):
        model.partial_fit(TRIPS[:2_000], FARES[:2_000])
    copied = copy.deepcopy(model).partial_fit(TRIPS[2_000:], FARES[2_000:])
    assert (copied.n_reports_, model.n_reports_) == (4_000, 2_000)
    with pytest.raises(sv.BadInput, match="some of these rows have answered"):
        model.partial_fit(TRIPS[2_000:], FARES[2_000:])  # the copy asked them


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_an_estimator_from_another_process_asks_nobody_more(first: str) -> None:
    model = getattr(sv.PrivateQuantileRegressor(0.5, 2.0, **GUESSES), first)(TRIPS[:2_000], FARES[:2_000])
    back = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model))))
    for rows in (slice(0, 2_000), slice(2_000, 4_000)):
        with pytest.raises(sv.BadInput, match=r"was unpickled, and whose rows .* save its result and fit a new"):
            back.partial_fit(TRIPS[rows], FARES[rows])
    assert back.n_reports_ == 2_000
    assert (back.predict(TRIPS) == model.predict(TRIPS)).all()
    assert pickle.loads(pickle.dumps(clone(back))).partial_fit(TRIPS[2_000:], FARES[2_000:]).n_reports_ == 2_000
