"""Less is installed: a site answers the same with numpy alone; a scientist is told what is missing."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

from sottovoce.core import kernels
from sottovoce.core.kernels import COMPILED

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sottovoce"
SITE = Path(__file__).parent / "site_alone.py"
SIDES = {"core", "client", "protocol"}  # what `client/pyproject.toml` takes
HEAVY = "numba,llvmlite,scipy,pyarrow,sklearn,pandas,polars,typer,rich,matplotlib"


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    return found


def python(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**os.environ, "PYTHONPATH": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def without(names: str, code: str) -> str:
    """Run code as if packages were not installed, and return what it prints."""
    load = f"import sys; sys.path.insert(0, {str(SITE.parent)!r}); from site_alone import Absent\n"
    done = python(SOURCE.parent, "-c", f"{load}sys.meta_path.insert(0, Absent({names!r}))\n{code}")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what a site installs, with the seeded source beside it."""
    home = tmp_path_factory.mktemp("alone")
    for side in (*SIDES, "sim"):
        shutil.copytree(SOURCE / side, home / "sottovoce" / side, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SOURCE / "__init__.py", home / "sottovoce")
    return home


PAGE = """
import json, sys
from sottovoce.api.explored import ExploredFile
from sottovoce.explore.server import ExploreServer
from sottovoce.explore.session import ExploreSession

session = ExploreSession(ExploredFile(sys.argv[1]))
server = ExploreServer(session, 0, print)
asked = {"value": "wait", "taus": [0.5], "epsilon": 4, "method": "certified"}
session.begin("0" * 32, asked)
session.wait()
assert json.loads(session.result("0" * 32))["private"]
assert "No picture: matplotlib is not installed" in session.report("0" * 32)
server._server.server_close()
"""


def test_the_page_to_explore_needs_no_extra(tmp_path: Path) -> None:
    (tmp_path / "waits.csv").write_text("wait\n" + "".join(f"{k / 7}\n" for k in range(4000)))
    code = f"import sys; sys.argv = ['', {str(tmp_path / 'waits.csv')!r}]\n{PAGE}"
    assert without("numba,llvmlite,matplotlib,sklearn,starlette,uvicorn,plotly,pandas,polars", code) == ""


def test_a_site_alone_says_the_same_bytes_and_reads_the_same_files(alone: Path, tmp_path: Path) -> None:
    whole = python(SOURCE.parent, str(SITE), str(tmp_path), "nothing")
    assert whole.returncode == 0, whole.stderr
    light = python(alone, str(SITE), str(tmp_path), HEAVY)
    assert light.returncode == 0, light.stderr
    assert light.stdout.splitlines() == whole.stdout.splitlines()
    assert len(light.stdout.splitlines()) > 30


def test_a_site_alone_says_what_it_has_not(alone: Path) -> None:
    code = "import sottovoce as sv\ntry: sv.federated_quantile\nexcept ImportError as error: print(error)"
    told = python(alone, "-c", code).stdout
    assert told == (
        "sv.federated_quantile is not part of sottovoce-client, which answers queries: install sottovoce itself\n"
    )


def test_what_needs_arrow_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.arrow", "a.csv"):
        (tmp_path / name).write_text("wait,clinic\n3,north\n")
    code = f"""
import os; os.chdir({str(tmp_path)!r})
from sottovoce.client.reading.files import read_files
from sottovoce.client.reading.frames import read_frame
for call in (
    lambda: read_files(["a.parquet"], value="wait"),
    lambda: read_files(["a.arrow"], value="wait"),
    lambda: read_files(["a.csv"], value="wait", site="clinic"),
    lambda: read_frame({{}}, value="wait", site="clinic"),
):
    try: call()
    except ValueError as error: print(error)
"""
    assert without("pyarrow", code).splitlines() == [
        f"{what} needs pyarrow: install it with: pip install pyarrow"
        for what in (
            "reading Parquet files",
            "reading Arrow files",
            "a column of sites or persons",
            "reading a data frame with a site column",
        )
    ]


