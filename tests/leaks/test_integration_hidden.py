"""Data integration keeps a study's promises: hidden records, one report each, the system's dice, no interference."""

import copy
import importlib
import inspect
import json
import logging
import math
import os
import re
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sottovoce as sv
from sottovoce.api.integration import read_given
from sottovoce.client.order import ROUNDS, Key, place
from sottovoce.client.quantile import encode
from sottovoce.client.quantile import site as site_module
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.local.quantile import source as source_module
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.server.integration.plan import check_settings, plan_integration
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.sim.randomness import dice

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)
pickled: Callable[[object], bytes] = importlib.import_module("pickle").dumps
Floats = npt.NDArray[np.float64]
SECRET = 123456.789012
OPEN = np.linspace(-1.5, 1.5, 400)
METHODS = ("valid", "known-bound", "ivw")


def column(seed: int, n: int = 3000) -> Floats:
    """Return normal records with secrets among them, far from any quantile that is asked."""
    values = dice(seed).generator().standard_normal(n)
    values[::100] = SECRET
    return values


OURS, NORTH = column(1), column(2)
SITES: dict[str, Any] = {"ours": OURS, "north": NORTH, "open": OPEN, "told": sv.SiteSummary(0.1, 0.1)}
BUDGETS = {"ours": 3.0, "north": 4.0, "open": math.inf}
# every order statistic that a rank interval or an estimate could show
SHOWN = {repr(value) for value in (*OURS.tolist(), *NORTH.tolist())}
FORMS = ("123456", "123,456", "123457", "123,457", "1.23457e+05", "1.2346e+05", "1.23456", float.hex(SECRET))


def ask(method: str = "valid", **options: Any) -> IntegratedResult:
    bound = {"bound": 0.1} if method == "known-bound" else {}
    given = {"sources": SITES, "epsilon": BUDGETS, "randomness": dice(3), **bound, **options}
    return sv.integrated_quantile("ours", given.pop("sources"), 0.5, given.pop("epsilon"), method=method, **given)


def hidden(text: object) -> None:
    shown = str(text)
    assert not [form for form in FORMS if re.search(rf"(?<![\d.]){re.escape(form)}", shown)], shown[:2000]
    assert not SHOWN & set(re.findall(r"-?\d+\.\d+(?:e-?\d+)?", shown)), shown[:2000]


def test_the_check_has_power() -> None:
    for text in (
        [SECRET],
        f"{SECRET:,.0f}",
        NORTH[1:2].tolist(),
        {"low": float(np.sort(OURS)[1400])},
        f"({OURS[7]!r})",
    ):
        with pytest.raises(AssertionError):
            hidden(text)


@compiled
@pytest.mark.parametrize("method", METHODS)
def test_no_text_shows_a_record_of_a_private_site(
    method: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, logger="numba")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        done = ask(method)
        curve = done.sensitivity()
        shown = [repr(done), str(done), json.dumps(done.to_dict()), str(vars(done)), done.promise, done.estimand]
        shown += [repr(curve), str(curve), json.dumps(curve.to_dict()), str(done.hints), str(done.warnings)]
    for text in (*shown, caplog.text, *capfd.readouterr(), *(str(warning.message) for warning in heard)):
        hidden(text)


@compiled
@pytest.mark.parametrize("method", METHODS)
def test_a_result_holds_numbers_only_and_may_be_passed_on(method: str) -> None:
    done = ask(method, sources={**SITES, "open": np.round(OPEN, 1)})
    sent = pickled(done)
    again = importlib.import_module("pickle").loads(sent)
    assert again == done == copy.deepcopy(done)
    assert again.to_dict() == done.to_dict()
    # what is said of ties is for whoever holds the records
    assert done.hints
    assert again.hints == copy.deepcopy(done).hints == ()
    for values in (OURS, NORTH):
        assert not [value for value in values if value.tobytes() in sent or value.tobytes()[::-1] in sent]

    def parts(value: Any, seen: set[int]) -> None:
        assert not isinstance(value, Records | np.ndarray)
        if id(value) not in seen and (hasattr(value, "__dict__") or isinstance(value, tuple | dict)):
            seen.add(id(value))
            inside = vars(value) if hasattr(value, "__dict__") else value
            for part in inside.values() if isinstance(inside, dict) else inside:
                parts(part, seen)

    parts(done, set())


def test_what_was_given_shows_nothing_and_cannot_be_copied() -> None:
    given = read_given("ours", SITES, "refuse")
    for text in (repr(given), str(given.table), str(vars(given))):
        hidden(text)
    for duplicate in (pickled, copy.deepcopy):
        with pytest.raises(TypeError) as caught:
            duplicate(given)
        hidden("".join(traceback.format_exception(caught.value)))


def test_a_plan_holds_no_record_and_may_be_passed_on() -> None:
    given = read_given("ours", SITES, "refuse")
    assert given.table is not None
    settings = check_settings("valid", 0.95, 0.5, "printed", "z", 1.96, None, 10)
    plan = plan_integration(settings, given.names, given.table.roster, given.summaries, 0.5, BUDGETS)
    for text in (repr(plan), str(plan.sites), str(vars(plan))):
        hidden(text)
    sent = pickled(plan)
    assert not [value for value in (*OURS, *NORTH) if value.tobytes() in sent or value.tobytes()[::-1] in sent]
    again = importlib.import_module("pickle").loads(sent)
    assert again.card() == plan.card() == copy.deepcopy(plan).card()


