"""Scores are read from files: one is enough for a site, all may be equal, and fresh ones come from other files."""

from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.api.conformal.threshold import read_scores


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "north.csv").write_text("residual,clinic,whose\n" + "0.5,a,1\n" * 12)
    (tmp_path / "south.csv").write_text("residual,clinic,whose\n0.5,b,2\n")
    (tmp_path / "days.csv").write_text("residual,clinic,whose\n2013-05-01,c,3\n")
    return tmp_path


def test_one_score_is_enough_and_all_may_be_equal(folder: Path) -> None:
    table = read_scores(f"{folder}/*th.csv", score="residual")
    assert table.names == ("north", "south")
    assert [records.size for records in table.records] == [12, 1]
    assert sv.conformal_threshold(table).value == 0.5


def test_sites_and_persons_may_be_columns(folder: Path) -> None:
    paths = [folder / "north.csv", folder / "south.csv"]
    table = read_scores(paths, score="residual", site="clinic", person="whose", randomness=sv.sim.dice(1))
    assert table.names == ("a", "b")
    assert (table.per_person, table.left_out, table.seeded) == (True, 11, True)
    assert read_scores(paths, score="residual", site="clinic", randomness=sv.sim.dice(1)).seeded is False


def test_dates_are_no_scores(folder: Path) -> None:
    with pytest.raises(sv.BadInput, match="column 'residual' holds dates, and scores must be numbers"):
        read_scores(folder / "days.csv", score="residual")


def test_fresh_scores_come_from_other_files(folder: Path) -> None:
    read_scores(folder / "south.csv", score="residual", apart_from=folder / "north.csv")
    with pytest.raises(sv.BadInput, match=r"north\.csv is to judge the threshold that it makes"):
        read_scores(f"{folder}/*th.csv", score="residual", apart_from=[f"{folder}/n*.csv"])
