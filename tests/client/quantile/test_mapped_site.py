"""A site whose records lie in a file answers what one with the same records in memory does, bit for bit."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sottovoce as sv
from sottovoce.client import mapped
from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile import ahead
from sottovoce.client.quantile import site as module
from sottovoce.client.quantile.site import Site, look_rounded
from sottovoce.client.reading.large import open_large
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import CellQuery, CoverageQuery, OrderQuery, Query, Study, SumQuery, WalkQuery
from sottovoce.protocol.summaries import SummaryQuery
from sottovoce.sim.randomness import dice

ROWS = 5_003
FLOATS = dice(3).generator().standard_normal(ROWS)
TIED = np.round(3 * FLOATS)  # with both zeros
QUERIES = [
    Query(1, (0.1, -0.2), (41, 7)),
    Query(2, (0.0, 0.5, -1.5), (300, 900, 250)),
    Query(3, (0.3, 0.7), (400, 0), periods=(0.5, 0.0)),
    WalkQuery(4, (0.2,), (1_200,), 0.05),
    Query(5, (-0.4, 0.9), (1, 1_500)),
]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small site have many pieces."""
    monkeypatch.setattr(mapped, "ROWS", 777)
    monkeypatch.setattr(module, "CHUNK", 256)
    monkeypatch.setattr(ahead, "BATCH", 700)


def spooled(folder: Path, values: Floats = FLOATS) -> Records:
    pyarrow.parquet.write_table(pa.table({"x": values}), folder / "north.parquet")
    records = open_large(folder / "north.parquet", "x", folder / "spools").records
    assert mapped.is_mapped(records.values())
    return records


def replies(records: Records, resolution: float = 0.0, epsilon: float = 1.0) -> list[Any]:
    site = Site(records, Study(0.5, epsilon, resolution), dice(7))
    return [site.reply(query.round, query) for query in QUERIES]


@pytest.mark.parametrize("sparse", [1, 1 << 20])
@pytest.mark.parametrize("resolution", [0.0, 0.25])
def test_the_random_order_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolution: float, sparse: int
) -> None:
    monkeypatch.setattr(mapped, "SPARSE", sparse)
    assert replies(spooled(tmp_path), resolution) == replies(Records(FLOATS), resolution)


@pytest.mark.parametrize("resolution", [0.0, 0.25])
def test_a_scan_gives_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolution: float) -> None:
    scanned, plain = list[Query](), Site._scan

    def noted(site: Site, query: Query, first: int) -> Any:
        scanned.append(query)
        return plain(site, query, first)

    monkeypatch.setattr(Site, "_scan", noted)
    for name, value in (("LARGE", 100), ("PART", 0.01), ("MAPPED_PART", 0.01)):
        monkeypatch.setattr(module, name, value)
    assert replies(spooled(tmp_path), resolution) == replies(Records(FLOATS), resolution)
    assert [query.round for query in scanned] == [2, 5] * 2


def test_many_records_of_a_file_are_scanned_at_any_number_of_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = spooled(tmp_path)

    def scans(held: Records, asked: int, points: int = 2, **how: Any) -> bool:
        query = Query(1, (0.0,) * points, (asked, *[0] * (points - 1)), **how)
        return Site(held, Study(0.5, 1.0), dice(1))._scans(query)

    assert not scans(records, ROWS)
    monkeypatch.setattr(module, "LARGE", 100)
    assert [scans(records, asked) for asked in (625, 626)] == [False, True]
    assert scans(records, 626, points=100)
    assert not scans(Records(FLOATS), ROWS, points=100)
    assert not scans(records, ROWS, periods=(1.0, 0.0))
    monkeypatch.setattr(ahead, "BATCH", 50)
    assert [scans(records, asked) for asked in (200, 201)] == [False, True]
    assert not scans(Records(FLOATS), 626)


@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
def test_a_whole_study_is_the_same(tmp_path: Path) -> None:
    def study(records: Records) -> Any:
        return sv.federated_quantile({"north": records}, 0.5, 4.0, randomness=sv.sim.dice(5))

    one, other = study(spooled(tmp_path)), study(Records(FLOATS))
    assert (one.estimate, one.interval) == (other.estimate, other.interval)
    assert math.isfinite(one.estimate)


@pytest.mark.parametrize("values", [FLOATS, TIED])
def test_order_statistics_and_counts_are_the_same(tmp_path: Path, values: Floats) -> None:
    edges, orders = (-1.0, 0.0, 0.5, 2.0), (1, 700, 2_502, ROWS, ROWS + 5)
    asked = [
        (OpenSite, (Study(0.3, math.inf),), SummaryQuery(1, 0.3, 0.9)),
        (OpenSite, (Study(0.9999, math.inf),), SummaryQuery(1, 0.9999, 0.99)),
        (CalibrationSite, (math.inf,), OrderQuery(orders)),
        (CalibrationSite, (1.0,), CellQuery("sparse-vector", 4_500, 1.0, edges)),
        (CoverageSite, (math.inf,), CoverageQuery(0.5, 0, orders)),
        (SharingSite, (2, math.inf), SumQuery(edges, 0, 2)),
    ]
    held = spooled(tmp_path, values)
    for kind, how, query in asked:
        said = [kind(records, *how, dice(7)).reply(1, query) for records in (held, Records(values))]
        assert said[0] == said[1], kind


def test_an_open_site_cannot_spread_what_it_does_not_hold(tmp_path: Path) -> None:
    site = OpenSite(spooled(tmp_path), Study(0.5, math.inf, 0.5), dice(1))
    with pytest.raises(BadInput, match="a site larger than memory cannot spread its records over a step; open it"):
        site.reply(1, SummaryQuery(1, 0.5, 0.95))
    assert site.spent == 0


def test_hints_are_the_same(tmp_path: Path) -> None:
    assert not look_rounded(spooled(tmp_path))
    assert look_rounded(spooled(tmp_path, TIED))
