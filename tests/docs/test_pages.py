"""The pages by method: every block of Python runs on its own, then every command on the files that the blocks made."""

import importlib
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "federated-quantile.md",
    "shortfall.md",
    "quantile-regression.md",
    "data-integration.md",
    "conformal.md",
    "audit.md",
)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"

threads: Any = importlib.import_module("threadpoolctl")


def blocks(name: str, language: str) -> list[str]:
    text = (DOCS / name).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(name: str) -> list[list[str]]:
    lines = [line for block in blocks(name, "sh") for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("sottovoce ")]


@pytest.mark.skipif(UNCOMPILED, reason="half a million answers take minutes when they are not compiled")
@pytest.mark.usefixtures("loaded_dice", "elsewhere")
@pytest.mark.parametrize("name", PAGES)
def test_the_python_and_the_commands_of_a_page_run(name: str) -> None:
    with threads.threadpool_limits(1):
        for number, block in enumerate(blocks(name, "python")):
            if name != "conformal.md" or "write_table" in block:  # the others run in the page's own test
                exec(compile(block, f"{name}, block {number}", "exec"), {})
    assert len(commands(name)) >= 2
    for words in commands(name):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output


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


@pytest.mark.parametrize("name", [*PAGES, "choose.md", "plan.md", "explore.md", "limits.md", "reproduction.md"])
def test_every_option_of_a_page_exists(name: str) -> None:
    known = set(re.findall(r"`(--[a-z-]+)", (DOCS / "cli.md").read_text()))
    lines = [
        line for line in (DOCS / name).read_text().splitlines() if "examples/" not in line and "--redraw" not in line
    ]
    used = {option for line in lines for option in OPTION.findall(line)}
    assert used - {"--data", "--seed", "--repetitions"} <= known
