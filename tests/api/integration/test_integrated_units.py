"""Dates, durations, rounded and tied records, other scales and extreme numbers: data integration in all of them."""

import datetime
import json
import math
import os
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.server.integration.plan import METHODS
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.sim.randomness import dice

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)
DRAWS = dice(42).generator()
OURS, NORTH, SOUTH = (DRAWS.gamma(2.0, 10.0, n) for n in (6000, 9000, 12_000))
BUDGETS = {"target": 2.0, "north": 3.0, "south": math.inf}


def ask(target: Any, sources: Any, epsilon: Any = BUDGETS, **options: Any) -> IntegratedResult:
    return sv.integrated_quantile(target, sources, 0.5, epsilon, randomness=dice(7), **options)


@compiled
@pytest.mark.parametrize("step", [0.5, 2.0, 0.1])
def test_with_a_resolution_every_number_is_on_the_lattice_and_open_sites_are_dithered(step: float) -> None:
    rounded = {name: np.round(v / step) * step for name, v in (("target", OURS), ("north", NORTH), ("south", SOUTH))}
    result = ask(rounded.pop("target"), rounded, resolution=step)
    for value in (result.estimate, *result.interval, *result.target_interval):
        assert value == float(f"{round(value / step) * step:.12g}")
    assert result.interval.low <= result.estimate <= result.interval.high
    south = result.known[2]
    assert south.kind == "open"
    assert south.measured.estimate != float(f"{round(south.measured.estimate / step) * step:.12g}")
    assert (result.resolution, result.hints) == (step, ())
    assert result.interval.low - step <= 16.7834699 <= result.interval.high + step


@compiled
def test_dates() -> None:
    start = datetime.date(2020, 1, 1)
    days = [[start + datetime.timedelta(days=int(wait)) for wait in v] for v in (OURS, NORTH)]
    number = (datetime.date(2020, 1, 17) - datetime.date(1970, 1, 1)).days
    told = {"north": days[1], "told": sv.SiteSummary(number, 0.5)}
    result = ask(days[0], told, 3.0, method="known-bound", bound={"north": "36h", "told": 1})
    assert result.settings.bound == {"north": 1.5, "told": 1.0}
    assert result.to_dict()["unit"] == "date"
    assert result.to_dict()["text"]["estimate"].startswith("2020-01-1")
    assert result.interval.low == int(result.interval.low)
    assert result.interval.low <= number <= result.interval.high
    assert result.sensitivity().interval_at("36h") == result.sensitivity().interval_at(1.5)


@compiled
def test_durations() -> None:
    waits = [pd.Series(pd.to_timedelta(np.round(60 * v), unit="s")) for v in (OURS, NORTH, SOUTH)]
    result = ask(waits[0], {"north": waits[1], "south": waits[2]}, resolution="1s", bounds=("1min", "2h"))
    assert result.to_dict()["text"]["estimate"].startswith("16 min")
    assert result.interval.low <= 60 * 16.78 <= result.interval.high


@compiled
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("shift", "factor"), [(0.0, 1e-9), (-4096.0, 1.0), (1e6, 1e12)])
def test_it_moves_with_the_records_where_public_knowledge_moves_along(method: str, shift: float, factor: float) -> None:
    results = []
    for a, b in ((0.0, 1.0), (shift, factor)):
        options: dict[str, Any] = {"bounds": (a, a + 100 * b), "scale": 10 * b, "method": method}
        options |= {"bound": 0.5 * b} if method == "known-bound" else {}
        told = sv.SiteSummary(a + 16.0 * b, 0.3 * b, n=300)
        results.append(ask(a + b * OURS, {"north": a + b * NORTH, "south": a + b * SOUTH, "told": told}, **options))
    plain, moved = results
    tolerance = 1e-6 * plain.target.measured.std_error * factor
    for one, two in zip((plain.estimate, *plain.interval), (moved.estimate, *moved.interval), strict=True):
        assert two == pytest.approx(shift + factor * one, abs=tolerance)
    assert dict(moved.weights) == pytest.approx(dict(plain.weights), abs=1e-6)


