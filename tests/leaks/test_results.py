"""Every kind of public result, pickled, copied, stored and read back: it is what it was, and holds no record."""

import copy
import gc
import json
import math
import pickle  # noqa: TID251 - results may be pickled
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.errors import BadInput
from sottovoce.server.load import KINDS
from sottovoce.server.stored import StoredResult
from sottovoce.sim.randomness import dice

# no two records share their bytes, and none is a number that anything else would come to
SOURCE = dice(11).generator()
COLUMNS = {name: SOURCE.gamma(2.0, 10.0, n) for name, n in (("north", 24_000), ("south", 20_000))}
OTHER = {"west": SOURCE.gamma(2.0, 11.0, 20_000)}
FEATURES = SOURCE.uniform(-1.0, 1.0, (3_000, 2))
RESPONSE = 1.0 + FEATURES[:, 0] + SOURCE.logistic(0.0, 0.5, 3_000)
SCORES = {name: SOURCE.exponential(1.0, 4_000) for name in ("a", "b", "c")}
HELD = [*COLUMNS.values(), *OTHER.values(), FEATURES.ravel(), RESPONSE, *SCORES.values()]
RECORDS = {value.tobytes() for column in HELD for value in column}
TEXTS = {repr(float(value)) for column in HELD for value in column}


def quantile(**options: Any) -> Any:
    return sv.federated_quantile(COLUMNS, 0.5, 2.0, randomness=dice(1), **options)


def regression() -> Any:
    model = sv.PrivateQuantileRegressor(
        epsilon=4.0, bounds=(-1, 1), density=0.5, size=1.5, start=1.0, randomness=dice(2)
    )
    return model.fit(FEATURES, RESPONSE).result_


def integrated() -> Any:
    sites = {**COLUMNS, **OTHER}
    return sv.integrated_quantile("west", sites, 0.5, 2.0, randomness=dice(3))


def threshold(**options: Any) -> Any:
    return sv.conformal_threshold(SCORES, 0.1, randomness=dice(4), **options)


GRID: dict[str, Any] = {"epsilon": 2.0, "maximum": 9.0}
MAKERS: dict[str, Callable[[], Any]] = {
    "quantile": quantile,
    "quantile-recursion": lambda: quantile(method="self-normalised", norm="sup"),
    "quantile:certified": lambda: quantile(method="certified"),
    "quantile:sequence": lambda: quantile(method="sequence"),
    "quantile:censored": lambda: sv.federated_quantile(COLUMNS, 0.5, 4.0, censored="<8", randomness=dice(1)),
    "quantiles": lambda: sv.federated_quantiles(COLUMNS, [0.4, 0.6], 4.0, randomness=dice(5)),
    "difference": lambda: sv.quantile_difference(COLUMNS, OTHER, 0.5, 2.0, randomness=dice(6)),
    "group-quantiles": lambda: sv.group_quantiles({**COLUMNS, **OTHER}, 0.5, 2.0, randomness=dice(9)),
    "group-quantiles:by-group": lambda: sv.group_quantiles(
        COLUMNS,
        0.5,
        2.0,
        groups={name: np.arange(len(column)) % 5 for name, column in COLUMNS.items()},
        shrinkage="each",
        randomness=dice(10),
    ),
    "shortfall": lambda: sv.expected_shortfall(COLUMNS, 0.8, 4.0, bounds=(0, 120), randomness=dice(8)),
    "regression": regression,
    "integrated": integrated,
    "sensitivity": lambda: integrated().sensitivity(),
    "threshold": lambda: threshold(**GRID),
    "pooled-threshold": lambda: threshold(mechanism="local", bins=8, **GRID),
    "thresholds": lambda: sv.conformal_thresholds(SCORES, 0.2, **GRID, randomness=dice(9)),
    "pooled-threshold:counts": lambda: threshold(mechanism="counts", **GRID),
    "coverage-report": lambda: sv.coverage_report(threshold(**GRID), SCORES, epsilon=1.0, randomness=dice(7)),
}


def test_every_kind_of_result_is_here() -> None:
    assert {name.removesuffix("-recursion").partition(":")[0] for name in MAKERS} == set(KINDS)


