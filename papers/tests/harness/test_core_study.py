from pathlib import Path
from typing import Any

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice
from sottovoce_papers import recipes
from sottovoce_papers.harness import files, study
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.item import Item, read_item
from sottovoce_papers.harness.measure import share

TABLE = """
title = "Table 1. A coin"
recipe = "tiny.coin"
replications = 400
printed_replications = 400
rows = ["chance"]
quantities = ["heads"]
data = {data}
[[cells]]
chance = [0.2, 0.5, 0.8]
method = "coin"
"""


class Coin:
    """A recipe that counts how often it is asked."""

    VERSION = 1

    def __init__(self, fails_at: float | None = None) -> None:
        self.asked: list[float] = []
        self.fails_at = fails_at

    def run(self, setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
        if setting["chance"] == self.fails_at:
            raise KeyboardInterrupt
        chance = float(setting["chance"])
        self.asked.append(chance)
        tosses = dice(seed).generator().random(replications) < chance
        return [Row({}, {"heads": share(tosses)}, {"first": [float(tosses[0])]})]

    def cost(self, setting: Setting, replications: int) -> float:
        return float(setting["chance"]) * replications


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> Coin:
    coin = Coin()
    monkeypatch.setattr(recipes, "find", lambda name: coin)
    return coin


def item(tmp_path: Path, data: str = "[]") -> Item:
    folder = tmp_path / "a-paper"
    folder.mkdir(exist_ok=True)
    (folder / "table-1.toml").write_text(TABLE.format(data=data))
    (folder / "table-1.print.csv").write_text("chance,method,quantity,value\n0.5,coin,heads,0.49\n0.8,coin,heads,0.2\n")
    return read_item(folder / "table-1.toml")


def test_a_study_runs_every_cell_and_compares(tmp_path: Path, coin: Coin) -> None:
    (found,) = study.reproduce([item(tmp_path)], tmp_path / "cells")
    assert [row.where for row in found.rows] == [{"chance": c, "method": "coin"} for c in (0.2, 0.5, 0.8)]
    assert [number.agrees for number in found.numbers] == [True, False]
    assert found.replications == 400


def test_the_longest_cells_come_first(tmp_path: Path, coin: Coin) -> None:
    study.reproduce([item(tmp_path)], tmp_path / "cells")
    assert coin.asked == [0.8, 0.5, 0.2]


def test_an_interrupted_study_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Coin(fails_at=0.5)
    monkeypatch.setattr(recipes, "find", lambda name: broken)
    with pytest.raises(KeyboardInterrupt):
        study.reproduce([item(tmp_path)], tmp_path / "cells")
    whole = Coin()
    monkeypatch.setattr(recipes, "find", lambda name: whole)
    (resumed,) = study.reproduce([item(tmp_path)], tmp_path / "cells")
    assert (broken.asked, whole.asked) == ([0.8], [0.5, 0.2])
    (at_once,) = study.reproduce([item(tmp_path)], tmp_path / "elsewhere")
    assert at_once.rows == resumed.rows


@pytest.mark.parametrize("change", [{"scale": "small"}, {"replications": 50}, {"seed": 2}])
def test_another_request_is_another_cell(tmp_path: Path, coin: Coin, change: dict[str, Any]) -> None:
    study.reproduce([item(tmp_path)], tmp_path / "cells")
    study.reproduce([item(tmp_path)], tmp_path / "cells", **change)
    assert len(coin.asked) == 6


def test_a_new_version_of_a_recipe_is_run_again(tmp_path: Path, coin: Coin) -> None:
    study.reproduce([item(tmp_path)], tmp_path / "cells")
    coin.VERSION = 2
    study.reproduce([item(tmp_path)], tmp_path / "cells")
    assert len(coin.asked) == 6


def test_two_items_share_their_cells(tmp_path: Path, coin: Coin) -> None:
    one = item(tmp_path)
    first, second = study.reproduce([one, one], tmp_path / "cells")
    assert len(coin.asked) == 3
    assert first.rows == second.rows


def test_items_whose_data_are_absent_are_skipped_and_say_so(tmp_path: Path, coin: Coin) -> None:
    wanting = item(tmp_path, '["gov_census"]')
    (skipped,) = study.reproduce([wanting], tmp_path / "cells", tmp_path)
    assert "needs the data set gov_census" in skipped.skipped
    assert (skipped.rows, coin.asked) == ([], [])
    (tmp_path / "gov_census").mkdir()
    (found,) = study.reproduce([wanting], tmp_path / "cells", tmp_path)
    assert (found.skipped, len(found.rows)) == ("", 3)


def test_progress_hears_of_every_cell_once_kept_ones_too(tmp_path: Path, coin: Coin) -> None:
    heard = []
    for _ in range(2):
        study.reproduce([item(tmp_path)], tmp_path / "cells", progress=lambda cell, seconds: heard.append(cell.key))
    assert len(heard) == 6
    assert len(set(heard)) == 3


def test_ours_are_written_one_number_a_line(tmp_path: Path, coin: Coin) -> None:
    (found,) = study.reproduce([item(tmp_path)], tmp_path / "cells", replications=10)
    path = files.record(found.item, found.rows, tmp_path / "ours.csv")
    lines = path.read_text().splitlines()
    assert lines[0] == "chance,method,quantity,value,error,replications"
    assert len(lines) == 4
    assert lines[1].startswith("0.2,coin,heads,")
    assert lines[1].endswith(",10")


def test_a_recipe_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"there is no recipe 'federated\.nothing'"):
        recipes.find("federated.nothing")
    with pytest.raises(BadInput, match=r"there is no recipe 'nothing\.walk'"):
        recipes.find("nothing.walk")


def test_what_is_found_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    table = """
title = "Table 1. Two cells"
recipe = "regression.trajectory"
replications = 2
rows = ["tau"]
quantities = ["error"]
[[cells]]
tau = [0.5, 0.75]
p = 1
epsilon = 2.0
until = 3000
step = "normalised"
"""
    (tmp_path / "a-paper").mkdir()
    (tmp_path / "a-paper" / "table-1.toml").write_text(table)
    asked = [read_item(tmp_path / "a-paper" / "table-1.toml")]
    (alone,) = study.reproduce(asked, tmp_path / "one", jobs=1)
    (together,) = study.reproduce(asked, tmp_path / "two", jobs=2)
    assert alone.rows == together.rows
    assert len({row.measures["error"].value for row in alone.rows}) == len(alone.rows) > 2