@pytest.mark.parametrize("method", ["valid", "conservative"])
def test_between_tied_records_an_interval_is_exact_and_stays_where_it_is(method: str) -> None:
    atom = np.concatenate([np.full(700, 5.0), np.linspace(0, 4, 150), np.linspace(6, 9, 150)])
    lattice = np.round(20 * np.sqrt(np.linspace(0.0, 1.0, 900)))
    for values, place in ((atom, 5.5), (lattice, 14.3)):
        result = ask(values, {"told": sv.SiteSummary(place, 0.2)}, math.inf, method=method)
        assert result.interval == result.target_interval
        assert (result.length_ratio, result.weights["told"]) == (1.0, 0.0)
        assert ["are tied at the ends" in text for text in result.warnings] == [True]
        assert any("many records are tied" in hint for hint in result.hints)
    dithered = ask(lattice, {"told": sv.SiteSummary(14.3, 0.2)}, math.inf, method=method, resolution=1.0)
    assert dithered.weights["told"] > 0
    assert dithered.warnings == ()


def test_an_interval_without_length_is_compared_with_none() -> None:
    atom = np.concatenate([np.full(700, 5.0), np.linspace(0, 4, 150), np.linspace(6, 9, 150)])
    result = ask(atom, {"told": sv.SiteSummary(5.5, 0.2)}, math.inf, method="known-bound", bound=1.0)
    assert result.interval.low < 5.0 < result.interval.high
    assert math.isnan(result.length_ratio)
    assert result.to_dict()["length_ratio"] is None


def test_hints_are_for_whoever_holds_the_records() -> None:
    tied = np.round(np.linspace(0.0, 50.0, 1000))
    result = ask(tied, {"told": sv.SiteSummary(25.0, 1.0)}, math.inf)
    assert result.hints[0].startswith("site 'target': many records are tied")
    assert "many records are tied" not in json.dumps(result.to_dict()) + repr(result)
    assert ask(np.linspace(0.0, 50.0, 1000), {}, math.inf).hints == ()


@pytest.mark.parametrize("n", [6, 10, 30])
def test_an_open_target_needs_no_more_records_than_its_rank_interval(n: int) -> None:
    result = ask(np.linspace(0.0, 1.0, n) ** 2, {"told": sv.SiteSummary(0.3, 0.05)}, math.inf)
    assert (result.warnings, result.target.records) == ((), n)
    assert result.interval.low < result.estimate < result.interval.high


EXTREMES = {
    "precise": [sv.SiteSummary(0.0, 1e-140, n=100), sv.SiteSummary(1.0, 1e-15, n=50)],
    "vague": [sv.SiteSummary(0.0, 1e140, n=100), sv.SiteSummary(1e30, 1e20, n=50)],
    "far": [sv.SiteSummary(-1e160, 1e149, n=100), sv.SiteSummary(1e159, 1e149, n=50)],
    "all of it": [sv.SiteSummary(-1e162, 1e149, n=100), sv.SiteSummary(1e-300, 1e-149, n=50)],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [1e-140, 1.0, 1e140])
@pytest.mark.parametrize("sources", EXTREMES.values(), ids=EXTREMES)
def test_numbers_at_the_ends_of_what_floats_hold(method: str, unit: float, sources: list[sv.SiteSummary]) -> None:
    bound = {"bound": 1e300} if method == "known-bound" else {}
    result = ask(sv.SiteSummary(unit, unit, n=60), sources, None, method=method, **bound)
    assert sum(result.weights.values()) == pytest.approx(1.0, abs=1e-9)
    assert all(math.isfinite(weight) and weight >= 0 for weight in result.weights.values())
    assert result.interval.low <= result.estimate <= result.interval.high
    json.dumps(result.to_dict(), allow_nan=False)
    if method == "valid":
        curve = result.sensitivity()
        assert np.all(np.isfinite(curve.length_ratio))
        json.dumps(curve.to_dict(), allow_nan=False)


def test_hundreds_of_sources() -> None:
    draws = dice(5).generator()
    sources = {f"s{i}": draws.normal(0.0, 1.0, 1000) for i in range(300)}
    result = ask(draws.normal(0.0, 1.0, 4000), sources, math.inf)
    assert result.length_ratio == pytest.approx(0.94, abs=0.06)
    assert len(result.weights) == 301
    assert result.warnings == ()
