"""`make house` sees what it says it sees, on a small tree made up here and on the package itself."""

import json
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "house.py"

TREE = {
    "__init__.py": '"""Door."""\n_HOMES = {"ask": "sottovoce.api.quantile.ask", "Oops": "sottovoce.core.errors"}\n'
    "def __getattr__(name):\n    from importlib import import_module\n"
    "    return getattr(import_module(_HOMES[name]), name)\n",
    "core/__init__.py": '"""Core."""\n',
    "core/errors.py": '"""Errors."""\nclass Oops(Exception): ...\n',
    "protocol/__init__.py": '"""Protocol."""\n',
    "protocol/selection/__init__.py": '"""Selection."""\n',
    "protocol/selection/table.py": '"""Table."""\nfrom ...core import errors\nclass Row: ...\n',
    "server/__init__.py": '"""Server."""\n',
    "server/quantile/__init__.py": '"""Quantile."""\n',
    "server/quantile/result.py": '"""Result."""\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n'
    "    from sottovoce.api.quantile.ask import ask\n\nclass Row: ...\n\n\ndef draw():\n"
    "    from sottovoce.server.quantile import plot\n    return plot\n",
    "server/quantile/plot.py": "from .result import Row\nfrom sottovoce.core.errors import Oops\n",
    "server/regression/__init__.py": '"""Regression."""\n',
    "server/regression/fit.py": '"""Fit."""\nimport sottovoce.server.quantile.plot\n',
    "api/__init__.py": '"""API."""\n',
    "api/quantile/__init__.py": '"""Quantile."""\n',
    "api/quantile/ask.py": '"""Ask."""\nfrom sottovoce.server.quantile.result import Row\n\n\ndef ask(): ...\n'
    + "\n" * 40,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / "sottovoce" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "sottovoce"


def test_every_import_is_counted(house: ModuleType, tree: Path) -> None:
    found = house.survey(tree)
    assert found["files"] == len(TREE)
    assert found["lines"] == sum(len(text.splitlines()) for text in TREE.values())
    # a type-checking import, an import inside a function, a relative one and a plain `import` all count
    assert found["sides"] == {
        "api": {"server": 1},
        "protocol": {"core": 1},
        "server": {"api": 1, "server": 3, "core": 1},
    }
    assert found["methods"]["server/quantile"] == {"quantile": 3, "shared": 1}
    assert found["methods"]["server/regression"] == {"quantile": 1}
    assert found["methods"]["protocol/conformal"] == {"shared": 1}
    assert found["floor"]["server"]["quantile"][0] == 3
    assert found["wrong"] == ["sottovoce.server.quantile.result -> sottovoce.api.quantile.ask"]


def test_faults_are_found(house: ModuleType, tree: Path) -> None:
    found = house.survey(tree)
    assert found["cycles"] == [
        ["sottovoce.api.quantile.ask", "sottovoce.server.quantile.plot", "sottovoce.server.quantile.result"]
    ]
    assert found["shared_names"] == {"Row": ["sottovoce.protocol.selection.table", "sottovoce.server.quantile.result"]}
    assert found["undocumented"] == ["sottovoce.server.quantile.plot"]
    assert found["longest"][0] == (45, "sottovoce.api.quantile.ask")
    assert found["single"] == []
    (tree / "server" / "regression" / "fit.py").write_text('"""Fit."""\n')
    assert house.survey(tree)["single"] == [["sottovoce.server.quantile.plot", "sottovoce.server.quantile.result"]]


def test_cycles_are_the_strongly_connected_components(house: ModuleType) -> None:
    assert house.cycles({"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["e"], "e": ["d"], "f": ["a"]}) == [
        ["a", "b", "c"],
        ["d", "e"],
    ]
    assert house.cycles({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}) == []
    chain = {str(at): [str(at + 1)] for at in range(5000)}  # deeper than the interpreter's own stack
    assert house.cycles({**chain, "5000": ["0"]}) == [sorted([*chain, "5000"])]


@pytest.mark.parametrize(
    ("start", "end", "wrong"),
    [
        ("server", "client", True),
        ("client", "server", True),
        ("client", "inference", True),
        ("inference", "protocol", True),
        ("api", "sim", True),
        ("cli", "server", False),
        ("core", "protocol", True),
        ("cli", "api", False),
        ("cli", "explore", False),
        ("explore", "api", False),
        ("explore", "collector", True),
        ("web", "core", False),
        ("core", "web", True),
        ("cli", "core", False),
        ("local", "client", False),
        ("server", "server", False),
        ("sim", "core", False),
    ],
)
def test_the_wrong_way_is_known(house: ModuleType, start: str, end: str, wrong: bool) -> None:
    assert house.is_wrong(start, end) is wrong


def test_the_drawing(house: ModuleType, tree: Path) -> None:
    text = house.drawn(house.survey(tree))
    assert f"{len(TREE)} files" in text
    assert "1!" in text
    assert "Import cycles: 1\n" in text
    assert "Files without a docstring: 1\n" in text
    assert max(map(len, text.splitlines())) < 200


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), *options], capture_output=True, text=True, check=True, timeout=120
    )


def test_what_a_name_loads(tree: Path) -> None:
    found = json.loads(run("--source", str(tree), "--json").stdout)["loads"]["modules"]
    assert found["ask"][0] == 7
    assert found["Oops"][0] == 3
    assert found["ask"][1] > found["ask"][0]


def test_the_package_itself() -> None:
    found = json.loads(run("--json", "--no-load").stdout)
    assert found["files"] == len([*(ROOT / "src" / "sottovoce").rglob("*.py")])
    assert {"cli", "api", "local", "client", "server", "inference", "protocol", "sim", "core"} <= set(found["floor"])
    assert found["sides"]["api"]["server"] > 10
    assert len(found["longest"]) == 10
    text = run("--no-load").stdout
    assert "Imports from side (row) to side (column)" in text
    assert "server/conformal" in text


def test_the_layers_are_those_of_the_contract(house: ModuleType) -> None:
    settings = ConfigParser()
    settings.read(ROOT / ".importlinter")
    layers = settings["importlinter:contract:house"]["layers"].split("\n")
    assert " > ".join(layer.replace(" | ", " ") for layer in layers if layer) == house.LAYERS
