"""The second distribution: its tables travel with it, it brings `reproduce`, and the core needs nothing of it."""

import ast
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sottovoce.core.version import VERSION
from sottovoce_papers.harness import catalogue

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "papers"


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the build's own step, with as much of setuptools as it uses; return the folder of the built tables."""
    given: dict[str, Any] = {}

    class BuildPy:
        build_lib, editable_mode = str(tmp_path), False

        def run(self) -> None:
            given["ran"] = True

    made = ModuleType("setuptools.command.build_py")
    made.__dict__["build_py"] = BuildPy
    monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=given.update))
    monkeypatch.setitem(sys.modules, "setuptools.command", ModuleType("setuptools.command"))
    monkeypatch.setitem(sys.modules, "setuptools.command.build_py", made)
    runpy.run_path(str(PAPERS / "setup.py"))
    given["cmdclass"]["build_py"]().run()
    assert given["ran"]
    return tmp_path / "sottovoce_papers" / "tables"


def test_the_tables_are_inside(built: Path) -> None:
    ours, theirs = catalogue.items(PAPERS), catalogue.items(built)
    assert [item.name for item in theirs] == [item.name for item in ours]
    for one, other in zip(ours, theirs, strict=True):
        assert other.printed() == one.printed()
        assert other.ours_file.exists() == one.ours_file.exists()
    assert (built / "online-quantile-regression" / "horizon" / "horizon.csv").exists()
    assert {path.name for path in built.iterdir()} == set(catalogue.paper_names(PAPERS))


def test_one_version_and_joblib_here_alone() -> None:
    core, papers = project(ROOT), project(PAPERS)
    assert papers["version"] == VERSION
    assert f"sottovoce[plot,fast]=={VERSION}" in papers["dependencies"]
    assert any(need.startswith("joblib") for need in papers["dependencies"])
    assert not any(need.startswith("joblib") for need in core["dependencies"])
    assert (PAPERS / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_core_imports_neither_the_papers_nor_joblib() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"sottovoce_papers", "joblib"}, path


@pytest.mark.parametrize("installed", [True, False])
def test_reproduce_is_a_command_when_the_papers_are_installed(installed: bool) -> None:
    # that it is not installed is played here: nobody finds it
    hide = "" if installed else "util.find_spec = lambda name, *_: None if name == 'sottovoce_papers' else 1\n"
    code = (
        f"import importlib.util as util\n{hide}from sottovoce.cli import app\napp(['--help'], prog_name='sottovoce')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed = [line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert ("reproduce" in listed) == installed
    assert "quantile" in listed
