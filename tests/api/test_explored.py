"""A file that is asked about by many columns: its sites, what is left out, and costs by row, whatever the column."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.api.explored import ExploredFile, FileQuestion, RowCost, plan_of_all
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.server.quantile.levels import QuantilesResult
from sottovoce.server.quantile.result import QuantileResult

N = 6000
WAIT = FileQuestion("wait", (0.5,), 2.0, method="certified")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    draw = sv.sim.dice(5).generator()
    wait = draw.gamma(2.0, 10.0, N)
    wait[:100] = np.nan
    columns: dict[str, Any] = {
        "wait": wait,
        "age": draw.integers(18, 90, N),
        "clinic": [("north", "south", "south")[k % 3] for k in range(N)],
        "ward": [None if k % 10 == 0 else f"w{k % 4}" for k in range(N)],
        "note": [f"n{k % 2500}" for k in range(N)],
        "who": [k // 2 for k in range(N)],
        "row": [k % 5 for k in range(N)],
    }
    pq.write_table(pa.table(columns), tmp_path / "waits.parquet")
    return tmp_path / "waits.parquet"


@pytest.fixture
def file(path: Path) -> ExploredFile:
    return ExploredFile(path)


def test_sites_and_what_is_left_out(file: ExploredFile) -> None:
    assert file.sites(WAIT) == {"waits": N - 100}
    assert file.sites(WAIT._replace(site="clinic")) == {"north": 1966, "south": 3934}
    roster = plan_of_all(file.plan(WAIT._replace(site="ward"))).roster
    assert (sum(roster.sizes), roster.unplaced, sum(roster.dropped.values())) == (5310, 600, 90)
    assert roster.column == "wait"
    assert plan_of_all(file.plan(WAIT._replace(site="clinic", only="north"))).names == ("north",)
    assert set(file.sites(WAIT._replace(site="row"))) == {"0", "1", "2", "3", "4"}


def test_a_row_pays_whichever_of_its_columns_is_asked(file: ExploredFile) -> None:
    assert file.cost(WAIT) == RowCost(0.0, 2.0)
    first = file.run(WAIT)
    assert first.private
    assert first.epsilon_in_all == {"waits": 2.0}
    age = FileQuestion("age", (0.5,), 1.0, site="clinic", method="certified")
    second = file.run(age)
    assert second.epsilon_in_all == {"north": 3.0, "south": 3.0}
    assert file.cost(WAIT._replace(site="clinic", only="north")) == RowCost(3.0, 5.0)
    third = file.run(age._replace(only="north"))
    assert third.epsilon_in_all == {"north": 4.0}
    assert file.cost(age._replace(only="south")) == RowCost(3.0, 4.0)
    assert file.spent == 4.0


def test_rows_whose_value_is_missing_do_not_pay(tmp_path: Path) -> None:
    half = [float(k) if k < 3000 else None for k in range(N)]
    pq.write_table(pa.table({"one": half, "two": half[::-1]}), tmp_path / "halves.parquet")
    file = ExploredFile(tmp_path / "halves.parquet")
    file.run(FileQuestion("one", (0.5,), 2.0, method="certified"))
    assert file.cost(FileQuestion("two", (0.5,), 2.0)) == RowCost(0.0, 2.0)


def test_several_levels_say_what_they_cost_in_all(file: ExploredFile) -> None:
    found = file.run(FileQuestion("age", (0.75, 0.25), 4.0, method="certified"))
    assert isinstance(found, QuantilesResult)
    assert found.taus == (0.25, 0.75)
    assert found.epsilon_in_all == {"waits": 4.0}
    again = file.run(FileQuestion("wait", (0.25, 0.75), 4.0, method="certified"))
    assert isinstance(again, QuantilesResult)
    assert again.to_dict()["epsilon_in_all"] == {"waits": 8.0}
    assert [each.epsilon_in_all for each in again.results] == [{"waits": 8.0}] * 2


def test_a_question_beyond_the_limit_is_refused_and_costs_nothing(file: ExploredFile) -> None:
    with sv.limit(epsilon=3):
        file.run(WAIT)
        with pytest.raises(
            BadInput, match="would have cost epsilon 4 in all, of which 2 is spent already, and the limit is 3"
        ):
            file.run(FileQuestion("age", (0.5,), 2.0))
        assert file.spent == 2.0
        file.run(FileQuestion("age", (0.5,), 1.0, method="certified"))
    assert file.spent == 3.0


def test_what_is_refused_while_it_is_planned_or_begun_costs_nothing(
    file: ExploredFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Infeasible):
        file.run(FileQuestion("wait", (0.001,), 0.1))

    def refuse(*_: Any) -> None:
        raise BadInput("no.")

    monkeypatch.setattr("sottovoce.api.explored.run_study", refuse)
    with pytest.raises(BadInput, match=r"no\."):
        file.run(WAIT)
    assert file.spent == 0.0


def test_of_each_person_one_row_answers_all_questions(path: Path) -> None:
    file = ExploredFile(path, person="who")
    assert (file.rows, file.left_out) == (N // 2, N // 2)
    assert "who" not in [column.name for column in file.columns]
    found = file.run(FileQuestion("age", (0.5,), 2.0, site="clinic", method="certified"))
    assert isinstance(found, QuantileResult)
    assert "Each person answered at most once" in found.promise
    assert found.plan.roster.left_out == N // 2
    with pytest.raises(BadInput, match="no column 'whom'"):
        ExploredFile(path, person="whom")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (WAIT._replace(value="wiat"), "no column 'wiat'"),
        (WAIT._replace(value="clinic"), "holds categories and cannot be asked about"),
        (WAIT._replace(value="age", site="wait"), "holds numbers and cannot say where a record is held"),
        (WAIT._replace(site="age"), "holds more than 30 different numbers, as records do"),
        (WAIT._replace(value="age", site="age"), "is chosen for values and for sites"),
        (WAIT._replace(site="clinic", only="nroth"), "no site 'nroth'"),
        (WAIT._replace(site="note"), "holds more than 2,000 different labels, as records do"),
        (WAIT._replace(only="waits2"), "no site 'waits2'"),
        (WAIT._replace(epsilon=math.nan), "must be a number"),
        (WAIT._replace(taus=(1.5,)), "1.5"),
        (WAIT._replace(taus=()), "tau"),
        (WAIT._replace(method="best"), "method 'best' is unknown"),
        (WAIT._replace(taus=(0.25, 0.5), method="sequence"), "for several levels method"),
        (WAIT._replace(bounds=("1", "0")), "low < high"),
        (WAIT._replace(kind="colours"), "kind 'colours'"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(file: ExploredFile, question: FileQuestion, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        file.plan(question)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_many_choices_of_columns_are_forgotten_in_turn(file: ExploredFile) -> None:
    for site in (None, "clinic", "ward", "row", "who"):
        for value in ("wait", "age"):
            try:
                file.sites(FileQuestion(value, (0.5,), 1.0, site=site))
            except BadInput:
                assert site == "who"
    assert len(file._chosen) <= 8
