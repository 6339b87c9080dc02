"""A conformal threshold keeps the promises of a study: hidden scores, one message a site, the system's dice."""

import copy
import dataclasses
import importlib
import inspect
import json
import logging
import math
import re
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.conformal import threshold as module
from sottovoce.client.conformal.site import CalibrationSite
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import CellQuery, OrderQuery
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.result import ConformalThreshold
from sottovoce.sim.randomness import dice

pickle: Any = importlib.import_module("pickle")
pickled: Callable[[object], bytes] = pickle.dumps
SECRET = 123456.789012
FORMS = ("123456", "123,456", "123457", "123,457", "1.23457e+05", "1.2346e+05", "1.23456", float.hex(SECRET))
MECHANISMS = ("sparse-vector", "exponential", "local", "aggregate", "counts", "auto")


def column(seed: int, n: int = 800) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return scores with secrets among them, far above any threshold."""
    values = np.abs(dice(seed).generator().standard_normal(n))
    values[::100] = SECRET
    return values


SITES = {f"site {i}": column(i) for i in range(4)}
VALUES = [value for values in SITES.values() for value in values.tolist()]
SHOWN = {repr(value) for value in VALUES}
SETTINGS: dict[str, dict[str, Any]] = {
    "open": {},
    "three": {"statistics": 3},
    "exact": {"exact": True},
    "conditional": {"guarantee": "training-conditional"},
    **{name: {"epsilon": 2.0, "maximum": 4.0, "mechanism": name} for name in MECHANISMS},
    "paper": {"epsilon": 8.0, "maximum": 4.0, "mechanism": "paper"},
    "mixed": {"epsilon": {**dict.fromkeys(SITES, 2.0), "site 3": math.inf}, "maximum": 4.0},
}
every = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def hidden(text: object, but: float = math.nan) -> None:
    """Find no score in a text, except perhaps the threshold."""
    shown = str(text)
    assert not [form for form in FORMS if re.search(rf"(?<![\d.]){re.escape(form)}", shown)], shown[:2000]
    found = SHOWN & set(re.findall(r"\d+\.\d+(?:e-?\d+)?", shown))
    assert found <= {repr(but)}, found


def test_the_check_has_power() -> None:
    for text in ([SECRET], f"{SECRET:,.0f}", VALUES[1:2], {"value": VALUES[7]}, f"({VALUES[13]!r})"):
        with pytest.raises(AssertionError):
            hidden(text)


@every
def test_no_text_shows_a_score_but_the_threshold(
    settings: dict[str, Any], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, logger="numba")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        t = sv.conformal_threshold(SITES, **settings)
        shown = [repr(t), str(t), json.dumps(t.to_dict(), allow_nan=False), str(vars(t)), t.estimand, *t.warnings]
        shown += [str(getattr(t, field.name)) for field in dataclasses.fields(t)]
    assert not heard
    for text in (*shown, *t.hints, caplog.text, *capfd.readouterr()):
        hidden(text, t.value)


@every
def test_a_result_may_be_passed_on_and_carries_one_score_at_most(settings: dict[str, Any]) -> None:
    t = sv.conformal_threshold(SITES, **settings)
    sent = pickled(t)
    again = pickle.loads(sent)
    for other in (again, copy.deepcopy(t), copy.copy(t)):
        # a plan holds bound methods, equal only to themselves
        same = {"plan": t.plan} if isinstance(t, ConformalThreshold) else {}
        assert dataclasses.replace(other, **same) == t
        assert other.hints == ()
        assert other.to_dict() == t.to_dict()
        assert other.coverage == t.coverage
    kept = [v for v in VALUES if np.float64(v).tobytes() in sent or np.float64(v).tobytes()[::-1] in sent]
    # the messages of sites, not even those of open ones, are not among it
    assert set(kept) <= ({t.value} if t.mechanism is None or "mixed" in str(settings) or not t.private else set())


@every
def test_what_is_said_of_the_grid_is_for_whoever_holds_the_scores(settings: dict[str, Any]) -> None:
    t = sv.conformal_threshold(SITES, **settings)
    if "maximum" not in settings:
        assert t.hints == ()
        return
    assert "32 of 3,200 scores at 4 sites lie above the grid" in t.hints[0]
    for passed in (json.dumps(t.to_dict()), repr(t), str(pickled(t))):
        assert "above the grid" not in passed


def parts(value: Any, seen: set[int]) -> None:
    """Meet no record and no array anywhere inside."""
    assert not isinstance(value, Records | np.ndarray | CalibrationSite)
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        inside: Any = value.values()
    elif isinstance(value, tuple | list):
        inside = value
    else:
        inside = vars(value).values() if hasattr(value, "__dict__") and not inspect.isroutine(value) else ()
    for part in inside:
        parts(part, seen)


@every
def test_a_result_holds_neither_records_nor_sites(settings: dict[str, Any]) -> None:
    parts(sv.conformal_threshold(SITES, **settings), set())


REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "NaN": ({"a": [SECRET, math.nan] * 20}, {}),
    "infinity": ({"a": [SECRET, math.inf] * 20}, {}),
    "text": ({"a": [SECRET, f"{SECRET} EUR"] * 20}, {}),
    "too few": ({"a": [SECRET] * 3}, {}),
    "too few, private": ({"a": [SECRET] * 3}, {"epsilon": 0.1, "maximum": 4.0}),
    "shared": ((lambda one: {"a": one, "b": one})(np.full(50, SECRET)), {}),
    "two dimensions": ({"a": np.full((20, 2), SECRET)}, {}),
    "budget": (SITES, {"epsilon": -1.0, "maximum": 4.0}),
    "grid": (SITES, {"epsilon": 1.0, "grid": [2.0, 1.0]}),
    "no maximum": (SITES, {"epsilon": 1.0}),
    "paper": ({"a": column(9, 300), "b": column(10, 200)}, {"epsilon": 1.0, "maximum": 4.0, "mechanism": "paper"}),
    "statistics": (SITES, {"statistics": 9}),
}


@pytest.mark.parametrize(("sites", "settings"), REFUSED.values(), ids=REFUSED)
def test_refusals_show_no_score_and_spend_nothing(
    sites: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(self: CalibrationSite, query: Any) -> Any:
        raise AssertionError("a site was asked")

    monkeypatch.setattr(CalibrationSite, "answer", spent)
    monkeypatch.setattr(module, "SystemEntropy", None)
    with pytest.raises(BadInput) as caught:
        sv.conformal_threshold(sites, **settings, randomness=dice(1))
    hidden("".join(traceback.format_exception(caught.value)))
    assert ". " not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_each_site_is_asked_once_and_before_that_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, Any]] = []
    answer = CalibrationSite.answer

    def counted(self: CalibrationSite, query: OrderQuery | CellQuery) -> Any:
        asked.append((id(self), query))
        return answer(self, query)

    monkeypatch.setattr(CalibrationSite, "answer", counted)
    for settings in (SETTINGS["open"], SETTINGS["sparse-vector"]):
        asked.clear()
        t = sv.conformal_threshold(SITES, **settings)
        assert len({site for site, _ in asked}) == len(asked) == len(SITES)
        # what is asked follows from public numbers: other scores of the same sizes are asked the same
        queries = [query for _, query in asked]
        asked.clear()
        other = sv.conformal_threshold({name: values * 7 - 3 for name, values in SITES.items()}, **settings)
        assert [query for _, query in asked] == queries
        assert (other.orders, other.rank, other.coverage) == (t.orders, t.rank, t.coverage)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_is_the_systems_alone(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    system = importlib.import_module("os").urandom
    numpy_random = importlib.import_module("numpy.random")

    def counted(n: int) -> Any:
        drawn.append(n)
        return system(n)

    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("numpy's generator was asked")

    for name in dir(numpy_random):
        found = getattr(numpy_random, name)
        if not name.startswith("_") and callable(found) and not isinstance(found, type):
            monkeypatch.setattr(numpy_random, name, refuse)
    monkeypatch.setattr("os.urandom", counted)
    t = sv.conformal_threshold(SITES, **SETTINGS[mechanism])
    assert t.private is True
    assert sum(drawn) >= 8 * len(SITES)
    drawn.clear()
    sv.conformal_threshold(SITES)
    assert drawn == []  # nothing to hide, nothing drawn

    def dry(n: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr("os.urandom", dry)
    with pytest.raises(OSError, match="no entropy"):
        sv.conformal_threshold(SITES, **SETTINGS[mechanism])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_seeds_make_a_simulation_of_it(mechanism: str) -> None:
    one, two = (sv.conformal_threshold(SITES, **SETTINGS[mechanism], randomness=dice(5)) for _ in range(2))
    assert one.to_dict() == two.to_dict()
    assert one.private is False
    assert one.to_dict()["private"] is False
    assert "protects nobody" in str(one)
    assert "seed" not in inspect.signature(sv.conformal_threshold).parameters
    # four sites count at four edges alone: it takes much noise to see any
    settings = SETTINGS[mechanism] | ({"epsilon": 0.02} if mechanism == "counts" else {})
    first = sv.conformal_threshold(SITES, **settings, bins=400).value
    assert any(sv.conformal_threshold(SITES, **settings, bins=400).value != first for _ in range(11))


def values_at(epsilon: float, sites: Any, mechanism: str, seeds: int = 15) -> list[float]:
    """Return thresholds of seeded runs: the same words thrown for other scores."""
    found: list[Threshold] = [
        sv.conformal_threshold(sites, 0.2, epsilon=epsilon, maximum=4.0, mechanism=mechanism, randomness=dice(seed))
        for seed in range(seeds)
    ]
    return [t.value for t in found]


def test_at_a_tiny_budget_other_scores_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same words thrown, what a site says hardly depends on its scores; with a fair budget it does."""
    monkeypatch.setattr("sottovoce.server.conformal.plan.OFTEN", 1.0)  # else nothing would be asked at such a budget
    low, high = {"a": np.linspace(0.0, 1.0, 50)}, {"a": np.linspace(3.0, 3.9, 50)}
    for mechanism in ("sparse-vector",):
        quiet = [values_at(1e-4, sites, mechanism) for sites in (low, high)]
        # a scan moves if noise in the thousands decides by less than the 50 scores: 2 % of the runs or so
        assert sum(a != b for a, b in zip(*quiet, strict=True)) <= 3
        loud = [values_at(5.0, sites, mechanism) for sites in (low, high)]
        assert sum(a != b for a, b in zip(*loud, strict=True)) > 11
