"""Thresholds and reports can be kept: pickled, copied, written and read back as what they were, without a score."""

import copy
import dataclasses
import importlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.conformal.report import coverage_report
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.pooled_result import PooledThreshold
from sottovoce.server.conformal.report import CoverageReport
from sottovoce.server.conformal.result import ConformalThreshold
from sottovoce.server.load import from_dict, load

pickle: Any = importlib.import_module("pickle")
SITES = {f"site {i}": np.abs(sv.sim.dice(i).generator().standard_normal(900 + 50 * i)) for i in range(4)}
PRIVATE: dict[str, Any] = {"epsilon": 3.0, "maximum": 2.5}
MADE: dict[str, dict[str, Any]] = {
    "open": {},
    "three": {"statistics": 3},
    "exact": {"exact": True},
    "conditional": {"guarantee": "training-conditional"},
    "sparse-vector": PRIVATE,
    "mixed": {"epsilon": {**dict.fromkeys(SITES, 2.0), "site 3": math.inf}, "maximum": 4.0},
    **{name: {**PRIVATE, "mechanism": name} for name in ("exponential", "local", "aggregate", "counts")},
}


def threshold(kind: str) -> Threshold:
    return sv.conformal_threshold(SITES, **MADE[kind], randomness=sv.sim.dice(3))


@pytest.mark.parametrize("kind", MADE)
def test_a_threshold_reads_back_as_what_it_was(kind: str, tmp_path: Path) -> None:
    found = threshold(kind)
    again = load(found.save(tmp_path / "threshold.json"))
    assert type(again) is type(found)
    assert isinstance(again, PooledThreshold if kind in ("local", "aggregate", "counts") else ConformalThreshold)
    assert again == found
    assert again.hints == ()
    plain = dataclasses.replace(found, hints=())  # what was said of the scores stays where they are
    assert again.summary() == plain.summary()
    assert again.to_dict() == found.to_dict()
    assert (again.coverage, again.confidence, again.infinite_chance) == (
        found.coverage,
        found.confidence,
        found.infinite_chance,
    )
    if isinstance(found, ConformalThreshold) and isinstance(again, ConformalThreshold):
        assert again.at_least(0.88) == found.at_least(0.88)
        assert again.sd == again.spread == found.sd
        assert again.paper == found.paper
    for other in (pickle.loads(pickle.dumps(found)), copy.copy(found), copy.deepcopy(found)):
        assert other == found
        assert other.summary() == plain.summary()


def test_the_papers_mechanism_reads_back_too() -> None:
    even = {name: values[:900] for name, values in SITES.items()}
    found = sv.conformal_threshold(even, epsilon=8.0, maximum=4.0, mechanism="paper")
    again = ConformalThreshold.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert (again, again.summary()) == (found, found.summary())


@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize("made", ["number", "open", "sparse-vector"])
def test_a_report_reads_back_as_what_it_was(made: str, epsilon: float | None, tmp_path: Path) -> None:
    judged: dict[str, Any] = {"alpha": 0.1} if made == "number" else {}
    value: Any = 1.6 if made == "number" else threshold(made)
    found = coverage_report(value, SITES, epsilon=epsilon, **judged)
    again = load(found.save(tmp_path / "report.json"))
    assert isinstance(again, CoverageReport)
    assert (again, again.summary(), again.to_dict()) == (found, found.summary(), found.to_dict())
    assert again.worst == found.worst
    assert pickle.loads(pickle.dumps(found)) == found == copy.deepcopy(found)


def test_a_stored_threshold_reports_on_scores() -> None:
    found = threshold("open")
    again = from_dict(found.to_dict())
    assert again.coverage_by_site(SITES) == found.coverage_by_site(SITES) == coverage_report(again, SITES)


def test_where_scores_cannot_be_a_threshold_says_who_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    found = threshold("open")
    monkeypatch.setattr(Threshold, "reporter", None)  # as on a server, which has no api
    with pytest.raises(BadInput, match=r"scores, which are not here; call sv\.coverage_report"):
        found.coverage_by_site(SITES)


@pytest.mark.parametrize("kind", ["open", "local", "report"])
def test_what_is_no_whole_result_is_refused(kind: str) -> None:
    found = coverage_report(1.0, SITES, alpha=0.1) if kind == "report" else threshold(kind)
    values = json.loads(json.dumps(found.to_dict()))
    state = values["stored"]["state"]

    def refused(changed: Any) -> None:
        stored = {**values["stored"], "state": changed}
        with pytest.raises(BadInput, match=r"^this is not a .*stored"):
            from_dict({**values, "stored": stored})

    refused(None)
    refused([])
    refused({"value": 1.0})
    if kind == "report":
        refused({**state, "sites": []})
        refused({**state, "weights": {"nobody": 1.0}})
        refused({key: item for key, item in state.items() if key != "mixture"})
        return
    refused(state[:1])
    common = state[0]
    refused([[*common[:2], common[2][:-1], *common[3:]], *state[1:]])  # a name less
    refused([["1.5", *common[1:]], *state[1:]])


def test_a_budget_that_protects_nobody_is_refused() -> None:
    for mechanism in ("auto", "sparse-vector", "counts", "exponential", "local", "aggregate"):
        for budget in (100.5, 150.0, 999.0, 1e300, -1.0, 0.0):
            with pytest.raises(BadInput, match="epsilon must be positive and at most 100, not"):
                sv.conformal_threshold(SITES, epsilon=budget, maximum=4.0, mechanism=mechanism)
    with pytest.raises(BadInput, match="epsilon of site 'site 2' must be positive and at most 100"):
        sv.conformal_threshold(SITES, epsilon={**dict.fromkeys(SITES, 1.0), "site 2": 150.0}, maximum=4.0)
    found = sv.conformal_threshold(SITES, epsilon=100.0, maximum=4.0)
    assert found.epsilon is not None
    assert max(found.epsilon.values()) <= 100.0


def modules_after(call: str) -> int:
    script = f"import sys, sottovoce as sv; {call}; print(len([m for m in sys.modules if m.startswith('sottovoce')]))"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ}, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_a_threshold_loads_few_modules() -> None:
    sites = "[[i / 9 for i in range(50)], [i / 8 for i in range(60)]]"
    assert modules_after(f"sv.conformal_threshold({sites}, .1)") <= 76
    assert modules_after(f"sv.conformal_threshold({sites}, .1, epsilon=9., maximum=9.)") <= 77
