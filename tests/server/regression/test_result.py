"""From scaled to raw units: against a fit whose law is known."""

import copy
import dataclasses
import importlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from tests.server.regression.plans import WAYS, plan_of, rows_of

from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.client.regression.rows import Rows
from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.regression.region import Ellipsoid, normal_ellipsoid
from sottovoce.local.regression.doors import open_doors
from sottovoce.local.runner import run
from sottovoce.server.load import load
from sottovoce.server.regression.dithered.fit import DitheredFit, two_digits
from sottovoce.server.regression.result import SMALLEST, RegressionResult
from sottovoce.server.regression.summary import RegressionFacts
from sottovoce.sim.randomness import dice

pickle: Any = importlib.import_module("pickle")

BOUNDS = read_bounds([(0, 10), (1e8, 1e8 + 4)], ("a", "b"))
POINT = np.array([[3.0, 2.0, -1.0], [4.0, 2.5, -1.0]])
COVARIANCE = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.01]])


@dataclass
class Known:
    """A normal fit; it may refuse one slope, everything, or everything above a level."""

    people: int = 100
    point: Any = None
    warnings: tuple[str, ...] = ("mind the gap",)
    highest: float = 1.0
    silent: bool = False
    without: int | None = None

    def determined(self, index: int, contrast: Any) -> bool:
        return not self.silent

    def interval(self, index: int, contrast: Any, level: float) -> tuple[float, float]:
        left_out = self.without is not None and contrast[self.without] != 0 and contrast[0] == 0
        if self.silent or level > self.highest or left_out:
            raise Infeasible("an interval needs about 9,000 people.")
        middle = float(contrast @ POINT[index])
        half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(contrast @ COVARIANCE @ contrast)
        return middle - half, middle + half

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        return normal_ellipsoid(POINT[index], COVARIANCE, level)


FACTS = RegressionFacts((0.25, 0.75), True, "dithered", 1.0, True, 100, "lp", "given", 38, False)


def answers(**options: Any) -> RegressionResult:
    return RegressionResult(FACTS, BOUNDS, (Known(point=POINT, **options),))  # type: ignore[arg-type]


def test_coefficients_and_intervals_are_carried_over() -> None:
    found, turn = answers(), BOUNDS.to_raw
    assert np.allclose(found.raw, POINT @ turn.T)
    raw = turn @ COVARIANCE @ turn.T
    z = NormalDist().inv_cdf(0.95)
    ends, reasons = found.intervals(1, 0.9)
    assert reasons == {}
    assert np.allclose(ends.mean(axis=1), found.raw[1])
    assert np.allclose(np.ptp(ends, axis=1) / 2, z * np.sqrt(np.diag(raw)))
    region = found.ellipsoid(0.75, 0.9)
    assert np.allclose(region.centre, found.raw[1])
    assert np.allclose(region.shape, raw)


def test_contrasts_in_raw_units_keep_their_digits_far_from_zero() -> None:
    # the fitted value in the middle of the bounds is the scaled intercept, though the raw one is about 5e7
    low, high = answers().interval(0, [1.0, 5.0, 1e8 + 2], 0.9)
    assert (low + high) / 2 == pytest.approx(3.0, abs=1e-6)
    assert answers().predict(np.array([[5.0, 1e8 + 2]])).tolist() == [[3.0, 4.0]]


def test_predictions_never_cross() -> None:
    # at a = -30 the lines cross: 3 - 14 against 4 - 17.5
    fitted = answers().predict(np.array([[-30.0, 1e8 + 2], [5.0, 1e8 + 2]]))
    assert np.all(np.diff(fitted, axis=1) > 0)
    assert fitted[0].tolist() == [-13.5, -11.0]


def test_p_values_are_those_of_the_normal_law() -> None:
    axis = np.array([0.0, 1.0, 0.0])
    error = 0.3 / 5
    for away in (0.5, 1.96, 4.0):
        expected = 2 * NormalDist().cdf(-away)
        assert answers().p_value(0.25, axis, 2.0 / 5 + away * error) == pytest.approx(expected, rel=1e-6)
    assert answers().p_value(0.25, axis, 2.0 / 5) == pytest.approx(1.0)
    assert answers().p_value(0.25, axis, 99.0) == SMALLEST


def test_an_interval_without_ends_leaves_nothing_out() -> None:
    axis = np.array([0.0, 1.0, 0.0])
    assert answers(highest=0.99).p_value(0.25, axis, 99.0) == pytest.approx(0.01, rel=1e-6)
    with pytest.raises(Infeasible, match="9,000"):
        answers(silent=True).p_value(0.25, axis, 0.0)


def test_rows_say_why_there_is_no_interval() -> None:
    row = answers().row(0, 1, 0.95)
    assert row.error == pytest.approx(0.06)
    assert row.interval is not None
    assert row.reason is None
    silent = answers(silent=True).row(0, 1, 0.95)
    assert silent.value == pytest.approx(0.4)
    assert silent.error is None
    assert silent.interval is None
    assert silent.reason == "an interval needs about 9,000 people."
    assert answers().warnings == ("mind the gap",)


