"""A regression over HTTP: devices in Python and JavaScript answer with rows, the collector is killed and goes on."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from tests.collector.test_service import Running

from sottovoce.client.device import Device, make_report
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import identity, read_card
from sottovoce.sim import dice

STUDY = """
name = "waits"
people = 300
[regression]
response = "wait"
tau = 0.5
epsilon = 4.0
density = 0.08
size = 20.0
[regression.features]
age = [18, 90]
distance = [0, 30]
[rounds]
grace = 0.0
"""
SCRIPT = """
const [script, url, kept] = process.argv.slice(1);
const { answer } = await import(script);
const store = { getItem: (key) => store[key] ?? null, setItem: (key, value) => { store[key] = value; } };
const row = { wait: 30, age: 44, distance: 99 };
const first = await answer(url, row, { cap: 4, store });
const again = await answer(url, { wait: 1, age: 1, distance: 1 }, { cap: 4, store });
const nothing = { getItem: () => null, setItem() {} };
const dear = await answer(url, row, { cap: 3.9, store: nothing }).catch((error) => error.message);
const same = Buffer.compare(first.body, again.body) === 0;
console.log(JSON.stringify([first.accepted, again.accepted, same, dear, first.body.length]));
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    collector = Running(tmp_path)
    collector.study.write_text(STUDY)
    collector.start()
    yield collector
    if collector.process is not None and collector.process.poll() is None:
        collector.stop()


def test_devices_answer_a_regression_with_rows(running: Running, tmp_path: Path) -> None:
    device = Device(tmp_path / "device", cap=4.0)
    first = device.answer(running.url, {"wait": 30, "age": 44, "distance": 7.5})
    assert first.accepted
    assert device.answer(running.url, {"wait": 1, "age": 1, "distance": 1}) == first
    assert "wait" not in repr(first)
    with pytest.raises(BadInput, match="answered with a row"):
        Device(tmp_path / "other", cap=4.0).answer(running.url, 30.0)
    with pytest.raises(BadInput, match="more epsilon than this device allows"):
        Device(tmp_path / "other", cap=3.9).answer(running.url, {"wait": 30, "age": 44, "distance": 7.5})
    assert not list((tmp_path / "other").iterdir())
    assert running.get(f"{running.named}/estimate")["reports"] == 1


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_a_device_in_javascript_answers_a_regression_with_a_row(running: Running) -> None:
    script = str(Path(str(files("sottovoce.collector"))) / "web" / "device.js")
    words = ["node", "--no-warnings", "--input-type=module", "-e", SCRIPT, script, running.url + running.named]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    kept, again, same, dear, size = json.loads(done.stdout)
    assert (kept, again, same, size) == (True, True, True, 41)
    assert "more epsilon than this device allows" in dear
    assert running.get(f"{running.named}/estimate")["reports"] == 1


def test_a_regression_that_is_killed_goes_on_to_its_end(running: Running) -> None:
    text = running.text(f"{running.named}/card")
    card, study, draw = read_card(text), identity(text), dice(3).generator()
    sent = rounds = 0
    while (query := running.get(f"{running.named}/query")).get("needs"):
        need = query["needs"][0]
        rows = [
            {"wait": float(round(10 + 0.2 * age + draw.exponential(6))), "age": age, "distance": 3.0}
            for age in draw.integers(18, 91, need).tolist()
        ]
        body = study + b"".join(make_report(card, study, query, row)[16:] for row in rows)
        assert running.post(body) == (200, {"accepted": need, "refused": []})
        sent, rounds = sent + need, rounds + 1
        if rounds == 5:
            before = running.get(f"{running.named}/estimate")
            running.stop()
            running.start()
            assert running.get(f"{running.named}/estimate") == before
            assert running.post(body) == (200, {"accepted": need, "refused": []})  # known, and not counted again
    found = running.get(f"{running.named}/estimate")
    assert (found["over"], found["reports"], found["rounds"]) == (True, 300, rounds)
    assert sent == 300
    names = [each["name"] for each in found["levels"][0]["coefficients"]]
    assert names == ["intercept", "age", "distance"]
    running.stop(15)
    words = [sys.executable, "-m", "sottovoce", "replay", str(running.study), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["reports"] == 300
