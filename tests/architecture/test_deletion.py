"""The server side makes every method's result and summary with every side gone that could hold a record or a seed.

`deletion/<method>.py` runs twice. ``write FOLDER`` runs here, with the whole package: it asks sites, keeps the log of
messages (bytes) in the folder, and prints the result's summary. ``read FOLDER`` runs in a fresh process with the other
sides deleted: it makes the result from the log alone, and must print the same. (pytest imports the scripts when it
looks for doctests: they work under ``__name__ == "__main__"`` only.)
"""

import os
import runpy
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sottovoce"
SCRIPTS = Path(__file__).parent / "deletion"
METHODS = ("quantile", "regression", "integration", "conformal")
STAYS = {"planner", "server", "inference", "protocol", "core"}
GONE = {"client", "local", "api", "sim", "cli", "auditing", "collector", "explore", "federation", "web"}

EVERYTHING = """
import importlib, pkgutil, sys
import sottovoce

for found in pkgutil.walk_packages(sottovoce.__path__, "sottovoce."):
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        print(f"{found.name}: {error}", file=sys.stderr)
    else:
        print(found.name)
"""


def python(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=package.parent,
        # a fresh copy has no compiled kernels; interpreting them takes a second, compiling them ten
        env={**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("deleted") / "sottovoce"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name in GONE:
        shutil.rmtree(copy / name)
    (copy / "__main__.py").unlink()
    return copy


def test_every_side_is_kept_or_deleted() -> None:
    sides = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert sides == STAYS | GONE


def test_every_module_of_the_server_side_but_one_that_needs_a_record_is_imported(package: Path) -> None:
    breach = package / "server" / "breach.py"
    breach.write_text("from sottovoce.client.record import Records\n")
    done = python(package, "-c", EVERYTHING)
    breach.unlink()
    assert done.stderr == "sottovoce.server.breach: No module named 'sottovoce.client'\n"
    assert done.returncode == 0
    assert {f"sottovoce.{side}.{method}" for side in ("server", "inference") for method in METHODS} <= set(
        done.stdout.split()
    )


def written(script: Path, folder: Path) -> str:
    """Run a script here, and return what it prints."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as told:
        patch.setattr(sys, "argv", [str(script), "write", str(folder)])
        runpy.run_path(str(script), run_name="__main__")
    return told.getvalue()


def both(script: Path, package: Path, folder: Path) -> tuple[str, str]:
    """Return what a script prints with the whole package, and from its log with the other sides deleted."""
    folder.mkdir()
    wrote = written(script, folder)
    read = python(package, str(script), "read", str(folder))
    assert read.returncode == 0, read.stderr
    return wrote, read.stdout


def test_every_method_has_its_script() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.py")} == set(METHODS)


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_result_and_summary_are_made_from_a_log_of_messages(script: Path, package: Path, tmp_path: Path) -> None:
    wrote, read = both(script, package, tmp_path / "log")
    assert len(wrote.splitlines()) > 3, wrote
    assert read == wrote
    assert any(path.stat().st_size for path in (tmp_path / "log").iterdir())


def test_a_script_that_needs_a_record_fails(package: Path, tmp_path: Path) -> None:
    script = tmp_path / "needy.py"
    script.write_text("import sys\nif sys.argv[1] == 'read':\n    import sottovoce.client\nprint('summary')\n")
    with pytest.raises(AssertionError, match=r"No module named 'sottovoce\.client'"):
        both(script, package, tmp_path / "log")