def test_an_interval_that_is_missing_is_nan_with_its_reason() -> None:
    ends, reasons = answers(without=2).intervals(0, 0.9)
    assert np.isnan(ends).tolist() == [[False, False], [False, False], [True, True]]
    assert reasons == {"b": "an interval needs about 9,000 people."}
    with pytest.raises(Infeasible, match="9,000"):
        answers(silent=True).intervals(0, 0.9)


def test_columns_of_a_table_never_touch() -> None:
    wide = [(0, 1e-12), (1e8, 1e8 + 4)]
    found = dataclasses.replace(answers(), bounds=read_bounds(wide, ("a", "b")))
    lines = found.summary().splitlines()
    rows = [line for line in lines if line.startswith(("intercept", "a ", "b "))]
    assert len(rows) == 6
    assert max(len(cell) for row in rows for cell in row.split()) > 13
    for row in rows:
        assert len(row.split()) == 5
        assert not re.search(r"[^ ] [^ ]", row)
    assert len({len(row) for row in rows}) == 1


def test_a_level_is_found_by_its_number() -> None:
    assert answers().level_of(0.75) == 1
    for wrong in (None, 0.5, "half"):
        with pytest.raises(BadInput, match=r"give tau as one of 0\.25, 0\.75"):
            answers().level_of(wrong)


def finished(way: str) -> RegressionResult:
    method, doors, _ = open_doors(plan_of(**WAYS[way]), rows_of(1200), dice(3))
    return run(method, doors)


class OffCentre(DitheredFit):
    """A fit that determines the coefficients of scaled covariates, and no other contrast."""

    def determined(self, index: int, contrast: Any) -> bool:
        return bool(np.count_nonzero(contrast) == 1)

    def needed(self, index: int | None = None, contrast: Any = None) -> int:
        return self.people if contrast is None or np.count_nonzero(contrast) == 1 else 12_345


@pytest.mark.parametrize("way", ["dithered", "pilot"])
def test_people_are_asked_for_by_what_raw_coefficients_need(way: str) -> None:
    result = finished(way)
    only = result.fits[0]
    assert isinstance(only, DitheredFit)
    fit = OffCentre(only.study, only.people, only.knowledge)
    found = dataclasses.replace(result, bounds=read_bounds((0, 2), ("a", "b")), fits=(fit,))
    assert found.determined.tolist() == [[False, True, True]]
    beside = result.people - only.people
    assert (beside > 0) == (way == "pilot")
    assert f"ask about {two_digits(12_345 + beside):,} people" in found.warnings[-1]
    assert two_digits(12_345 + beside) % 1000 == 0


def read_back(result: RegressionResult) -> RegressionResult:
    return RegressionResult.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def said(result: RegressionResult) -> list[Any]:
    """All that a result says, intervals, ellipsoids and tests included."""
    found: list[Any] = [result.summary(), result.summary(0.5), result.scaled.tolist(), result.raw.tolist()]
    found += [result.predict(np.array([[0.3, -0.2], [9.0, 1.0]])).tolist(), result.warnings, result.describe().values]
    for tau in result.taus:
        for ask in (
            lambda tau: result.ellipsoid(tau, 0.9).shape.tolist(),
            lambda tau: result.p_value(tau, [0.0, 1.0, 0.0], 0.25),
            lambda tau: result.interval(result.level_of(tau), [1.0, 0.5, -0.5], 0.8),
        ):
            try:
                found.append(ask(tau))
            except Infeasible as refusal:
                found.append(str(refusal))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_result_is_stored_copied_and_pickled_without_loss(way: str, tmp_path: Path) -> None:
    result = finished(way)
    everything = said(result)
    for other in (read_back(result), read_back(read_back(result)), copy.deepcopy(result), copy.copy(result)):
        assert said(other) == everything
        assert other.to_dict() == result.to_dict()
    assert said(pickle.loads(pickle.dumps(result))) == everything
    back = load(result.save(tmp_path / "result.json"))
    assert isinstance(back, RegressionResult)
    assert said(back) == everything


def test_an_unfinished_search_and_a_rich_fit_are_stored_too() -> None:
    source = dice(1).generator()
    features = source.uniform(-1, 1, (12_000, 2))
    response = features[:, 0] + source.logistic(0.0, 0.5, 12_000)
    model = PrivateQuantileRegressor(epsilon=8.0, tau=[0.25, 0.75], randomness=dice(2))
    waiting = model.partial_fit(features[:50], response[:50]).result_
    assert said(read_back(waiting))[0] == said(waiting)[0]
    assert "not over" in waiting.summary()
    rich = model.partial_fit(features[50:], response[50:]).result_
    assert "No interval" not in rich.summary()
    assert said(read_back(rich)) == said(rich)
    for inference in ("self-normalised", "groups", "higrad"):
        guesses: dict[str, Any] = {"density": 0.5, "size": 1.0}
        one = PrivateQuantileRegressor(epsilon=8.0, inference=inference, randomness=dice(2), **guesses)
        result = one.fit(features, response).result_
        assert said(read_back(result)) == said(result)


