"""The server side runs with every room gone that could hold a record or a seed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sottovoce"
GONE = ("client", "sim", "engine", "facade", "reproduce", "cli", "__main__.py")

SCRIPT = """
import importlib, math, pkgutil, sys
from statistics import NormalDist
import numpy as np
import sottovoce

seen = []
for found in pkgutil.walk_packages(sottovoce.__path__, "sottovoce."):
    importlib.import_module(found.name)
    seen.append(found.name)
for room in ("client", "sim", "engine", "facade", "reproduce", "cli"):
    try:
        importlib.import_module("sottovoce." + room)
    except ModuleNotFoundError:
        continue
    raise AssertionError(room + " is still there")

from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.asking import Crowd
from sottovoce.server.quantile.recursion.step_size import decay
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.server.quantile.staged import StagedStudy, talk
from sottovoce.server.quantile.recursion.study import SgdStudy
from sottovoce.inference import inversion

law, tau = NormalDist(20.0, 3.0), 0.7
channels = (binary(1.0), binary(2.0))
rates = np.array([rate_of(channel) for channel in channels])
crowd = Crowd(np.array([0.4, 0.6]), rates, np.array([40_000, 60_000]))
conversation = talk(StagedStudy(tau, crowd))
ask = next(conversation)
while True:
    above = np.array([1 - law.cdf(float(point)) for point in ask.points])
    said = (1 - rates[:, None]) / 2 + rates[:, None] * above
    try:
        ask = conversation.send(np.rint(ask.counts * said).astype(np.int64))
    except StopIteration as stop:
        local = stop.value
        break
found = inversion.invert(local.stages, local.centre, local.reach, 1.96)
truth = law.inv_cdf(tau)
assert found.low < truth < found.high, (found, truth)
assert abs(found.point - truth) < 0.05 and found.high - found.low < 0.5, found

half = np.full(2, 0.5)
study = SgdStudy(half, half, channels, np.array([300, 200]), elapsed("every:3", 300), 1.0, decay(rates))
state, word = sgd.init(study), 12345
for _ in range(len(study.elapsed)):
    letters = []
    for question in sgd.query(study, state):
        bits = []
        for _ in range(question.counts[0]):
            word = (1103515245 * word + 12345) % 2**31
            bits.append(word >> 30)
        letters.append(bytes(bits))
    state = sgd.step(study, state, letters)
estimate = sgd.estimate(study, state)
assert estimate.n == 500 and math.isfinite(estimate.low) and estimate.low < estimate.point < estimate.high, estimate

from sottovoce.server.regression.design import choose, omega, parse
from sottovoce.server.regression.decode import hear
from sottovoce.server.regression.dithered.state import init, look
from sottovoce.server.regression.dithered.fit import OnlineFit
from sottovoce.server.regression.dithered.step import learn
from sottovoce.server.regression.dithered.study import OnlineStudy
from sottovoce.server.regression.dithered.sums import TIGHT
from sottovoce.protocol.regression.blocks import tables_of

assert 0.9 < choose(0.5, 2, 1.0).channel.epsilon <= 1.0
channel = parse("cq:3,3", 0.5, 2, 4.0).channel  # one block that speaks of everything
moments = np.diag([1.0, 1 / 3, 1 / 3])
study = OnlineStudy(channel, omega(channel)[None], np.array([0.4]), 1.0, np.zeros((1, 3)), moments)
state, tables = init(study), tables_of(channel)
chosen, index, values, move = np.array([1, 2, 0]), np.zeros(3, dtype=np.int64), np.zeros((1, 3)), np.zeros(3)
for person in range(200):
    word = (1103515245 * word + 12345) % 2**31
    found = hear(
        tables.plan, tables.score, tables.read, tables.matrix, tables.radius, 0, chosen, (word >> 16) % channel.letters,
        index, values,
    )
    orders, sums = state.orders, state.sums
    learn(
        orders.gains, orders.needs, orders.limit, sums.counts, sums.vectors, sums.squares, TIGHT, np.uint64(1), person,
        found, index, values, study.start, state.points, move,
    )
    state = state._replace(people=person + 1)
    if state.people == state.until:
        state = look(study, state)
fit = OnlineFit(study, state)
assert fit.people == 200 and len(state.behind) == 5 and np.isfinite(fit.point).all() and fit.point.any(), fit.point
assert not [name for name in sys.modules if name.startswith(("sottovoce.client", "sottovoce.sim"))]
print(len(seen), "modules")
"""


def run(package: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=package.parent,
        # a fresh copy has no compiled kernels; interpreting them takes a second, compiling them ten
        env={**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    copy = tmp_path / "sottovoce"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name in GONE:
        assert (copy / name).exists(), name
        shutil.rmtree(copy / name) if (copy / name).is_dir() else (copy / name).unlink()
    return copy


def test_the_server_side_answers_without_the_other_rooms(package: Path) -> None:
    assert {path.name for path in package.iterdir() if path.is_dir()} == {
        "channels",
        "design",
        "estimators",
        "inference",
        "protocol",
    }
    done = run(package)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 25


def test_a_server_that_needs_a_record_fails(package: Path) -> None:
    path = package / "estimators" / "gate.py"
    path.write_text(path.read_text() + "\nfrom sottovoce.client.record import Records\n")
    done = run(package)
    assert done.returncode != 0
    assert "No module named 'sottovoce.client'" in done.stderr
