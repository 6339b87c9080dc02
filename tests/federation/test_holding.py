"""What a site holds is read as its policy says: the same records after every start, one a person, or from a spool."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import BadInput
from sottovoce.federation.site.features import AskedColumns
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


@pytest.fixture
def wide(tmp_path: Path) -> list[str]:
    rows = [f"p{k % 300},{k / 7},{k % 11},{'AB'[k % 2]}" for k in range(600)] + ["p300,1,,A", "p301,1,2,", "p302,,3,B"]
    for name, part in (("a", rows[:450]), ("b", rows[450:])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["patient,wait,age,ward", *part]) + "\n")
    return [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]


BESIDE = {"features": ["age"], "categories": ["ward"], "missing": "drop"}


def test_covariates_are_read_beside_the_records_and_known_again(wide: list[str]) -> None:
    one, two = (read_holding(wide, policy(**BESIDE)) for _ in range(2))
    assert (one.records.size, one.rows, one.people) == (600, two.rows, None)
    assert "values hidden" in repr(one.features)
    asked = AskedColumns("wait", ("ward", "age"), {"ward": ("B", "other")}, read_bounds([(0, 1), (0, 5)], ("w", "age")))
    assert one.features is not None
    rows = one.features.rows(asked, one.records.values())
    k = np.arange(600)
    np.testing.assert_array_equal(rows.features()[:, 0], np.where(k % 2, -1.0, 1.0))  # A is not named: other
    np.testing.assert_array_equal(rows.features()[:, 1], (np.minimum(k % 11, 5) - 2.5) / 2.5)  # beyond 5: moved there
    np.testing.assert_array_equal(rows.response(), one.records.values())
    Path(wide[0]).write_text(
        Path(wide[0]).read_text().replace("p1,0.14285714285714285,1,", "p1,0.14285714285714285,2,")
    )
    assert read_holding(wide, policy(**BESIDE)).rows != one.rows
    with pytest.raises(TypeError, match="do not leave the site"):
        copy.copy(one.features)


def test_a_person_has_one_whole_row(wide: list[str]) -> None:
    one, two = (read_holding(wide, policy(**BESIDE, person="patient")) for _ in range(2))
    assert (one.records.size, one.rows) == (300, two.rows)
    assert one.people == sorted(f"p{k}".encode() for k in range(300))  # without those who lack something


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ({"features": ["age"]}, "missing value; remove such rows"),
        ({**BESIDE, "categories": ["age"]}, "names a column twice"),
        ({**BESIDE, "features": ["ward"], "categories": ["age"]}, "ward"),
        ({**BESIDE, "features": ["height"]}, "height"),
        ({**BESIDE, "features": "age"}, "must be a list of texts"),
        ({**BESIDE, "spool": "here"}, "a spool, which holds one column"),
    ],
)
def test_columns_that_cannot_be_opened_are_said_when_the_site_starts(
    wide: list[str], records: dict[str, Any], why: str
) -> None:
    with pytest.raises(BadInput, match=why):
        read_holding(wide, policy(**records))