@pytest.fixture(scope="module", params=MAKERS)
def result(request: pytest.FixtureRequest) -> Any:
    found = MAKERS[request.param]()
    assert isinstance(found, StoredResult)
    return found


def words(data: bytes) -> set[bytes]:
    """Return every run of eight bytes, wherever it begins."""
    return {data[i : i + 8] for i in range(len(data) - 7)}


def test_the_check_has_power() -> None:
    column = COLUMNS["north"]
    assert words(b"x" + column[:3].tobytes()) & RECORDS
    assert set(json.loads(json.dumps([repr(float(column[0]))]))) & TEXTS


def reachable(start: Any) -> list[Any]:
    """Return all objects that can be reached from one, leaving out code."""
    seen: dict[int, Any] = {}
    waiting = [start]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | ModuleType | FunctionType):
            continue
        seen[id(item)] = item
        waiting += gc.get_referents(item)
    return list(seen.values())


def test_no_record_can_be_reached(result: Any) -> None:
    found = reachable(result)
    for array in (item for item in found if isinstance(item, np.ndarray)):
        assert not any(np.shares_memory(array, column) for column in HELD)
        assert not {value.tobytes() for value in array.ravel()[:5_000] if array.dtype == np.float64} & RECORDS
    assert not {repr(item) for item in found if type(item) is float} & TEXTS


def test_no_record_is_pickled_or_stored(result: Any, tmp_path: Path) -> None:
    assert not words(pickle.dumps(result, protocol=5)) & {value[::-1] for value in RECORDS}
    assert not words(pickle.dumps(result, protocol=5)) & RECORDS
    text = result.save(tmp_path / "result.json").read_text(encoding="utf-8")
    numbers: set[str] = set()
    json.loads(text, parse_float=lambda number: numbers.add(repr(float(number))))
    assert not numbers & TEXTS


