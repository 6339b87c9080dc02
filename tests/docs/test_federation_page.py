"""The how-to of a federation: its TOML is read by the program, its commands and options exist, and so do its files."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from sottovoce.cli import app
from sottovoce.federation.site.policy import _LIMITS, _RECORDS, policy_of
from sottovoce.federation.study import METHODS, ROUNDS, study_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "federation.md").read_text()
COMPOSE = (ROOT / "examples" / "federation" / "compose.yaml").read_text()
COMMANDS: Any = typer.main.get_command(app)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def lines() -> list[str]:
    shown = [line.removeprefix("sottovoce ") for block in blocks("sh") for line in block.splitlines()]
    composed = re.findall(r"command: (?:>-\n\s+)?((?:serve|site) .*?)(?=\n  \w|\Z)", COMPOSE, re.DOTALL)
    return [*shown, *composed]


def test_the_examples_are_a_policy_and_a_study() -> None:
    policy, study, regression = map(tomllib.loads, blocks("toml"))
    assert policy_of(policy).name in study_of(study).sites
    policy_of(policy).check_study(study["name"], study_of(study).method, len(study["sites"]))
    policy_of(policy).check_budget(study["quantile"]["epsilon"])
    assert study_of({"name": study["name"], "sites": study["sites"], **regression}).asked["features"] == ["age", "ward"]


@pytest.mark.parametrize("line", lines())
def test_every_command_is_understood(line: str) -> None:
    name, *words = shlex.split(line)
    command = COMMANDS.commands[name]
    context = command.make_context(name, list(words))  # refuses options that do not exist
    assert context.params


def test_every_field_stands_in_a_table() -> None:
    assert len(lines()) == 11
    for field in [*ROUNDS, *_RECORDS, *_LIMITS]:
        assert re.search(rf"^\|.*\b{field}\b.*\|", PAGE, re.MULTILINE), field
    assert all(f"`[{method}]`" in PAGE for method in METHODS)
