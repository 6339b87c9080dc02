"""Kill -9 of a site and of the coordinator at every point of a round: no record twice, no reply lost, all accounted."""

from pathlib import Path
from typing import Any

import pytest
from tests.federation.faults import POINTS, SITES, run

from sottovoce.client.site_ledger import SiteLedger

ROUNDS = (1, 9, 22)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    found, deaths = run(tmp_path_factory.mktemp("undisturbed"))
    assert deaths == 0
    return found


def cases() -> list[Any]:
    """Return every point at every round; each point is quick at one of them, and the rest is slow."""
    return [
        pytest.param(point, round, marks=() if (at + k) % len(ROUNDS) == 0 else pytest.mark.slow)
        for at, point in enumerate(POINTS)
        for k, round in enumerate(ROUNDS)
    ]


@pytest.mark.parametrize(("point", "round"), cases())
def test_a_study_survives(point: str, round: int, undisturbed: str, tmp_path: Path) -> None:
    found, deaths = run(tmp_path, point, round)
    assert deaths == 1
    assert found == undisturbed
    for name in SITES:
        with SiteLedger(tmp_path / f"{name}.ledger") as ledger:
            assert ledger.verify() == []
            [study] = ledger.show()["studies"]
            assert study["state"] == "closed"
