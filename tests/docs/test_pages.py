"""The pages: every block of Python runs on its own, then every command on the files that the blocks made.

Which page is run where stands here too, so that no page with Python can be added that nobody runs.
"""

import importlib
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sottovoce.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HOW_TO = tuple(f"how-to/{page.name}" for page in sorted((DOCS / "how-to").glob("*.md")))
PAGES = (
    "federated-quantile.md",
    "shortfall.md",
    "groups.md",
    "quantile-regression.md",
    "data-integration.md",
    "conformal.md",
    "audit.md",
    "plan.md",
    "start.md",
    "reference.md",
    *HOW_TO,
)
ELSEWHERE = {  # a test of its own, and what it runs
    "README.md": "test_readme.py",
    "docs/conformal.md": "test_conformal_page.py",
    **{f"docs/tutorials/{page.name}": "test_tutorials.py" for page in (DOCS / "tutorials").glob("*.md")},
}
FILES = {"client/README.md": "wait\n" + "".join(f"{i % 60 + 0.5}\n" for i in range(4_000))}  # that a page reads
SHOWN = (  # whose commands are parsed and not run: they serve, take hours, or need a file of the reader's
    "docs/index.md",
    "docs/collector.md",
    "docs/explore.md",
    "docs/reproduction.md",
    "papers/README.md",
)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"

threads: Any = importlib.import_module("threadpoolctl")


def blocks(name: str, language: str, folder: Path = DOCS) -> list[str]:
    text = (folder / name).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(name: str, folder: Path = DOCS) -> list[list[str]]:
    lines = [line for block in blocks(name, "sh", folder) for line in block.replace("\\\n", " ").splitlines()]
    bare = [re.sub(r"^NUMBA_DISABLE_JIT=1 ", "", line) for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in bare if line.startswith("sottovoce ")]


def expanded(words: list[str]) -> list[str]:
    """Do what a shell does to names with a star."""
    return [each for word in words for each in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]


@pytest.mark.skipif(UNCOMPILED, reason="half a million answers take minutes when they are not compiled")
@pytest.mark.usefixtures("loaded_dice", "elsewhere")
@pytest.mark.filterwarnings("ignore:.*barely supported:UserWarning")  # which a page shows on purpose
@pytest.mark.filterwarnings("ignore:.*few records:UserWarning")  # likewise, of groups
@pytest.mark.parametrize("name", PAGES)
def test_the_python_and_the_commands_of_a_page_run(name: str, free_port: str) -> None:
    if "make flights.csv" in (DOCS / name).read_text():
        runpy.run_path(str(ROOT / "scripts" / "write_flights.py"))["write"](Path("flights.csv"))
    with threads.threadpool_limits(1):
        for number, block in enumerate(blocks(name, "python")):
            if name != "conformal.md" or "write_table" in block:  # the others run in the page's own test
                exec(compile(block, f"{name}, block {number}", "exec"), {})
    assert name in (*HOW_TO, "reference.md") or len(commands(name)) >= 2
    for words in commands(name):
        done = CliRunner().invoke(app, expanded(words))
        assert done.exit_code == 0, done.output
    for script in blocks(name, "bash"):
        assert "refused: exit code 2" in shell(script.replace("8451", free_port))


def shell(script: str) -> str:
    """Run programs side by side as a shell does; what they draw is their own."""
    where = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", script], env=where, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("loaded_dice", "elsewhere")
@pytest.mark.parametrize("name", FILES)
def test_the_python_of_a_page_runs_on_a_file_that_it_reads(name: str) -> None:
    Path("waits.csv").write_text(FILES[name])
    for block in blocks(name, "python", ROOT):
        exec(compile(block, name, "exec"), {})


@pytest.mark.parametrize("name", SHOWN)
def test_commands_that_are_shown_alone_are_understood(name: str) -> None:
    found: Any = typer.main.get_command(app)
    assert len(commands(name, ROOT)) >= 1
    for words in commands(name, ROOT):
        command, rest = found, list(words)
        while hasattr(command, "commands"):
            command = command.commands[rest.pop(0)]
        assert command.make_context(words[0], rest).params


def test_every_page_with_python_is_run_somewhere() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = [name for name in listed.split() if (ROOT / name).exists()]
    with_python = {name for name in tracked if blocks(name, "python", ROOT)}
    here = {f"docs/{name}" for name in PAGES if name != "conformal.md"}
    assert with_python - here - set(FILES) - set(ELSEWHERE) == set()
    with_shell = {name for name in tracked if commands(name, ROOT)}
    assert with_shell - here - set(ELSEWHERE) - set(SHOWN) - {"docs/federation.md"} == set()  # which has its own test


@pytest.mark.skipif(UNCOMPILED, reason="two hundred thousand answers take minutes when they are not compiled")
@pytest.mark.usefixtures("loaded_dice")
def test_the_regression_finds_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(compile(blocks("quantile-regression.md", "python")[0], "quantile-regression.md", "exec"), names)
    assert "Private quantile regression" in capsys.readouterr().out
    low, high = names["m"].confidence_interval(0.999, contrast=[0, 1, 0], tau=0.5)
    assert low < 3 + 0.6931 < high  # the median of an exponential error is log 2, and it grows with the miles


@pytest.mark.skipif(UNCOMPILED, reason="eighty thousand answers take a minute when they are not compiled")
@pytest.mark.usefixtures("loaded_dice")
def test_the_target_knows_its_own_median(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(compile(blocks("data-integration.md", "python")[0], "data-integration.md", "exec"), names)
    assert "One site helped by others, tau = 0.5" in capsys.readouterr().out
    low, high = names["r"].target_interval
    assert low - 2 * (high - low) < 16.78347 < high + 2 * (high - low)  # ten standard errors: below 1e-6


@pytest.mark.parametrize(
    "name", [*PAGES, "index.md", "choose.md", "plan.md", "explore.md", "limits.md", "reproduction.md"]
)
def test_every_option_of_a_page_exists(name: str) -> None:
    known = set(re.findall(r"`(--[a-z-]+)", (DOCS / "cli.md").read_text()))
    lines = [
        line for line in (DOCS / name).read_text().splitlines() if "examples/" not in line and "--redraw" not in line
    ]
    used = {option for line in lines for option in OPTION.findall(line)}
    assert used - {"--data", "--seed", "--repetitions", "--cells"} <= known