def test_what_the_holder_of_rows_knows_is_not_stored() -> None:
    features = np.linspace(-1.05, 1.05, 800).reshape(400, 2)
    model = PrivateQuantileRegressor(epsilon=8.0, clip=True, density=0.5, size=1.0, randomness=dice(1))
    model.fit(features, np.cos(np.arange(400.0)))
    assert model.clipped_ > 0
    (hint,) = model.result_.hints
    assert f"{model.clipped_} of 400 rows were moved to the bounds" in hint
    shown = model.summary() + repr(model.result_) + model.result_._repr_html_() + json.dumps(model.to_dict())
    assert "moved" not in shown
    assert "clipped" not in shown
    assert pickle.loads(pickle.dumps(model.result_)).hints == read_back(model.result_).hints == ()


def test_a_result_holds_no_record() -> None:
    features = np.linspace(-0.9, 0.9, 1000).reshape(500, 2)
    response = np.cos(np.arange(500.0))
    features[17, 0], response[17] = 0.7123456789, 0.61987654321
    model = PrivateQuantileRegressor(epsilon=8.0, density=0.5, size=1.0, randomness=dice(1), shuffle=False)
    result = model.fit(features, response).result_
    sent, text = pickle.dumps(result), json.dumps(result.to_dict())
    for secret in (features[17, 0], response[17]):
        assert np.float64(secret).tobytes() not in sent
        assert repr(float(secret))[:9] not in text
    for value in walk(result):
        assert not isinstance(value, Rows)
        assert not (isinstance(value, np.ndarray) and value.size >= 500)


def walk(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Yield everything that hangs on a value."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    parts: list[Any] = list(vars(value).values()) if hasattr(value, "__dict__") else []
    if isinstance(value, dict):
        parts += [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts += list(value)
    for part in parts:
        yield from walk(part, seen)


def terms_of(values: Any) -> Any:
    """The terms of the first fit: levels, noise, density, size, start, moments."""
    return values["stored"]["state"][2][0][3][0]


BROKEN: dict[str, Any] = {
    "another kind": lambda d: d["stored"].update(kind="quantile-regression"),
    "another format": lambda d: d["stored"].update(format=99),
    "no state": lambda d: d["stored"].update(state=None),
    "a level too many": lambda d: d["stored"]["state"][0].__setitem__(0, [0.25, 0.5]),
    "fits of another": lambda d: d["stored"]["state"].__setitem__(2, []),
    "a field too few": lambda d: d["stored"]["state"].__delitem__(slice(2, None)),
    "a level beyond one": lambda d: d["stored"]["state"][0].__setitem__(0, [1.5]),
    "an inference that is none": lambda d: d["stored"]["state"][0].__setitem__(2, "guessed"),
    "nobody": lambda d: d["stored"]["state"][0].__setitem__(5, 0),
    "an epsilon beyond all": lambda d: d["stored"]["state"][0].__setitem__(3, 1e30),
    "bounds the wrong way": lambda d: d["stored"]["state"][1].update(high=d["stored"]["state"][1]["low"]),
    "null among numbers": lambda d: terms_of(d)[4]["values"].__setitem__(0, None),
    "no number": lambda d: terms_of(d)[1]["values"].__setitem__(0, math.nan),
    "a density below zero": lambda d: terms_of(d)[2]["values"].__setitem__(0, -1.0),
    "no size": lambda d: terms_of(d).__setitem__(3, 0.0),
    "noise below zero": lambda d: terms_of(d)[1]["values"].__setitem__(4, -1.0),
    "too far": lambda d: terms_of(d)[4]["values"].__setitem__(0, 1e300),
    "more people than were asked": lambda d: d["stored"]["state"][2][0].__setitem__(0, 10**9),
    "windows of nobody": lambda d: d["stored"]["state"][2][0][3][1][3].pop(),
    "a smaller epsilon": lambda d: d["stored"]["state"][0].__setitem__(3, 0.5),
    "channels of other levels": lambda d: d["stored"]["state"][3][0][0].append(0.75),
    "channels of another regression": lambda d: d["stored"]["state"][3][0].__setitem__(1, 3),
    "a channel without blocks": lambda d: d["stored"]["state"][3][0].__setitem__(2, []),
    "a number as text": lambda d: d["stored"]["state"][0].__setitem__(3, "one"),
}


@pytest.mark.parametrize("spoil", BROKEN.values(), ids=BROKEN)
def test_a_spoilt_result_is_refused(spoil: Any) -> None:
    values = json.loads(json.dumps(finished("dithered").to_dict()))
    spoil(values)
    with pytest.raises(BadInput):
        RegressionResult.from_dict(values)
