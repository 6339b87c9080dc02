"""The import contracts hold, and each of them would notice its own breach, however the import is written."""

import ast
import os
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

pytest.importorskip("importlinter")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sottovoce"
SIDES = ("core", "protocol", "inference", "client", "server", "planner", "local", "api", "sim")
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(sys.argv[1], no_cache=True))"


def lint(source: Path, where: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", LINT, str(ROOT / ".importlinter")],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(source), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def contracts() -> dict[str, str]:
    """Return what each contract is called, by its key."""
    settings = ConfigParser()
    settings.read(ROOT / ".importlinter")
    start = "importlinter:contract:"
    return {key.removeprefix(start): settings[key]["name"] for key in settings.sections() if key.startswith(start)}


def complaints(said: str) -> dict[str, str]:
    """Return what the linter says of each broken contract, by its key."""
    _, _, text = said.partition("Broken contracts\n")
    found = {}
    for key, name in contracts().items():
        _, heading, after = text.partition(f"\n{name}\n{'-' * len(name)}\n")
        if heading:
            ends = [after.find(f"\n{other}\n---") for other in contracts().values()]
            found[key] = after[: min([end for end in ends if end >= 0], default=len(after))]
    return found


def test_the_contracts_are_kept(tmp_path: Path) -> None:
    code, said = lint(ROOT / "src", tmp_path)
    assert code == 0, said
    assert " 0 broken" in said


# what is imported where, and every contract that it breaks
BREACHES = {
    ("core", "sottovoce.protocol"): {"house"},
    ("core.breaches", "sottovoce.client"): {"house", "server"},
    ("protocol", "sottovoce.inference"): {"house"},
    ("protocol.breaches", "sottovoce.sim"): {"house", "server", "seeds"},
    ("inference", "sottovoce.server"): {"house", "numbers"},
    ("inference.breaches", "sottovoce.protocol"): {"numbers"},
    ("server", "sottovoce.client"): {"house", "server"},
    ("server.quantile", "sottovoce.local.quantile"): {"house", "server"},
    ("server.regression", "sottovoce.api.regression"): {"house", "server"},
    ("client", "sottovoce.server"): {"house", "client"},
    ("client.quantile", "sottovoce.inference"): {"client"},
    ("client.regression", "sottovoce.local"): {"house", "client"},
    ("planner", "sottovoce.client"): {"planner"},
    ("planner.breaches", "sottovoce.local"): {"house", "planner"},
    ("local", "sottovoce.api"): {"house"},
    ("api", "sottovoce.cli"): {"house"},
    ("auditing", "sottovoce.sim"): {"seeds"},
    ("auditing.breaches", "sottovoce.cli"): {"house"},
    ("api.quantile", "sottovoce.sim"): {"seeds"},
    ("sim", "sottovoce.protocol"): {"house"},
    ("cli", "sottovoce.client"): {"commands"},
    ("cli.breaches", "sottovoce.local"): {"commands"},
    ("explore", "sottovoce.client"): {"explore"},
    ("explore.breaches", "sottovoce.collector"): {"house"},
    ("web", "sottovoce.protocol"): {"house"},
    ("collector", "sottovoce.client"): {"collector"},
    ("collector.breaches", "sottovoce.sim"): {"collector", "seeds"},
    ("federation.coordinator", "sottovoce.client"): {"coordinator"},
    ("federation.coordinator.breaches", "sottovoce.federation.site"): {"coordinator"},
    ("federation.site", "sottovoce.server"): {"resident"},
    ("federation.site.breaches", "sottovoce.federation.coordinator"): {"resident"},
    ("inference.quantile", "sottovoce.inference.regression"): {"quantile"},
    ("server.quantile.breaches", "sottovoce.protocol.selection"): {"quantile"},
    ("api.regression", "sottovoce.api.quantile"): {"regression"},
    ("server.regression.breaches", "sottovoce.server.quantile"): {"regression"},
    ("local.integration", "sottovoce.client.regression"): {"integration"},
    ("server.integration", "sottovoce.server.conformal"): {"integration"},
    ("server.conformal", "sottovoce.server.quantile"): {"conformal"},
    ("client.conformal", "sottovoce.client.regression"): {"conformal"},
    ("protocol.selection", "sottovoce.protocol.regression"): {"conformal"},
}
SPELLINGS = {
    "plain": "import {}\n",
    "late": "def late():\n    import {}\n",
    "types": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import {}\n",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_contract_notices_its_breach(tmp_path: Path, spelling: str) -> None:
    package = tmp_path / "sottovoce"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for place, imported in BREACHES:
        folder = package / place.replace(".", "/")
        folder.mkdir(exist_ok=True)  # "breaches" is a new folder, so that a side is breached twice
        (folder / "__init__.py").touch()
        (folder / "breach.py").write_text(SPELLINGS[spelling].format(imported))
    (package / "annexe.py").write_text("import math\n")
    code, said = lint(tmp_path, tmp_path)
    assert code == 1, said
    found = complaints(said)
    assert found.keys() == contracts().keys()
    for (place, imported), broken in BREACHES.items():
        edge = f"sottovoce.{place}.breach -> {imported} "
        assert {key for key, text in found.items() if edge in text} >= broken, edge
    assert set().union(*BREACHES.values()) == contracts().keys()
    assert "sottovoce.annexe" in found["house"]  # a side that no contract names


def test_the_breaches_are_all_that_is_exempt() -> None:
    settings = ConfigParser()
    settings.read(ROOT / ".importlinter")
    assert not any("exclude_type_checking_imports" in settings[key] for key in settings.sections())
    exempt = {
        key.rpartition(":")[2]: settings[key]["ignore_imports"].split("\n")[1:]
        for key in settings.sections()
        if "ignore_imports" in settings[key]
    }
    assert exempt == {
        "seeds": ["sottovoce -> sottovoce.sim"],
        "regression": [
            "sottovoce.server.regression.** -> sottovoce.server.quantile.asking",
            "sottovoce.server.regression.** -> sottovoce.server.quantile.search",
        ],
        "conformal": ["sottovoce.client.conformal.** -> sottovoce.client.quantile.**"],
    }


def imported_by(path: Path) -> set[str]:
    """Return every module that a file names in an import, or in a call that could import by name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Name) and node.id in ("__import__", "exec", "eval"):
            names.add(node.id)
    return names


@pytest.mark.parametrize("side", SIDES)
def test_no_side_goes_through_the_lazy_front_door(side: str) -> None:
    # `import sottovoce; sottovoce.sim` and importlib are invisible to import contracts
    for path in (SOURCE / side).rglob("*.py"):
        found = imported_by(path) & {"sottovoce", "importlib", "importlib.import_module", "__import__", "exec", "eval"}
        assert not found, (path.name, found)


def test_the_command_line_asks_the_front_door_for_the_version_alone() -> None:
    for path in [SOURCE / "__main__.py", *(SOURCE / "cli").rglob("*.py")]:
        names = imported_by(path)
        assert "sottovoce" not in names or "sottovoce.__version__" in names, path.name
        sides = {f"sottovoce.{side}" for side in SIDES if side not in ("api", "server", "planner")}
        assert not {name for name in names if name.count(".") == 1} & sides, path.name


def test_a_walk_through_the_front_door_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "breach.py"
    path.write_text("def late():\n    import sottovoce\n    return sottovoce.sim, __import__('sottovoce.sim')\n")
    assert imported_by(path) == {"sottovoce", "__import__"}
