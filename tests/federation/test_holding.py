"""What a site holds is read as its policy says: the same records after every start, one a person, or from a spool."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.federation.site.holding import read_holding
from sottovoce.federation.site.policy import policy_of


def policy(**records: Any) -> Any:
    limits = {"epsilon": 1.0, "total": 2.0}
    given = {"name": "north", "source": "waits", "records": {"value": "wait", **records}, "limits": limits}
    return policy_of(given)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    rows = [f"p{k % 300},{k / 7}" for k in range(900)] + ["p300,"]
    (tmp_path / "a.csv").write_text("\n".join(["patient,wait", *rows[:450]]) + "\n")
    (tmp_path / "b.csv").write_text("\n".join(["patient,wait", *rows[450:]]) + "\n")
    return [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]


def test_several_files_are_one_site_and_its_rows_are_known_again(files: list[str], tmp_path: Path) -> None:
    one, two = (read_holding(files, policy(missing="drop")) for _ in range(2))
    assert one.records.size == 900
    assert one.rows == two.rows
    assert one.people is None
    Path(files[0]).write_text(Path(files[0]).read_text().replace("p1,0.14", "p1,0.15", 1))
    assert read_holding(files, policy(missing="drop")).rows != one.rows
    assert "0.14" not in repr(one)


def test_a_person_has_one_record_always_the_same_and_is_enrolled(files: list[str]) -> None:
    one, two = (read_holding(files, policy(person="patient", missing="drop")) for _ in range(2))
    assert one.records.size == 300
    assert one.rows == two.rows
    assert one.people is not None
    assert sorted(one.people) == sorted(f"p{k}".encode() for k in range(300))  # without the one who has no record


def test_a_spool_holds_the_same_records(files: list[str], tmp_path: Path) -> None:
    plain = read_holding(files, policy(missing="drop"))
    kept = read_holding(files, policy(missing="drop", spool=str(tmp_path / "spool")))
    np.testing.assert_array_equal(np.asarray(kept.records.values()), plain.records.values())
    assert kept.rows == plain.rows
    with pytest.raises(BadInput, match="not chosen by person"):
        read_holding(files, policy(person="patient", spool=str(tmp_path / "spool")))
