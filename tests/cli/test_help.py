"""The words of `--help`, kept as files, and that asking for them loads nothing heavy."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sottovoce
from sottovoce.cli import app

GOLDEN = Path(__file__).parent / "golden"
HEAVY = ("numpy", "scipy", "numba", "pyarrow", "narwhals", "matplotlib", "pandas", "polars", "sklearn")
PINNED = f"typer=={version('typer')}" in (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()


@pytest.mark.skipif(not PINNED, reason="the words around the words are those of the typer in constraints.txt")
@pytest.mark.parametrize(
    "command",
    [
        "",
        "quantile",
        "groups",
        "shortfall",
        "integrate",
        "regress",
        "conformal",
        "ledger",
        "plan",
        "plan quantile",
        "plan difference",
        "plan regression",
        "plan integration",
        "plan conformal",
        "reproduce",
        "audit",
        "demo",
        "serve",
        "site",
        "certificates",
        "collect",
        "explore",
        "replay",
        "key",
        "token",
    ],
)
def test_help_is_as_kept(command: str) -> None:
    """Write the files anew with WRITE_GOLDEN=1, and read what changed."""
    words = [*command.split(), "--help"]
    done = CliRunner().invoke(
        app, words, prog_name="sottovoce", terminal_width=80, env={"TERM": "dumb", "COLUMNS": "80"}
    )
    assert done.exit_code == 0
    kept = GOLDEN / f"{command.replace(' ', '-') or 'sottovoce'}.txt"
    if os.environ.get("WRITE_GOLDEN"):
        kept.write_text(done.stdout)
    assert done.stdout == kept.read_text()


@pytest.mark.parametrize(
    "command",
    [[], ["shortfall"], ["regress"], ["plan", "quantile"], ["integrate"], ["conformal"], ["explore"], ["reproduce"]],
    ids=lambda words: "".join(words),
)
def test_the_module_runs_and_help_loads_nothing_heavy(command: list[str]) -> None:
    code = (
        f"import sys, runpy; sys.argv = {['sottovoce', *command, '--help']!r}\n"
        "try: runpy.run_module('sottovoce', run_name='__main__')\n"
        f"finally: print('loaded', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: sottovoce" in done.stdout
    assert "loaded []" in done.stdout


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"{sottovoce.__version__}\n"