class Checked(HTMLParser):
    """Read HTML, and note what is open, what is fetched and what would run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: dict[str, list[dict[str, str | None]]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.setdefault(tag, []).append(dict(attrs))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(text: str) -> Checked:
    """Return what stands in HTML, having seen that it is whole, runs nothing and asks for nothing."""
    found = Checked()
    found.feed(text)
    found.close()
    assert not found.open
    assert not {"script", "link", "iframe", "object", "embed", "a", "base", "form"} & found.seen.keys()
    for each in (attributes for tags in found.seen.values() for attributes in tags):
        assert not any(name.startswith("on") for name in each)
        assert (each.get("src") or "data:").startswith("data:image/png;base64," if "src" in each else "data:")
    assert not re.search(r"https?://|@import|url\(", text)
    return found


def numbers_in(text: str) -> set[str]:
    return {repr(float(word)) for word in re.findall(r"-?\d+\.\d{4,}(?:e-?\d+)?", text)}


def test_one_line_tells_estimate_interval_and_privacy(result: Any) -> None:
    line = repr(result)
    assert line.startswith("<")
    assert line.endswith(">")
    assert "\n" not in line
    assert len(line) < 300
    assert not numbers_in(line) & TEXTS
    if result.kind == "regression":
        assert re.search(r"x0 -?\d[\d.]* \[-?\d[\d.]*, -?\d[\d.]*\]", line)
    elif result.kind not in ("threshold", "pooled-threshold", "thresholds"):
        assert re.search(r"-?\d[\d,.]* \[-?\d[\d,.]*, -?\d[\d,.]*\]|\[-?[\d.]+, -?[\d.]+\] at", line)
        assert "95%" in line
    if result.kind != "sensitivity":
        assert "not private" in line  # seeded dice


def test_a_notebook_shows_a_whole_table_that_runs_nothing(result: Any) -> None:
    text = result._repr_html_()
    assert "table" in checked(text).seen
    assert not numbers_in(text) & TEXTS


def test_a_page_holds_all_that_a_board_asks_for(result: Any, tmp_path: Path) -> None:
    path = result.report(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    seen = checked(text).seen
    assert text.startswith("<!DOCTYPE html>")
    assert seen["html"] == [{"lang": "en"}]
    assert "default-src 'none'" in str(seen["meta"])
    assert "width=device-width" in str(seen["meta"])
    assert len(seen["title"]) == len(seen["h1"]) == 1
    parts = re.findall("<h2>(.*?)</h2>", text)
    wanted = ["Question", "Answer", "Picture", "Privacy statement", "Assumptions", "Limits: what is not protected"]
    assert [part for part in parts if part != "Table"] == [*wanted, "Settings"]
    assert "?</p>" in text or "? " in text.partition("<h2>Question")[2].partition("</section>")[0]
    assert "Not private" in text  # seeded dice
    assert ("img" in seen) == (result.kind != "pooled-threshold")
    assert len(seen.get("img", [{"alt": "x"}])[0]["alt"] or "") > 0
    assert f"Sottovoce {sv.__version__} on 2" in text
    assert not numbers_in(text) & TEXTS


def test_without_matplotlib_the_page_says_so(result: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*(name for name in sys.modules if name.startswith("matplotlib")), "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    text = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "No picture: " in text
    assert "img" not in checked(text).seen


WRONG: list[Any] = [math.nan, math.inf, -math.inf, None, "soon", b"1", [0.9], np.array([0.9, 0.95]), {}, object()]


def test_wrong_arguments_are_refused_in_one_sentence(result: Any, tmp_path: Path) -> None:
    asked = [
        *((result.interval_at, wrong) for wrong in [*WRONG, True, 0, 1, 95, -0.5] if result.kind != "sensitivity"),
        *((result.interval_at, wrong) for wrong in [math.nan, None, "soon", [1], -1] if result.kind == "sensitivity"),
        *((result.test, wrong) for wrong in [*WRONG, True] if hasattr(result, "test")),
        *((result.at_least, wrong) for wrong in [math.nan, None, "soon", [1], True] if hasattr(result, "at_least")),
    ] if hasattr(result, "interval_at") else []  # fmt: skip
    asked += [(result.plot, wrong) for wrong in (None, 3, "", "page.html", tmp_path, "absent/a.png")]
    asked += [(result.report, wrong) for wrong in (None, 3, "", "page.png", tmp_path, "absent/a.html", {"a": [1.0]})]
    asked += [(result.save, wrong) for wrong in (tmp_path, "absent/a.json")]
    for method, wrong in asked:
        with pytest.raises(BadInput) as refusal:
            method(wrong)
        assert str(refusal.value).count("\n") == 0
    if hasattr(result, "test"):
        for side in (None, "both", 1, ["less"]):
            with pytest.raises(BadInput, match="alternative"):
                result.test(1.0, side)


def same(one: Any, other: Any) -> None:
    assert type(other) is type(one)
    assert other.summary() == one.summary()
    assert other.to_dict() == one.to_dict()
    for name in ("interval", "intervals", "estimate", "value"):
        if hasattr(one, name) and not callable(getattr(one, name)):
            assert getattr(other, name) == getattr(one, name), name


def test_it_comes_back_as_it_was(result: Any, tmp_path: Path) -> None:
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):  # noqa: S301
        same(result, again)
    stored = sv.load(result.save(tmp_path / "result.json"))
    assert stored.to_dict() == result.to_dict()
    same(stored, type(result).from_dict(json.loads(json.dumps(result.to_dict()))))
    if hasattr(result, "test") and hasattr(result, "interval_at"):
        assert stored.interval_at(0.9) == result.interval_at(0.9)
        assert stored.test(17.0).pvalue == result.test(17.0).pvalue


def test_what_is_not_stored_is_refused(result: Any, tmp_path: Path) -> None:
    values = result.to_dict()
    state = values["stored"]
    wrong: list[Any] = [
        None,
        [],
        {},
        {"stored": None},
        {"stored": {**state, "kind": "poem"}},
        {"stored": {**state, "format": 99}},
        {"stored": {**state, "state": None}},
        {"stored": {**state, "state": {"plan": 1}}},
    ]
    for bad in wrong:
        path = tmp_path / "bad.json"
        path.write_text(json.dumps(bad), encoding="utf-8")
        with pytest.raises(BadInput):
            sv.load(path)
    for path in (tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(BadInput, match="cannot be read"):
            sv.load(path)
