"""Every kind of public result, pickled, copied, stored and read back: it is what it was, and holds no record."""

import copy
import gc
import json
import pickle  # noqa: TID251 - results may be pickled
from collections.abc import Callable
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
    "quantiles": lambda: sv.federated_quantiles(COLUMNS, [0.4, 0.6], 4.0, randomness=dice(5)),
    "difference": lambda: sv.quantile_difference(COLUMNS, OTHER, 0.5, 2.0, randomness=dice(6)),
    "regression": regression,
    "integrated": integrated,
    "sensitivity": lambda: integrated().sensitivity(),
    "threshold": lambda: threshold(**GRID),
    "pooled-threshold": lambda: threshold(mechanism="local", bins=8, **GRID),
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
