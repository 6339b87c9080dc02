"""No text, copy, pickle, warning or error ever shows a record of a regression."""

import copy
import importlib
import json
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from sottovoce.client.reading.design_matrix import read, read_features
from sottovoce.client.reading.matrix import open_matrix
from sottovoce.client.reading.reader import open_column
from sottovoce.client.reading.regression_files import read_regression_files
from sottovoce.client.regression.rows import Rows
from sottovoce.core.errors import BadInput

SECRET = 123456.789012
BOUNDS = (0.0, 200000.0)
SCALED = SECRET / 100000.0 - 1.0
SHOWN = ("123456", "123,456", "123457", "123,457", "1.2345", "1.2346", "1.235e", "0.23456", "0.2346", "0.235")
pickled: Callable[[object], bytes] = importlib.import_module("pickle").dumps


def hidden(text: object) -> None:
    shown = str(text)
    assert not [form for form in SHOWN if re.search(rf"(?<![\d.]){re.escape(form)}", shown)], shown[:2000]


def table(n: int = 6) -> Any:
    values = np.full((n, 2), SECRET)
    values[0, 0], values[1, 1] = 5.0, 7.0
    return values


def rows() -> Rows:
    return read(table(), np.full(6, SECRET), BOUNDS).rows


HOLDERS: dict[str, Callable[[], Any]] = {
    "rows": rows,
    "read rows": lambda: read(table(), np.full(6, SECRET), BOUNDS),
    "matrix": lambda: open_matrix(table()),
    "columns": lambda: open_matrix({"a": [SECRET], "b": [SECRET]}),
    "column": lambda: open_column([SECRET], "y"),
}


def test_the_check_has_power() -> None:
    for text in (SECRET, SCALED, table(), rows().features(), [f"{SECRET:.6g}"], f"{SECRET:,.0f}", f"{SCALED:.3g}"):
        with pytest.raises(AssertionError):
            hidden(text)


@pytest.mark.parametrize("make", HOLDERS.values(), ids=HOLDERS)
def test_text(make: Callable[[], Any]) -> None:
    holder = make()
    for text in (repr(holder), str(holder), f"{holder}", ascii([holder])):
        hidden(text)


@pytest.mark.parametrize("name", ["rows", "read rows"])
def test_no_pickle_no_deep_copy_no_other_encoding(name: str) -> None:
    holder = HOLDERS[name]()
    for duplicate in (pickled, copy.deepcopy, json.dumps, msgspec.json.encode, msgspec.msgpack.encode):
        with pytest.raises(TypeError) as caught:
            duplicate(holder)
        hidden("".join(traceback.format_exception(caught.value)))


GOOD = [[0.1, 0.2], [0.3, 0.1], [0.2, 0.7]]
BAD: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "outside": (table(), np.zeros(6), {"bounds": (0, 10)}),
    "outside [-1, 1]": (table(), np.zeros(6), {}),
    "NaN": ([[SECRET, np.nan], [SECRET, 1.0]], [1, 2], {"bounds": BOUNDS}),
    "infinity": ([[SECRET, np.inf], [SECRET, 1.0]], [1, 2], {"bounds": BOUNDS}),
    "text": ([[SECRET, f"{SECRET} EUR"], [SECRET, 1.0]], [1, 2], {"bounds": BOUNDS}),
    "all text": (np.full((2, 2), f"{SECRET}"), [1, 2], {"bounds": BOUNDS}),
    "objects": ([[SECRET, {"a": SECRET}]], [1], {"bounds": BOUNDS}),
    "complex": (table() + 1j, np.zeros(6), {"bounds": BOUNDS}),
    "ragged": ([[SECRET, SECRET], [SECRET]], [1, 2], {"bounds": BOUNDS}),
    "one dimension": ([SECRET, SECRET], [1, 2], {"bounds": BOUNDS}),
    "constant": (np.full((3, 1), SECRET), [1, 2, 3], {"bounds": BOUNDS}),
    "collinear": ({"a": [SECRET, 1, 2], "b": [2 * SECRET, 2, 4]}, [1, 2, 3], {"bounds": (0, 300000)}),
    "too long": (np.array([[2**53 + 1], [123456_000000_000001]]), [1, 2], {"bounds": BOUNDS}),
    "arrow text": (pa.table({"a": [f"{SECRET}", "x"]}), [1, 2], {"bounds": BOUNDS}),
    "NaN response": (GOOD, [SECRET, np.nan, SECRET], {}),
    "text response": (GOOD, [SECRET, f"{SECRET}", SECRET], {}),
    "wide response": (GOOD, np.full((3, 2), SECRET), {}),
    "short response": (GOOD, [SECRET], {}),
    "ragged response": (GOOD, [[SECRET], [SECRET, SECRET]], {}),
    "other columns": ({"a": [SECRET], "b": [SECRET]}, [1], {"names": ("b", "a"), "p": 2}),
}


@pytest.mark.parametrize(("given", "y", "options"), BAD.values(), ids=BAD)
def test_refusals_do_not_show_what_they_refuse(
    given: Any, y: Any, options: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput) as caught:
        read(given, y, **options)
    for text in ("".join(traceback.format_exception(caught.value)), *capfd.readouterr()):
        hidden(text)


def test_refused_predictions_do_not_show_their_rows() -> None:
    for given in ([[SECRET, np.nan]], [[SECRET]], [SECRET], [[SECRET, f"{SECRET}"]]):
        with pytest.raises(BadInput) as caught:
            read_features(given, None, 2)
        hidden("".join(traceback.format_exception(caught.value)))


FILES = {
    "text": f"wait,miles\n{SECRET},{SECRET}\n{SECRET},{SECRET} EUR\n",
    "text response": f"wait,miles\n{SECRET},{SECRET}\n{SECRET} EUR,{SECRET}\n",
    "ragged": f"wait,miles\n{SECRET},1\n{SECRET},2,{SECRET}\n",
    "missing": f"wait,miles\n{SECRET},{SECRET}\n{SECRET},\n",
    "outside": f"wait,miles\n{SECRET},{SECRET}\n{SECRET},1\n",
    "constant": f"wait,miles\n1,{SECRET}\n2,{SECRET}\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_refused_files_do_not_show_their_rows(text: str, tmp_path: Path) -> None:
    path = tmp_path / "waits.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_regression_files(path, "wait", ["miles"], bounds=BOUNDS if "EUR" in text else (0, 10))
    hidden("".join(traceback.format_exception(caught.value)))


def test_a_warning_does_not_show_the_responses() -> None:
    with pytest.warns(UserWarning, match="A column-vector y") as heard:
        read(GOOD, [[SECRET], [1.0], [2.0]])
    hidden(heard[0].message)
