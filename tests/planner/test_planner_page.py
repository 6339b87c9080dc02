"""The page on plans: its tables are what the planner says, its blocks and commands run."""

import math
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.core.errors import Infeasible

PAGE = (Path(__file__).parents[2] / "docs" / "plan.md").read_text()
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, its head left out."""
    lines = [line for line in PAGE.partition(f"## {heading}")[2].partition("\n## ")[0].splitlines() if line[:1] == "|"]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_of_people() -> None:
    found = rows("People for an interval of a tenth of a standard deviation")
    assert len(found) == 4
    for tau, *cells in found:
        people = [sv.plan(tau=float(tau), epsilon=each, width=0.1, sd=1).people for each in (*EPSILONS, math.inf)]
        assert cells == [f"{each:,}" for each in people]


def test_the_table_of_trust() -> None:
    found = rows("What local privacy costs")
    assert len(found) == 4
    for people, *cells in found:
        plans = [sv.plan(epsilon=each, people=int(people.replace(",", "")), sd=15) for each in EPSILONS]
        for plan, cell in zip(plans, cells[:-1], strict=True):
            best, central, bare = (each.widths[0] for each in plan.yardsticks)
            assert cell == f"{plan.width:.2f} / {best:.2f} / {central:.2f}"
            assert cells[-1] == f"{bare:.2f}"


def test_the_refusal_is_quoted_as_it_is() -> None:
    with pytest.raises(Infeasible) as no:
        sv.plan(epsilon=1, people=10_000, width=1, sd=15)
    assert f"*{no.value}*" in PAGE.replace("\n", " ")


def test_blocks_and_commands_run() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    exec(compile(block, "plan.md", "exec"), {})
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for line in commands.splitlines():
        done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        assert done.exit_code == 0, done.output