@pytest.mark.parametrize(
    "options",
    [
        {"sources": {"ours": OURS[:50], "north": NORTH}, "epsilon": 0.5},
        {"sources": {"ours": [SECRET, math.nan]}, "epsilon": 1.0},
        {"sources": {"ours": OURS, "north": [SECRET, f"{SECRET} EUR"]}, "epsilon": 1.0},
        {"sources": {"ours": OURS, "north": [SECRET]}, "epsilon": 1.0},
        {"sources": {"ours": OURS, "north": OURS}, "epsilon": 1.0},
        {"sources": {"ours": OURS, "north": np.full(900, SECRET)}, "epsilon": {"ours": 3.0, "north": math.inf}},
        {"sources": {"ours": column(3, 5), "north": NORTH}, "epsilon": {"ours": math.inf, "north": 3.0}},
        {"method": "ivw", "chains": 99},
        {"bound": -1},
    ],
)
def test_refusals_do_not_show_records(options: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        ask(**options)
    hidden("".join(traceback.format_exception(caught.value)))


@compiled
@pytest.mark.parametrize("method", ["valid", "ivw"])
def test_each_record_answers_at_most_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[tuple[int, int]] = Counter()

    def note(values: Floats, bits: int, key: Key, start: int, count: int) -> None:
        for i in range(start, start + count):
            asked[values.ctypes.data, int(place(i, len(values), bits, key))] += 1

    def counted(kernel: Any, filled: str) -> Any:
        names = inspect.signature(getattr(kernel, "py_func", kernel))

        def call(*args: Any) -> Any:
            given = names.bind(*args).arguments
            note(given["values"], given["bits"], given["key"], given["start"], len(given[filled]))
            return kernel(*args)

        return call

    monkeypatch.setattr(site_module, "answer", counted(encode.answer, "letters"))
    monkeypatch.setattr(source_module, "fetch", counted(source_module.fetch, "fetched"))
    done = ask(method)
    assert set(asked.values()) == {1}
    assert len(asked) == done.reports - len(OPEN)
    assert Counter(where for where, _ in asked).keys() == {OURS.ctypes.data, NORTH.ctypes.data}


@compiled
@pytest.mark.parametrize("method", METHODS)
def test_every_word_is_the_systems(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(method)  # a kernel that is compiled now asks for the names of its files
    drawn: list[int] = []
    system = importlib.import_module("os").urandom
    module = importlib.import_module("numpy.random")

    def counted(n: int) -> Any:
        drawn.append(n)
        return system(n)

    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("numpy's generator was asked")

    for name in dir(module):
        if not name.startswith("_") and callable(getattr(module, name)) and not isinstance(getattr(module, name), type):
            monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr("os.urandom", counted)
    done = ask(method, randomness=None, sources={"ours": OURS, "north": NORTH}, epsilon={"ours": 3.0, "north": 4.0})
    # a word a record, and eight 32-bit keys for each of two orders
    assert sum(drawn) == 8 * (done.reports + ROUNDS)
    assert done.private is True
    drawn.clear()
    rounded = np.round(OPEN, 1)
    sv.integrated_quantile(rounded, {}, 0.5, math.inf, resolution=0.1)
    assert sum(drawn) == 8 * len(rounded)


@compiled
def test_a_result_says_whether_it_is_private() -> None:
    private = {"ours": OURS, "north": NORTH}
    alike: dict[str, Any] = {"sources": private, "epsilon": 3.0}
    assert ask(**alike, randomness=None).private is True
    assert ask(**alike).private is False
    assert "protects nobody" in ask(**alike).promise
    assert ask(randomness=None).private is False  # one site is open
    assert "randomness" in inspect.signature(sv.integrated_quantile).parameters
    assert not [name for name in inspect.signature(sv.integrated_quantile).parameters if "seed" in name]
    assert ask(**alike, randomness=None).estimate != ask(**alike, randomness=None).estimate


ENDS = np.array([[0.0], [1.0]])
SILENT = Channel("silent", ENDS, ((OUTCOMES // 2, OUTCOMES // 2),) * 2, ENDS)
LOW = (np.linspace(-1.0, 1.0, 3000), np.linspace(-1.0, 1.0, 4000))
OTHERS = {
    "another population": (1e6 + np.exp(np.linspace(0.0, 9.0, 3000)), np.linspace(7.0, 8.0, 4000)),
    "the same turned round": tuple(-values for values in LOW),
    "a tied one": tuple(np.round(values) for values in LOW),
}


def transcript(population: tuple[Floats, ...], method: str) -> bytes:
    """Return all that leaves two studies, or what is said where noise alone leads nowhere."""
    options: dict[str, Any] = {"method": method, "bounds": (-9, 9)} | ({"bound": 1} if method == "known-bound" else {})
    private, told = {"north": population[0], "south": population[1]}, sv.SiteSummary(0.1, 0.1)
    sources_only = sv.integrated_quantile(told, private, 0.5, 3.0, randomness=dice(5), **options)
    try:
        helped = sv.integrated_quantile("north", {**private, "told": told}, 0.5, 3.0, randomness=dice(5), **options)
        return pickled((sources_only, helped))
    except SearchFailed as lost:
        return pickled((sources_only, str(lost)))


@compiled
@pytest.mark.parametrize("method", METHODS)
def test_a_study_says_nothing_at_epsilon_zero(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = transcript(LOW, method)
    assert spoken == transcript(LOW, method)
    assert len({spoken, *(transcript(other, method) for other in OTHERS.values())}) == 1 + len(OTHERS)
    for name in ("binary", "with_flips"):
        monkeypatch.setattr(f"sottovoce.server.quantile.plan.{name}", lambda _: SILENT)
    monkeypatch.setattr("sottovoce.server.quantile.plan.rate_of", lambda channel: 0.9)
    assert SILENT.epsilon == 0.0
    silent = transcript(LOW, method)
    assert all(transcript(other, method) == silent != spoken for other in OTHERS.values())
