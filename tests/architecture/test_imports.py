"""The import contracts hold, and each of them would notice its own breach."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sottovoce"
SERVER = ("protocol", "channels", "design", "estimators", "inference")
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


def copied(where: Path) -> Path:
    shutil.copytree(SOURCE, where / "sottovoce", ignore=shutil.ignore_patterns("__pycache__"))
    return where


def test_the_contracts_are_kept(tmp_path: Path) -> None:
    code, said = lint(ROOT / "src", tmp_path)
    assert code == 0, said
    assert " 0 broken" in said


BREACHES = {
    "protocol/walk.py": (
        "from sottovoce.protocol.randomised_response import binary",
        "depends on nothing but the errors",
    ),
    "protocol/randomised_response.py": ("from sottovoce.client.ledger import Ledger", "can reach a record"),
    "server/regression/design/omega.py": ("from sottovoce.client.regression.rows import Rows", "can reach a record"),
    "server/quantile/feasibility.py": ("from sottovoce.local.quantile.walk_messages import run", "can reach a record"),
    "inference/quantile/fieller.py": ("from sottovoce.server.quantile.estimate import Estimate", "sees averages only"),
    "client/quantile/ties.py": (
        "from sottovoce.inference.quantile.fieller import Line",
        "neither estimates nor infers",
    ),
    "local/quantile/walk_messages.py": ("from sottovoce.sim.randomness import dice", "Nobody imports what is seeded"),
    "local/quantile/conversation.py": ("from sottovoce.server import privacy_statement", "stands on the rooms below"),
}
STRANGERS = {
    "annexe.py": ("import math", "every room is named here"),
    "cli/breach.py": ("from sottovoce.client.quantile.site import Site", "never by an adapter"),
    "cli/another.py": ("from sottovoce.server.quantile.estimate import Estimate", "the facade alone"),
}


def test_every_contract_notices_its_breach(tmp_path: Path) -> None:
    package = copied(tmp_path) / "sottovoce"
    for name, (line, _) in BREACHES.items():
        path = package / name
        # inside a function: a late import is an import all the same
        path.write_text(path.read_text() + f"\n\ndef breach():\n    {line}\n")
    for name, (line, _) in STRANGERS.items():
        path = package / name
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(f"{line}\n")
    code, said = lint(tmp_path, tmp_path)
    assert code == 1, said
    broken = [row for row in said.splitlines() if row.endswith("BROKEN")]
    contracts = (ROOT / ".importlinter").read_text().count("[importlinter:contract:")
    assert len(broken) == contracts, said
    for name, (line, words) in {**BREACHES, **STRANGERS}.items():
        assert any(words in row for row in broken), words
        if "sottovoce" in line:
            module = "sottovoce." + name.removesuffix(".py").replace("/", ".")
            assert f"{module} -> {line.split()[1]}" in said, name
    assert "sottovoce.annexe" in said


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


@pytest.mark.parametrize("room", [*SERVER, "client", "engine"])
def test_no_room_goes_through_the_lazy_front_door(room: str) -> None:
    # `import sottovoce; sottovoce.sim` and importlib are invisible to import contracts
    for path in (SOURCE / room).rglob("*.py"):
        found = imported_by(path) & {"sottovoce", "importlib", "importlib.import_module", "__import__", "exec", "eval"}
        assert not found, (path.name, found)


def test_a_walk_through_the_front_door_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "breach.py"
    path.write_text("def late():\n    import sottovoce\n    return sottovoce.sim, __import__('sottovoce.sim')\n")
    assert imported_by(path) == {"sottovoce", "__import__"}
