import json
from pathlib import Path

import pytest

from sottovoce_papers.harness import cache
from sottovoce_papers.harness.cell import Cell, Row, crossed, matches, plain
from sottovoce_papers.harness.measure import Measure, log_mean_square, mean, median, share

CELL = Cell("federated.walk", {"tau": 0.5, "method": "C1"}, 100, 1, "0.1.0/1")


@pytest.mark.parametrize(
    "other",
    [
        Cell("federated.other", {"tau": 0.5, "method": "C1"}, 100, 1, "0.1.0/1"),
        Cell("federated.walk", {"tau": 0.51, "method": "C1"}, 100, 1, "0.1.0/1"),
        Cell("federated.walk", {"tau": 0.5, "method": "C1"}, 101, 1, "0.1.0/1"),
        Cell("federated.walk", {"tau": 0.5, "method": "C1"}, 100, 2, "0.1.0/1"),
        Cell("federated.walk", {"tau": 0.5, "method": "C1"}, 100, 1, "0.1.0/2"),
    ],
)
def test_a_cell_is_kept_under_all_that_its_numbers_depend_on(other: Cell) -> None:
    assert CELL.key != other.key


def test_the_dice_of_a_cell_follow_from_what_it_is_and_the_seed_of_the_study() -> None:
    more = Cell(CELL.recipe, CELL.setting, 1000, 1, "9")
    elsewhere = Cell(CELL.recipe, {"tau": 0.5, "method": "C5"}, 100, 1, "0.1.0/1")
    another = Cell(CELL.recipe, CELL.setting, 100, 2, "0.1.0/1")
    assert CELL.dice == more.dice
    assert len({CELL.dice, elsewhere.dice, another.dice}) == 3


def test_kept_cells_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [Row({"tau": 0.5, "n": 10}, {"mae": Measure(0.1, 0.01, 100)}, {"path": [1.0, 2.5]})]
    cache.save(tmp_path, CELL, rows, 1.25)
    found = cache.load(tmp_path, CELL)
    assert found is not None
    assert (found.rows, found.seconds, found.seed, found.version) == (rows, 1.25, 1, "0.1.0/1")
    assert list(tmp_path.glob("*.part")) == []


def test_nothing_is_found_where_nothing_is_kept(tmp_path: Path) -> None:
    assert cache.load(tmp_path / "absent", CELL) is None


@pytest.mark.parametrize("text", ["", "{", '{"recipe": "x"}', "[]"])
def test_a_broken_file_counts_as_nothing(tmp_path: Path, text: str) -> None:
    cache.path_of(tmp_path, CELL).write_text(text)
    assert cache.load(tmp_path, CELL) is None


def test_a_file_of_another_cell_is_not_taken(tmp_path: Path) -> None:
    cache.save(tmp_path, CELL, [], 1.0)
    path = cache.path_of(tmp_path, CELL)
    other = json.loads(path.read_text())
    other["seed"] = 7
    path.write_text(json.dumps(other))
    assert cache.load(tmp_path, CELL) is None


def test_numbers_are_compared_as_numbers_and_words_as_words() -> None:
    assert plain("1e3") == plain(1000) == plain("1000.0") == "1000"
    assert plain("hetero") == "hetero"
    assert matches({"rate": 0.9}, {"rate": "0.90"})
    assert not matches({"rate": 0.9}, {"tau": 0.9})
    assert not matches({"rate": 0.9}, {"rate": [0.25, "hetero"]})


def test_blocks_are_crossed_with_the_last_key_fastest() -> None:
    assert [(s["a"], s["b"]) for s in crossed({"a": [1, 2], "b": ["x", "y"]})] == [
        (1, "x"),
        (1, "y"),
        (2, "x"),
        (2, "y"),
    ]


def test_measures_have_the_errors_of_textbooks() -> None:
    assert mean([1.0, 2.0, 3.0, 4.0]).error == pytest.approx((5 / 3) ** 0.5 / 2)
    assert mean([3.0]) == Measure(3.0, 0.0, 1)
    assert share([True] * 50 + [False] * 50).error == pytest.approx(0.05)
    found = log_mean_square([1.0, 2.0, 3.0])
    assert found.value == pytest.approx(1.5404450409)
    assert found.error == pytest.approx(mean([1.0, 4.0, 9.0]).error / (14 / 3))


def test_the_error_of_a_median_is_that_of_its_order_statistics() -> None:
    # Of 10,000 evenly spread numbers the middle one has standard error 1 / (2 sqrt(n)).
    assert median([i / 10_000 for i in range(10_000)]).error == pytest.approx(0.005, rel=0.01)
