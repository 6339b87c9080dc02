"""Frames and files become the sites of a study, with dice where persons are drawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.client.reading.table import SiteTable
from sottovoce.sim.randomness import dice

COLUMNS: dict[str, Any] = {
    "wait": [3.0, 4.0, 9.0, 5.0, 8.0, 1.0],
    "clinic": ["a", "b", "a", "b", "b", "a"],
    "who": [1, 2, 1, 2, 3, 4],
}


def shown(table: SiteTable) -> dict[str, list[float]]:
    return {name: records.values().tolist() for name, records in zip(table.names, table.records, strict=True)}


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)], ids=lambda x: type(x).__module__
)
def test_every_kind_of_frame_gives_the_same_sites(frame: Any) -> None:
    table = sv.read_frame(frame, value="wait", site="clinic")
    assert shown(table) == {"a": [3.0, 9.0, 1.0], "b": [4.0, 5.0, 8.0]}
    assert not table.per_person


def test_the_dice_draw_one_record_a_person() -> None:
    tables = [
        sv.read_frame(pa.table(COLUMNS), value="wait", site="clinic", person="who", randomness=dice(seed))
        for seed in (1, 1, 2, 3, 4, 5, 6, 7)
    ]
    assert shown(tables[0]) == shown(tables[1])
    assert len({str(shown(table)) for table in tables}) > 1
    assert all(table.per_person and table.left_out == 2 for table in tables)
    drawn = sv.read_frame(pa.table(COLUMNS), value="wait", site="clinic", person="who")
    assert sorted(map(len, shown(drawn).values())) == [2, 2]


def test_files_are_sites_or_hold_a_site_column(tmp_path: Path) -> None:
    pq.write_table(pa.table(COLUMNS), tmp_path / "all.parquet")
    assert shown(sv.read_files(tmp_path / "all.parquet", value="wait", site="clinic")) == {
        "a": [3.0, 9.0, 1.0],
        "b": [4.0, 5.0, 8.0],
    }
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text("wait\n1.5\n2.5\n", encoding="utf-8")
    both = sv.read_files(str(tmp_path / "*.csv"), value="wait")
    assert shown(both) == {"north": [1.5, 2.5], "south": [1.5, 2.5]}


def test_missing_values_are_refused_or_counted() -> None:
    frame = pd.DataFrame({"wait": [1.0, np.nan, 3.0, 4.0, 5.0], "clinic": list("aaabb")})
    with pytest.raises(sv.BadInput, match="missing"):
        sv.read_frame(frame, value="wait", site="clinic")
    assert dict(sv.read_frame(frame, value="wait", site="clinic", missing="drop").dropped) == {"a": 1, "b": 0}