def test_every_answer_comes_without_compiler_and_scikit_learn() -> None:
    code = """
import warnings; warnings.simplefilter("ignore")
import sottovoce as sv
draw = sv.sim.dice(1).generator()
ours, theirs = draw.normal(size=4_000), draw.normal(size=4_000)
print(sv.federated_quantile([ours, theirs], 0.5, 4.0).private)
print(sv.federated_quantile([ours, theirs], 0.5, 4.0, method="certified").private)
print(sv.federated_quantile([ours, theirs], 0.5, 4.0, method="regression").private)
print(sv.integrated_quantile(ours, {"theirs": theirs}, 0.5, 4.0).private)
print(sv.conformal_threshold([ours, theirs], 0.1, epsilon=4.0, maximum=9.0).private)
model = sv.PrivateQuantileRegressor(epsilon=4.0, randomness=sv.sim.dice(2))
try: model.predict([[0.0]])
except (ValueError, AttributeError) as error: print(error)
X = draw.random((1_200, 1))
print(model.fit(X, X[:, 0]).predict([[0.5]]).shape, model.set_params(epsilon=2.0).get_params()["epsilon"])
print("epsilon=2.0" in repr(model))
needy = lambda: model.score(X, X[:, 0]), lambda: sv.FederatedConformalRegressor, lambda: sv.FederatedConformalClassifier
for call in needy:
    try: call()
    except (ValueError, ImportError) as error: print(error)
"""
    assert without("numba,llvmlite,sklearn,joblib", code).splitlines() == [
        *["True"] * 5,
        "this PrivateQuantileRegressor instance is not fitted yet: call fit with records before using it",
        "(1,) 2.0",
        "True",
        "score needs scikit-learn: install it with: pip install scikit-learn",
        "sv.FederatedConformalRegressor needs scikit-learn: install it with: pip install scikit-learn",
        "sv.FederatedConformalClassifier needs scikit-learn: install it with: pip install scikit-learn",
    ]


@pytest.mark.skipif(not COMPILED, reason="there is nothing to compare with where nothing is compiled")
def test_numbers_without_a_compiler_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code = """
import warnings; warnings.simplefilter("ignore")
import sottovoce as sv
draw = sv.sim.dice(1).generator()
sites = [draw.normal(size=3_000), draw.normal(size=2_000)]
r = sv.federated_quantile(sites, 0.5, 4.0, randomness=sv.sim.dice(3))
print(r.estimate, r.interval)
t = sv.conformal_threshold(sites, 0.1, epsilon=4.0, maximum=9.0, mechanism="aggregate", randomness=sv.sim.dice(5))
print(t.value, t.coverage)
X = draw.random((1_500, 2))
print(sv.PrivateQuantileRegressor(epsilon=4.0, randomness=sv.sim.dice(4)).fit(X, X @ [1.0, 2.0]).coef_)
"""
    with warnings.catch_warnings():
        exec(code, {})
    assert without("numba,llvmlite", code) == capsys.readouterr().out


def test_a_long_loop_without_a_compiler_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import warnings
import sottovoce as sv
from sottovoce.core import kernels
kernels.LONG, X = 1_000, sv.sim.dice(1).generator().random((1_000, 1))
for size in (999, 1_000):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = sv.PrivateQuantileRegressor(epsilon=4.0, density=1.0, size=1.0, randomness=sv.sim.dice(4))
        model.fit(X[:size], X[:size, 0])
    print([str(each.message) for each in told if "numba" in str(each.message)])
"""
    slow = "['numba is not installed, so this takes about 25 times as long: install it with: pip install numba']"
    assert without("numba,llvmlite", code).splitlines() == ["[]", slow]
    monkeypatch.setattr(kernels, "COMPILED", True)
    kernels.say_slow(kernels.LONG)  # says nothing: a warning would be an error here


def test_the_site_installs_its_three_sides_and_no_more() -> None:
    core, site = project(ROOT), project(ROOT / "client")
    assert site["tool"]["setuptools"]["dynamic"]["version"] == core["tool"]["setuptools"]["dynamic"]["version"]
    assert set(site["project"]["dependencies"]) < set(core["project"]["dependencies"])
    names = {need.partition(">")[0] for need in site["project"]["dependencies"]}
    assert names == {"numpy", "msgspec", "narwhals"}
    taken = site["tool"]["setuptools"]["packages"]["find"]["include"]
    assert set(taken) == {"sottovoce", *(f"sottovoce.{side}*" for side in SIDES)}
    assert (ROOT / "client" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_every_file_beside_the_sources_is_packed() -> None:
    patterns = project(ROOT)["tool"]["setuptools"]["package-data"]["sottovoce"]
    packed = {path for pattern in patterns for path in SOURCE.glob(pattern)}
    built = {".pyc", ".nbi", ".nbc"}
    beside = {path for path in SOURCE.rglob("*") if path.is_file() and path.suffix not in {".py", *built}}
    assert packed == beside
    assert len(packed) >= 3


def test_no_message_names_an_entry_of_an_index_that_does_not_exist() -> None:
    for folder in ("src", "papers/src"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not re.search(r"pip install '?sottovoce", path.read_text(encoding="utf-8")), path


def test_every_dependency_has_a_floor_that_is_tried() -> None:
    core = project(ROOT)["project"]
    floors = runpy.run_path(str(ROOT / "scripts" / "floors.py"))["floors"]()
    named = [need.partition(">=")[0] for need in core["dependencies"]]
    named += [
        core["optional-dependencies"][extra][0].partition(">=")[0] for extra in ("fast", "learn", "plot", "pandas")
    ]
    assert set(named) <= {floor.partition("==")[0] for floor in floors}
    assert "numpy==1.26" in floors
