"""The pages that scripts write are current: the command reference and the reference of public names."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app

ROOT = Path(__file__).parents[2]
SCRIPTS = ("write_cli_reference", "write_reference")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_page_is_what_its_script_writes(name: str) -> None:
    """Where this fails, run the script and read what changed."""
    made = script(name)
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), f"run python scripts/{name}.py"


def test_the_command_reference_has_every_option_of_every_command() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([\w ]+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    assert set(script("write_cli_reference").commands()) == set(sections)
    for command, section in sections.items():
        words = [*command.split(), "--help"]
        done = CliRunner().invoke(app, words, env={"TERM": "dumb", "COLUMNS": "200"}, terminal_width=200)
        if done.exit_code:  # `reproduce` where its distribution is not installed
            assert command == "reproduce"
            continue
        shown = set(re.findall(r"^  (--[a-z-]+)", done.stdout, re.MULTILINE))
        assert set(re.findall(r"^\| `(--[a-z-]+)", section, re.MULTILINE)) == shown


def test_results_and_errors_stand_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in ("QuantileResult", "IntegratedResult", "Threshold", "CoverageReport", "Difference"):
        assert f"### {name}" in page
