"""`sv.explain`: a plan of every question, from public numbers alone, and widths that come true."""

import json
import math
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.random_source import SystemEntropy
from sottovoce.server.explanation import Explanation, in_future, reaching
from sottovoce.sim.randomness import dice

SOURCE = dice(5).generator()
SITES = {"north": SOURCE.normal(50.0, 10.0, 20_000), "south": SOURCE.normal(50.0, 10.0, 20_000)}
ROWS = {"miles": SOURCE.uniform(0, 10, 4_000), "late": SOURCE.choice(["no", "yes"], 4_000)}
RESPONSE = 20 + 3 * ROWS["miles"] + SOURCE.logistic(0.0, 2.0, 4_000)
SCORES = {f"site {i}": abs(SOURCE.normal(size=100)) for i in range(10)}
MODEL = sv.PrivateQuantileRegressor(
    0.5, 4.0, bounds={"miles": (0, 10)}, levels={"late": ["no", "yes"]}, density=0.12, size=15, start=35
)
CALLS: dict[str, tuple[Any, ...]] = {
    "one": (sv.federated_quantile, SITES, 0.5, 2.0),
    "several": (sv.federated_quantiles, SITES, [0.25, 0.75], 2.0),
    "difference": (sv.quantile_difference, {"north": SITES["north"]}, {"south": SITES["south"]}, 0.5, 2.0),
    "shortfall": (sv.expected_shortfall, SITES, 0.9, 2.0),
    "integration": (sv.integrated_quantile, "north", SITES, 0.5, 2.0),
    "threshold": (sv.conformal_threshold, SCORES),
    "thresholds": (sv.conformal_thresholds, SCORES),
    "report": (sv.coverage_report, 1.6, SCORES),
    "regression": (MODEL, ROWS, RESPONSE),
    "fit": (MODEL.fit, ROWS, RESPONSE),
}


MORE: dict[str, dict[str, Any]] = {"report": {"alpha": 0.1}, "shortfall": {"bounds": (0, 150)}}


@pytest.mark.parametrize("name", CALLS)
def test_every_question_is_explained_without_asking(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def throw(*_: object) -> None:
        raise AssertionError("a die was thrown")

    monkeypatch.setattr(SystemEntropy, "words", throw)
    question, *args = CALLS[name]
    told = sv.explain(question, *args, **MORE.get(name, {}))
    assert isinstance(told, Explanation)
    assert str(told) == repr(told)
    assert "nobody so far" in str(told)
    assert told._repr_html_().startswith("<pre>===")
    assert json.loads(json.dumps(told.to_dict(), allow_nan=False))["privacy"] == in_future(told.privacy)
    widths = told.width if isinstance(told.width, dict) else {"": told.width}
    assert all(0 < width < math.inf for width in widths.values())
    assert "answered" not in str(told)
    assert "sent " not in told.to_dict()["privacy"]


def test_a_wrong_call_is_refused_as_the_call_itself_would_be() -> None:
    with pytest.raises(sv.BadInput, match="epsilon"):
        sv.explain(sv.federated_quantile, SITES, 0.5, -1.0)
    with pytest.raises(sv.BadInput, match="explain knows no plan of 'compare'; give one of federated_quantile"):
        sv.explain(sv.compare, 1, 2)
    with pytest.raises(sv.BadInput, match="call federated_quantiles for several"):
        sv.explain(sv.federated_quantile, SITES, [0.5, 0.9], 1.0)


def test_with_a_scale_the_width_is_told_in_values() -> None:
    levels = sv.explain(sv.federated_quantile, SITES, 0.5, 2.0)
    values = sv.explain(sv.federated_quantile, SITES, 0.5, 2.0, scale=10.0)
    low, high = levels.widths[0].low, levels.widths[0].high
    assert low is not None
    assert high is not None
    assert levels.width == pytest.approx(high - low)
    assert values.width == reaching("", low, high, 10.0).value
    both = sv.explain(sv.quantile_difference, {"a": SITES["north"]}, {"b": SITES["south"]}, 0.5, 2.0, scale=10.0)
    assert both.width["difference"] == pytest.approx(math.hypot(both.width["first"], both.width["second"]))


@pytest.mark.parametrize(
    ("method", "tau"),
    [("staged", 0.5), ("staged", 0.9), ("certified", 0.5), ("certified", 0.9), ("sequence", 0.5), ("regression", 0.5)],
)
@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
def test_expected_widths_come_true(method: str, tau: float) -> None:
    expected = sv.explain(sv.federated_quantile, SITES, tau, 2.0, method=method, scale=10.0).width
    found = [sv.federated_quantile(SITES, tau, 2.0, method=method, randomness=dice(seed)).interval for seed in range(5)]
    obtained = float(np.median([high - low for low, high in found]))
    assert 0.75 < expected / obtained < 1.33  # measured: 0.87 to 1.2 (docs/decisions/0055)


def test_the_threshold_lies_where_it_was_said() -> None:
    told = sv.explain(sv.conformal_threshold, SCORES)
    low, high = told.widths[0].low, told.widths[0].high
    assert low is not None
    assert high is not None
    inside = 0
    for seed in range(60):
        source = dice(seed).generator()
        value = sv.conformal_threshold({name: abs(source.normal(size=100)) for name in SCORES}).value
        inside += low < math.erf(value / math.sqrt(2)) < high
    assert inside >= 50  # 57 are expected; fewer than 50 happen once in two thousand times


def test_hints_stay_with_whoever_holds_the_records() -> None:
    told = sv.explain(sv.federated_quantile, {"north": np.round(SITES["north"])}, 0.5, 2.0)
    assert "many records are tied" in str(told)
    assert "tied" not in json.dumps(told.to_dict())


def test_a_site_that_is_left_out_is_named() -> None:
    sites = {**SITES, "tiny": SITES["north"][:15] + 0.5}
    told = sv.explain(sv.federated_quantiles, sites, [0.25, 0.75], 2.0)
    assert told.to_dict()["sites_left_out"] == ["tiny"]
    assert "site 'tiny' has too few records" in told.warnings[0]
    told = sv.explain(sv.federated_quantile, sites, 0.5, 0.5, shares="equal")
    assert told.to_dict()["sites_left_out"] == ["tiny"]
    assert [site["share"] for site in told.to_dict()["sites"]] == [0.5, 0.5]


def test_categories_reach_the_fit_and_the_prediction() -> None:
    fitted = MODEL.set_params(randomness=dice(1)).fit(ROWS, RESPONSE)
    assert fitted.feature_names_in_.tolist() == ["miles", "late"]
    assert fitted.n_features_in_ == 2
    assert fitted.coef_.shape == (2,)
    two = fitted.predict({"miles": [5.0, 5.0], "late": ["no", "yes"]})
    assert two[1] - two[0] == pytest.approx(fitted.coef_[1])
    with pytest.raises(sv.BadInput, match="holds a level that is not declared in row 1") as refusal:
        fitted.predict({"miles": [5.0], "late": ["perhaps"]})
    assert "perhaps" not in str(refusal.value)
    plain = sv.PrivateQuantileRegressor(0.5, 4.0, bounds=(0, 10))
    twice = {**ROWS, "more": ROWS["late"]}
    with pytest.raises(sv.BadInput, match=r"'late' of X holds text .*and so do 'more'.*with levels="):
        plain.fit(twice, RESPONSE)
