"""What the documents say is there: their Python runs, their options, paths, signatures, targets and links exist."""

import importlib
import inspect
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.core.arrays import Words
from sottovoce.core.random_source import SystemEntropy
from sottovoce.server.quantile.result import QuantileResult

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sottovoce"
DECISIONS = ROOT / "docs" / "decisions"
README, ARCHITECTURE = ((ROOT / name).read_text() for name in ("README.md", "ARCHITECTURE.md"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FALSE_ALARM = 1e-6
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def quoted(text: str) -> list[str]:
    """Return what stands in backticks, outside of blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


@pytest.fixture
def loaded_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the system's words from a seed: what passes once passes always."""
    seeded = sv.sim.dice(7)

    def words(_: SystemEntropy, n: int) -> Words:
        return seeded.words(n)

    monkeypatch.setattr(SystemEntropy, "words", words)


@pytest.mark.skipif(UNCOMPILED, reason="half a million answers take minutes when they are not compiled")
@pytest.mark.usefixtures("loaded_dice")
@pytest.mark.parametrize("block", blocks(README, "python"))
def test_the_python_of_the_readme_runs(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    said = capsys.readouterr().out
    assert "Private quantile" in said
    result, sites = names["r"], names["sites"]
    assert isinstance(result, QuantileResult)
    assert isinstance(sites, dict)
    low, high = result.interval_at(1 - FALSE_ALARM)
    assert low < np.quantile(np.concatenate(list(sites.values())), 0.9) < high


@pytest.mark.skipif(UNCOMPILED, reason="half a million answers take minutes when they are not compiled")
@pytest.mark.usefixtures("loaded_dice")
def test_the_regression_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    block, _, _ = blocks(README, "py")
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    said = capsys.readouterr().out
    assert "Private quantile regression" in said
    assert "Predicted standard errors for 300,000 people" in said
    low, high = names["m"].confidence_interval(0.999, contrast=[0, 1, 0])
    assert low < 1.6 < high


@pytest.mark.skipif(UNCOMPILED, reason="eighty thousand answers take a minute when they are not compiled")
@pytest.mark.usefixtures("loaded_dice")
def test_the_help_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    _, block, _ = blocks(README, "py")
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    said = capsys.readouterr().out
    assert "One site helped by others, tau = 0.5" in said
    assert "bound" in said
    own = names["r"].target.measured
    assert abs(own.estimate - 16.78347) < 5 * own.std_error  # five standard errors: below 1e-6, two-sided


@pytest.mark.usefixtures("loaded_dice")
def test_the_prediction_sets_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, block = blocks(README, "py")
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert "Coverage by site, target 0.9" in capsys.readouterr().out
    assert names["t"].coverage >= 0.9
    assert names["p"].private
    values, new = np.concatenate(list(names["scores"].values())), names["t"].value
    assert np.quantile(values, 0.8) < new < np.quantile(values, 0.97)  # six deviations of the coverage
    assert names["m"].threshold_.coverage >= 0.9


def test_there_is_python_of_about_twelve_lines() -> None:
    (block,) = blocks(README, "python")
    assert 10 <= len([line for line in block.splitlines() if line.strip()]) <= 14


def options_of(command: str) -> set[str]:
    done = CliRunner().invoke(app, [command, "--help"], env={"TERM": "dumb", "COLUMNS": "200"}, terminal_width=200)
    assert done.exit_code == 0
    return set(re.findall(r"^  (--[a-z-]+)", done.stdout, re.MULTILINE))


def test_the_options_of_the_readme_are_those_of_the_commands() -> None:
    elsewhere = README
    commands = ("regress", "integrate", "conformal", "reproduce")
    for command in commands:
        before, _, rest = elsewhere.partition(f"### The command {command}\n")
        section, heading, after = re.split(r"^(#{1,3} )", rest, maxsplit=1, flags=re.MULTILINE)
        assert set(OPTION.findall(section)) == options_of(command)
        elsewhere = before + heading + after
    named = set(OPTION.findall(elsewhere))
    assert options_of("quantile") <= named <= options_of("quantile").union(*map(options_of, commands))


def test_every_public_name_stands_in_the_readme() -> None:
    missing = [name for name in sv.__all__ if name != "__version__" and f"sv.{name}" not in README]
    assert missing == []


@every_document
def test_every_name_behind_sv_is_public(document: Path) -> None:
    named = set(re.findall(r"\bsv\.(\w+)", document.read_text()))
    assert named <= set(sv.__all__)


@every_document
def test_every_target_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)\b", document.read_text(), re.MULTILINE))
    assert named <= targets
    assert {"demo", "test"} <= targets


@every_document
def test_every_link_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    assert not [link for link in links if not (document.parent / link.partition("#")[0]).exists()]


def exists(name: str) -> bool:
    """Tell whether a path is there, seen from the root, the package, or a room of it."""
    homes = [ROOT, SOURCE.parent, SOURCE, *(path for path in SOURCE.iterdir() if path.is_dir())]
    return any((home / name).exists() for home in homes)


PATH = re.compile(r"[\w./-]*\w(?:/|\.py|\.md|\.txt|\.png)|pyproject\.toml|\.importlinter|\.ci/run")


@every_document
def test_every_path_exists(document: Path) -> None:
    paths = [name for name in quoted(document.read_text()) if PATH.fullmatch(name)]
    assert [name for name in paths if not exists(name)] == []


def test_the_paths_of_the_architecture_are_many() -> None:
    assert len({name for name in quoted(ARCHITECTURE) if PATH.fullmatch(name)}) > 40


def test_every_room_stands_in_the_architecture() -> None:
    rooms = [path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if f"`{room}/`" not in ARCHITECTURE] == []


def signatures() -> list[tuple[str, str]]:
    return re.findall(r"^(sottovoce[\w.]+)\(([^)]*)\)", "\n".join(blocks(ARCHITECTURE, "text")), re.MULTILINE)


@pytest.mark.parametrize(("name", "parameters"), signatures(), ids=[name for name, _ in signatures()])
def test_every_signature_is_the_one_of_the_code(name: str, parameters: str) -> None:
    module, _, thing = name.rpartition(".")
    found = getattr(importlib.import_module(module), thing)
    found = getattr(found, "py_func", found)  # a compiled function keeps the one it was made from
    assert [part.strip() for part in parameters.split(",") if part.strip()] == list(inspect.signature(found).parameters)


def test_there_are_signatures() -> None:
    assert len(signatures()) > 20


def resolved(name: str) -> object:
    """Return what a dotted name such as ``inference.self_normalised.clock.Clock`` stands for."""
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module("sottovoce." + ".".join(parts[:depth]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            fields = getattr(found, "__annotations__", {})  # a field of a dataclass is not its attribute
            found = fields[part] if part in fields else getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def dotted() -> list[str]:
    rooms = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir())
    glossary = (ROOT / "GLOSSARY.md").read_text()
    return sorted({name for name in quoted(glossary) if re.fullmatch(rf"(?:{rooms})(?:\.\w+)+", name)})


@pytest.mark.parametrize("name", dotted())
def test_every_name_of_the_glossary_is_in_the_code(name: str) -> None:
    assert resolved(name) is not None


def test_the_glossary_names_the_code() -> None:
    assert len(dotted()) > 25


def test_every_decision_is_linked_numbered_and_whole() -> None:
    index = (DECISIONS / "README.md").read_text()
    records = sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")
    assert [path.name[:4] for path in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    assert len(records) >= 11
    for path in records:
        text = path.read_text()
        title = text.splitlines()[0].removeprefix("# ")
        assert f"[{title}]({path.name})" in index
        assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]


def test_the_picture_is_small() -> None:
    assert "docs/demo.png" in README
    assert (ROOT / "docs" / "demo.png").stat().st_size < 150_000


def test_no_figure_is_left_open() -> None:
    assert "<!--" not in (ROOT / "README.md").read_text()
