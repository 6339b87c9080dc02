"""A collector that is sent nonsense takes what another account says that it may take, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks.collector_fuzz import fuzz


def check(found: dict[str, Any], requests: int) -> None:
    assert found["wrong"] == []
    assert found["requests"] == requests
    assert found["accepted"] > requests / 2
    assert found["lines said"] == 1  # where it listens
    assert max(found["memory"]) < found["memory"][-2] + 50  # MB; the first studies of each kind load what they need


def test_two_thousand_requests(tmp_path: Path) -> None:
    check(fuzz(tmp_path, 2000, seed=19), 2000)


@pytest.mark.slow
def test_a_hundred_thousand_requests(tmp_path: Path) -> None:
    check(fuzz(tmp_path, 100_000, seed=20), 100_000)
