"""No text, copy, pickle, log, warning or error ever shows a record."""

import copy
import dataclasses
import importlib
import json
import logging
import re
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.api.quantile.planning import Prepared, prepare
from sottovoce.client.quantile.site import Rest, Site
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.local.quantile.source import Source
from sottovoce.protocol.messages import Query, Study
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.quantile.result import QuantileResult

SECRET = 123456.789012
SHOWN = (
    "123456",
    "123,456",
    "123457",
    "123,457",
    "1.23457e+05",
    "1.2346e+05",
    "1.235e+05",
    "1.23456",
    "123_456",
    float.hex(SECRET),
)
pickled: Callable[[object], bytes] = importlib.import_module("pickle").dumps


def column(n: int = 1000, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return normal records with secrets among them, far from any quantile that is asked."""
    values = sv.sim.dice(seed).generator().standard_normal(n)
    values[::100] = SECRET
    return values


def hidden(text: object) -> None:
    shown = str(text)
    # not inside another number: among thousands of digits any six will come up
    assert not [form for form in SHOWN if re.search(rf"(?<![\d.]){re.escape(form)}", shown)], shown[:2000]
    assert not [value for value in [*COLUMN.tolist(), *OTHER.tolist()] if repr(value) in shown], shown[:2000]


COLUMN = column()
OTHER = column(seed=2)


def table() -> SiteTable:
    return read_sites({"north": COLUMN, "south": OTHER[::2].copy()})


def result(method: str = "staged") -> QuantileResult:
    return sv.federated_quantile(
        {"north": COLUMN, "south": OTHER},
        0.5,
        3.0,
        method=method,
        scale=1.0,
        bounds=(-9, 9),
        randomness=sv.sim.dice(1),
    )


HOLDERS: dict[str, Callable[[], object]] = {
    "records": lambda: table().records[0],
    "table": table,
    "site": lambda: Site(table().records[0], Study(0.5, 1.0)),
    "rest": lambda: Site(table().records[0], Study(0.5, 1.0)).hand_over(1),
    "source": lambda: Source(COLUMN, binary(1.0)),
    "prepared": lambda: prepare(table(), 0.5, 3.0),
}
RESULTS: dict[str, Callable[[], object]] = {
    "plan": lambda: prepare(table(), 0.5, 3.0).plan,
    "result": result,
    "regression": lambda: result("regression"),
    "self-normalised": lambda: result("self-normalised"),
}
shown = pytest.mark.parametrize("make", [*HOLDERS.values(), *RESULTS.values()], ids=[*HOLDERS, *RESULTS])
every = pytest.mark.parametrize("make", HOLDERS.values(), ids=HOLDERS)


def test_the_check_has_power() -> None:
    for text in (COLUMN[:1], [SECRET], f"{SECRET:.6g}", f"{SECRET:,.0f}", f"{SECRET:.3e}", COLUMN[1:2].tolist()):
        with pytest.raises(AssertionError):
            hidden(text)


@shown
def test_text(make: Callable[[], object]) -> None:
    holder = make()
    for text in (repr(holder), str(holder), f"{holder}", f"{holder!r}", "%s" % (holder,), ascii([holder])):  # noqa: UP031
        hidden(text)


@shown
def test_insides_as_text(make: Callable[[], object]) -> None:
    holder = make()
    if isinstance(holder, Records | Site | Rest | Source):
        with pytest.raises(TypeError):
            vars(holder)
    else:
        hidden(vars(holder))
    if isinstance(holder, Prepared | SiteTable | QuantileResult):
        for field in dataclasses.fields(holder):
            hidden(getattr(holder, field.name))


@every
def test_no_pickle_and_no_deep_copy(make: Callable[[], object]) -> None:
    holder = make()
    for duplicate in (pickled, copy.deepcopy):
        with pytest.raises(TypeError) as caught:
            duplicate(holder)
        hidden("".join(traceback.format_exception(caught.value)))


@every
def test_no_other_encoding(make: Callable[[], object]) -> None:
    holder = make()
    encoders: list[Callable[[Any], Any]] = [
        json.dumps,
        msgspec.json.encode,
        msgspec.msgpack.encode,
        msgspec.to_builtins,
    ]
    if dataclasses.is_dataclass(holder):
        encoders.append(dataclasses.asdict)
    for encode in encoders:
        with pytest.raises(TypeError) as caught:
            encode(holder)
        hidden(caught.value)


def test_a_shallow_copy_of_a_site_shares_its_ledger() -> None:
    site = Site(Records(np.arange(10.0)), Study(0.5, 1.0))
    twin = copy.copy(site)
    site.tally(Query(1, (0.0,), (10,)))
    assert twin.spent == 10


@pytest.mark.parametrize("method", ["staged", "regression", "self-normalised"])
def test_a_finished_study_shows_nothing_anywhere(
    method: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, logger="numba")  # the compiler's own diary runs to megabytes
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        done = result(method)
        shown = [
            done.summary(),
            json.dumps(done.to_dict()),
            str(dict(done.trajectory)),
            str(done.interval),
            done.promise,
        ]
    for text in (*shown, caplog.text, *capfd.readouterr(), *(str(warning.message) for warning in heard)):
        hidden(text)


BAD: dict[str, Any] = {
    "NaN": [SECRET, float("nan"), 1.0],
    "infinity": [SECRET, float("inf"), 1.0],
    "text": [SECRET, f"{SECRET} EUR", 1.0],
    "all text": [f"{SECRET}", f"{SECRET} EUR"],
    "one record": [SECRET],
    "all equal": [SECRET, SECRET, SECRET],
    "two dimensions": np.full((2, 2), SECRET),
    "complex": np.array([SECRET + 1j, 1.0]),
    "objects": [SECRET, object()],
    "nested": [[SECRET], [SECRET]],
    "too long": [2**53 + 1, 123456_000000_000001],
    "arrow text": pa.array([f"{SECRET}", "x"]),
    "truth": [SECRET, True],
}


@pytest.mark.parametrize("values", BAD.values(), ids=BAD)
def test_refusals_do_not_show_what_they_refuse(
    values: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(BadInput) as caught:
        sv.federated_quantile({"north": values}, 0.5, 1.0)
    for text in ("".join(traceback.format_exception(caught.value)), caplog.text, *capfd.readouterr()):
        hidden(text)


def test_the_gate_and_the_parameters_do_not_show_records() -> None:
    few = {"north": COLUMN[:50].copy(), "south": COLUMN[:50].copy()}
    for options in ({}, {"shares": {"north": 1.0}}, {"bounds": (2, 1)}, {"method": "none"}, {"resolution": -1}):
        with pytest.raises(BadInput) as caught:
            sv.federated_quantile(few, 0.5, 0.5, **options)
        hidden("".join(traceback.format_exception(caught.value)))


FILES = {
    "text": f"wait,site\n{SECRET},a\n{SECRET} EUR,a\n",
    "ragged": f"wait,site\n{SECRET},a\n{SECRET},a,{SECRET}\n",
    "missing": f"wait,site\n{SECRET},a\n,a\n",
    "equal": f"wait,site\n{SECRET},a\n{SECRET},a\n",
    "mixed": f"wait,site\n{SECRET},a\n2013-05-01,a\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_refused_files_do_not_show_their_rows(text: str, tmp_path: Path) -> None:
    path = tmp_path / "waits.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        sv.read_files(path, value="wait", site="site")
    hidden("".join(traceback.format_exception(caught.value)))


def test_refused_frames_do_not_show_their_rows() -> None:
    frame = pa.table({"wait": [SECRET, None, SECRET], "site": ["a", "a", "b"], "who": [f"{SECRET}", None, "x"]})
    for options in ({}, {"person": "who"}, {"missing": "drop"}, {"value": "nothing"}):
        with pytest.raises(BadInput) as caught:
            sv.read_frame(frame, **{"value": "wait", "site": "site", **options})  # type: ignore[arg-type]
        hidden("".join(traceback.format_exception(caught.value)))


def test_refused_queries_do_not_show_records() -> None:
    site = Site(table().records[0], Study(0.5, 1.0))
    for query in (Query(1, (0.0,), (10**6,)), Query(1, (float("nan"),), (1,)), Query(1, (0.0, 1.0), (1,))):
        with pytest.raises(BadInput) as caught:
            site.answer(query)
        hidden("".join(traceback.format_exception(caught.value)))
