"""The comparison of two trees runs on any tree that has the public names, and gives ratios."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import against

ROOT = Path(__file__).parents[2]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.against", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


def test_a_tree_against_itself() -> None:
    done = run(str(ROOT), "--turns", "2", "--json", "--only", "import", "coverage report")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["name"] for row in found] == ["import sottovoce", "coverage report, 100 sites"]
    for row in found:
        assert row["old"] > 0 < row["new"]
        assert row["low"] <= row["ratio"] <= row["high"]


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    done = run(str(tmp_path))
    assert done.returncode != 0
    assert "holds no src/sottovoce" in done.stderr


def test_a_ratio_is_marked_where_it_is_beyond_the_limit() -> None:
    assert against.line(against.Ratio("a", 1.0, 1.2, 1.2, 1.1, 1.3, 9)).endswith("slower")
    assert against.line(against.Ratio("a", 1.0, 1.2, 1.2, 1.0, 1.3, 9)).endswith("unsure")
    assert against.line(against.Ratio("a", 1.0, 1.0, 1.0, 0.9, 1.1, 9)).endswith("1.100")
    assert "import sottovoce" in against.names()
    assert len(set(against.names())) == 18
