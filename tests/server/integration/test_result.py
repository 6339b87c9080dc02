"""Results of data integration are stored and read back: the same summary, intervals, methods and curves; no hint."""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.errors import BadInput
from sottovoce.server.integration.method import IntegrationMethod
from sottovoce.server.integration.result import IntegratedResult, Sensitivity
from sottovoce.server.load import load
from sottovoce.server.method import converse

from .answers import Crowd, planned

TOLD = {
    "ours": sv.SiteSummary(17.0, 0.3, n=900),
    "north": sv.SiteSummary(16.9, 0.2, n=4_000),
    "vague": sv.SiteSummary(17.1, trusted=False),
}


def asked(method: str) -> IntegratedResult:
    plan = planned(method, bound={"north": 0.5, "open": math.inf, "told": 0.2} if method == "known-bound" else None)
    asks = IntegrationMethod(plan)
    return replace(asks.outcome(converse(asks, Crowd(plan))), hints=("many records are tied",))


def told() -> IntegratedResult:
    return sv.integrated_quantile("ours", TOLD, 0.5, None)


def through_json(result: Any) -> Any:
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


@pytest.mark.parametrize("method", ["valid", "conservative", "known-bound", "ivw", "target", "told"])
def test_a_result_reads_back_as_what_it_was(method: str, tmp_path: Path) -> None:
    done = told() if method == "told" else asked(method)
    for again in (
        IntegratedResult.from_dict(through_json(done)),
        load(done.save(tmp_path / "kept.json")),
        copy.deepcopy(done),
    ):
        assert again == done
        assert again.hints == ()
        assert again.to_dict() == done.to_dict()
        assert again.summary() == replace(done, hints=()).summary()
        assert (again.estimate, again.interval, again.weights) == (done.estimate, done.interval, done.weights)
        assert (again.promise, again.warnings, again.epsilon) == (done.promise, done.warnings, done.epsilon)
        if method == "valid":
            assert again.by_method("ivw") == done.by_method("ivw")
            assert (
                again.by_method("known-bound", bound=0.1).interval == done.by_method("known-bound", bound=0.1).interval
            )
        if len(done.known) > 1:
            assert str(again.sensitivity()) == str(done.sensitivity())
    assert "tied" not in json.dumps(done.to_dict()).replace('"tied"', "")


@pytest.mark.parametrize("bounds", [None, [0.5, 0.1, math.inf]])
def test_a_curve_reads_back_as_what_it_was(bounds: Any, tmp_path: Path) -> None:
    shown = asked("valid").sensitivity(bounds)
    for again in (
        Sensitivity.from_dict(through_json(shown)),
        load(shown.save(tmp_path / "kept.json")),
        copy.deepcopy(shown),
    ):
        assert again == shown
        for name, column in shown.columns.items():
            assert np.array_equal(again.columns[name], column)
        assert again.to_dict() == shown.to_dict()
        assert (again.interval_at(0.3), again.lost, again.refuted) == (
            shown.interval_at(0.3),
            shown.lost,
            shown.refuted,
        )
        assert str(again) == str(shown) == shown.table()
        assert "interval by assumed bound" in again.summary()


def test_one_kind_is_not_read_as_another() -> None:
    with pytest.raises(BadInput, match="not a stored integrated but another result"):
        IntegratedResult.from_dict(told().sensitivity().to_dict())


SPOILT: list[tuple[str, Any]] = [
    ("nothing is known", lambda state: state.__setitem__(1, [])),
    ("an unknown method", lambda state: state[0].__setitem__("method", "guess")),
    ("a level that there is not", lambda state: state[0].__setitem__("level", 2.0)),
    ("no bound for a source", lambda state: state[0].update(method="known-bound", bound={"elsewhere": 1.0})),
    ("a field more", lambda state: state.append("x")),
    ("a text for a number", lambda state: state[1][0].__setitem__("low", "17")),
    ("another unit", lambda state: state[4].__setitem__("kind", "weight")),
]


@pytest.mark.parametrize(("what", "spoil"), SPOILT, ids=[what for what, _ in SPOILT])
def test_what_no_result_says_is_refused(what: str, spoil: Any) -> None:
    values = through_json(told())
    spoil(values["stored"]["state"])
    with pytest.raises(BadInput):
        IntegratedResult.from_dict(values)
