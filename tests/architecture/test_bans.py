"""Randomness and pickling stay in their one home: ruff refuses them elsewhere, however they are spelt."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sottovoce"
BESIDE = Path(sys.executable).with_name("ruff")
RUFF = str(BESIDE) if BESIDE.exists() else shutil.which("ruff")
needs_ruff = pytest.mark.skipif(RUFF is None, reason="ruff is not installed; pip install ruff to check bans")

SPELLINGS = {
    "import numpy as np\n\nnp.random.default_rng(1)\n": 1,
    "import numpy as np\n\ndraw = np.random\n": 1,
    "import numpy\n\nnumpy.random.seed(1)\n": 1,
    "from numpy import random\n": 1,
    "import numpy.random as source\n": 1,
    "from numpy.random import default_rng\n": 1,
    "import random\n": 1,
    "from random import SystemRandom\n": 1,
    "import secrets\n": 1,
    "from secrets import token_bytes\n": 1,
    "import pickle\n": 1,
    "from pickle import dumps\n": 1,
    "import os\n\nos.urandom(8)\n": 1,
    "from os import urandom\n": 1,
    "def late() -> None:\n    import pickle\n": 1,
    "import os\n\nos.getpid()\n": 0,
    "import numpy as np\n\nnp.zeros(3)\n": 0,
}
HOMES = {
    "src/sottovoce/sim/**": ["TID251"],
    "src/sottovoce/core/random_source.py": ["TID251"],
    "papers/src/**": ["TID251"],
}


def banned(snippet: str, name: str) -> int:
    assert RUFF is not None
    done = subprocess.run(
        [RUFF, "check", "--select", "TID251", "--output-format", "concise", "--stdin-filename", name, "-"],
        cwd=ROOT,
        input=snippet,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.count("TID251")


@needs_ruff
@pytest.mark.parametrize(("snippet", "times"), SPELLINGS.items())
def test_every_spelling_is_refused_in_the_rooms(snippet: str, times: int) -> None:
    assert min(banned(snippet, "src/sottovoce/server/breach.py"), 1) == times


@needs_ruff
@pytest.mark.parametrize(
    "name",
    ["src/sottovoce/client/quantile/site.py", "src/sottovoce/client/reading/breach.py", "src/sottovoce/__init__.py"]
    + [f"src/sottovoce/{room}/breach.py" for room in ("protocol", "local", "api", "inference", "server")]
    + ["tests/client/test_breach.py"],
)
def test_no_other_place_is_exempt(name: str) -> None:
    assert banned("import secrets\nimport numpy as np\n\nnp.random.default_rng(1)\n", name) == 2


@needs_ruff
def test_the_homes_are_open() -> None:
    assert banned("import numpy as np\n\nnp.random.default_rng(1)\n", "src/sottovoce/sim/breach.py") == 0
    assert banned("import os\n\nos.urandom(8)\n", "src/sottovoce/core/random_source.py") == 0


def test_only_the_homes_are_exempt() -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "TID" in settings["select"]
    assert {"numpy.random", "random", "pickle", "secrets", "os.urandom"} <= set(
        settings["flake8-tidy-imports"]["banned-api"]
    )
    exempt = {
        place: rules for place, rules in settings["per-file-ignores"].items() if not set(rules) <= {"D", "ARG", "T20"}
    }
    assert {place: rules for place, rules in exempt.items() if "TID251" in rules or "TID" in rules} == HOMES
    words = [
        path for path in SOURCE.rglob("*.py") if "noqa: TID" in path.read_text() or "ruff: noqa" in path.read_text()
    ]
    assert words == []


def drawn_from(path: Path) -> set[str]:
    """Return which banned names a file uses, as dotted text; ruff can only exempt a file from all of them at once."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
    kinds = {"np.random": "numpy.random", "numpy.random": "numpy.random", "os.urandom": "os.urandom"}
    plain = {name: name for name in ("random", "secrets", "pickle")}
    return {
        kind for name in names for known, kind in {**kinds, **plain}.items() if (name + ".").startswith(known + ".")
    }


def test_each_home_uses_its_own_source_alone() -> None:
    assert drawn_from(SOURCE / "core" / "random_source.py") == {"os.urandom"}
    assert set().union(*map(drawn_from, (SOURCE / "sim").rglob("*.py"))) == {"numpy.random"}
