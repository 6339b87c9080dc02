"""The table, the plain values and the promise of a regression."""

import json
import math
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.server.description import WIDTH


def fitted(n: int = 24_000, **options: Any) -> PrivateQuantileRegressor:
    source = sv.sim.dice(1).generator()
    trips = {"distance in kilometres, as it was driven": source.uniform(0, 10, n), "night": source.uniform(0, 1, n)}
    response = 5.0 + 2.0 * trips["night"] + source.logistic(0.0, 2.0, n)
    guesses = {"bounds": [(0, 10), (0, 1)], "start": 6.0, "density": 0.12, "size": 3.0, "randomness": sv.sim.dice(2)}
    return PrivateQuantileRegressor(**{**guesses, "epsilon": 8.0, **options}).fit(trips, response)


@pytest.fixture(scope="module")
def model() -> PrivateQuantileRegressor:
    return fitted()


def test_the_table(model: PrivateQuantileRegressor) -> None:
    text = model.summary()
    assert max(map(len, text.splitlines())) <= WIDTH
    for said in ("tau = 0.5", "24,000, one report", "Epsilon:       8", "dithered", "[0.025", "0.975]", "a factor"):
        assert said in text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith(("intercept", "night"))}
    low, high = model.confidence_interval()[2]
    places = 1 - math.floor(math.log10(high - low))  # two digits of the interval's width
    assert rows["night"][0] == f"{model.coef_[1]:.{places}f}"
    assert rows["night"][2:] == [f"{low:.{places}f}", f"{high:.{places}f}"]
    # half of the interval of one standard error to each side; the widening for the unknown slope differs by level
    assert float(rows["night"][1]) == pytest.approx((high - low) / 2 / 1.96, rel=0.15)
    assert "distance in kilometres, a…" in text
    assert "[0.05" in model.summary(0.9)
    assert "Clipped" not in text


def test_seeded_dice_and_no_budget_are_said_aloud(model: PrivateQuantileRegressor) -> None:
    assert "protects nobody" in model.summary().replace("\n" + " " * 15, " ")
    assert "protects nobody" not in fitted(300, randomness=None).summary().replace("\n" + " " * 15, " ")
    open_one = fitted(300, epsilon=math.inf).summary().replace("\n" + " " * 15, " ")
    assert "No privacy: epsilon is infinite" in open_one
    assert "a report is the exact score" in open_one


def test_where_no_interval_can_be_given_the_table_says_how_many_people_it_takes() -> None:
    text = fitted(300, epsilon=1.0).summary().replace("\n" + " " * 15, " ")
    assert "not enough information" in text
    assert "needs about" in text
    assert text.count("not enough information") == 1


def partly(**options: Any) -> PrivateQuantileRegressor:
    """Return a fit that refuses its last slope."""
    model = fitted(**options)
    for fit in model.result_.fits:
        told = fit.interval

        def interval(index: int, contrast: Any, level: float, told: Any = told) -> Any:
            if contrast[0] == 0 and contrast[-1] != 0:
                raise sv.Infeasible("it needs about 9,000 people.")
            return told(index, contrast, level)

        object.__setattr__(fit, "interval", interval)
    return model


def test_a_coefficient_without_an_interval_is_named_with_its_reason() -> None:
    model = partly()
    said = "not enough information for 'night': it needs about 9,000 people."
    assert said in model.summary().replace("\n" + " " * 15, " ")
    with pytest.warns(UserWarning, match="^no interval for 'night': it needs about 9,000 people.$") as caught:
        ends = model.confidence_interval()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isnan(ends).tolist() == [[False] * 2, [False] * 2, [True] * 2]


def test_coefficients_of_several_levels_are_left_out_with_one_warning() -> None:
    model = partly(tau=[0.4, 0.6])
    expected = "^no interval for 'night' at tau 0.4, 'night' at tau 0.6: it needs about 9,000 people.$"
    with pytest.warns(UserWarning, match=expected) as caught:
        assert model.confidence_interval().shape == (2, 3, 2)
    assert len(caught) == 1
    assert "for 'night' at tau 0.4, 'night' at tau 0.6: it" in model.summary().replace("\n" + " " * 15, " ")


def test_of_a_split_design_it_is_said_whom_a_number_counts() -> None:
    model = fitted(500, tau=[0.25, 0.75], channel="cq:2,1", epsilon=1.0)
    part = r"needs about .*; counted are the people of this level, one in 2 of all\.$"
    with pytest.raises(sv.Infeasible, match=part):
        model.ellipsoid(tau=0.25)
    with pytest.warns(UserWarning, match=part):
        assert np.isinf(model.confidence_interval()).all()
    with pytest.warns(UserWarning, match=r"needs about [^;]*; ask more people, or allow a larger epsilon\.$"):
        assert np.isinf(fitted(300, epsilon=1.0).confidence_interval()).all()


def test_an_interval_without_ends_is_shown_as_one_and_marked() -> None:
    model = fitted(300, epsilon=1.0)
    rows = [line.split() for line in model.summary().splitlines() if line.startswith("night")]
    assert rows[0][1] == "?"
    assert rows[0][3:] == ["-", "-inf", "inf"]
    [said] = model.warnings_
    assert said.startswith("the reports do not determine 'intercept', ")
    assert "ask about " in said
    assert "differ by up to a factor 2" in said
    with pytest.warns(UserWarning, match="^no interval for the contrast: 300 people tell nothing of it yet"):
        assert model.confidence_interval(contrast=[0, 1, 1]).tolist() == [-math.inf, math.inf]
    assert model.test([0, 1, 0], 5.0).pvalue == 1.0
    assert "(no interval)" in model.result_.headline


def test_several_levels_have_a_table_each() -> None:
    text = fitted(500, tau=[0.25, 0.75], channel="cq:2,1", clip=True).summary()
    assert "-- tau = 0.25 --" in text
    assert "-- tau = 0.75 --" in text
    assert text.count("\nintercept") == 2
    assert "each person answered for one level" in text


def test_plain_values_are_strict_json(model: PrivateQuantileRegressor) -> None:
    found = json.loads(json.dumps(model.to_dict(0.9), allow_nan=False))
    only = found["levels"][0]
    assert only["tau"] == 0.5
    assert [each["name"] for each in only["coefficients"]][::2] == ["intercept", "night"]
    assert only["coefficients"][2]["estimate"] == model.coef_[1]
    assert np.allclose([only["coefficients"][2][end] for end in ("low", "high")], model.confidence_interval(0.9)[2])
    assert (found["people"], found["private"], found["level"]) == (24_000, False, 0.9)
    silent = fitted(300, epsilon=math.inf, limit=3.0, inference="groups", groups=250)
    assert json.loads(json.dumps(silent.to_dict(), allow_nan=False))["epsilon"] is None
    few = json.loads(json.dumps(fitted(300, epsilon=1.0).to_dict(), allow_nan=False))["levels"][0]["coefficients"][0]
    assert few["low"] is few["high"] is few["error"] is None
    assert "needs about" in few["reason"]


def test_an_estimate_that_is_not_there_yet_is_null() -> None:
    source = sv.sim.dice(1).generator()
    model = PrivateQuantileRegressor(epsilon=2.0, randomness=sv.sim.dice(1))
    model.partial_fit(source.uniform(-1, 1, (50, 1)), source.uniform(0, 1, 50))
    found = json.loads(json.dumps(model.to_dict(), allow_nan=False))
    assert found["levels"][0]["coefficients"][1]["estimate"] is None
