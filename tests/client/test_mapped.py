"""Mapped columns are gone through in blocks, fetched from in the order of the file, and take no memory meanwhile."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sottovoce.client import fingerprint, mapped
from sottovoce.client.fingerprint import chance_of, changes, mark
from sottovoce.client.mapped import blocks, evenly, fetch, is_mapped, let_go, map_floats
from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice

ROWS = 50_000
FLOATS = dice(3).generator().standard_normal(ROWS)
TIED = np.round(FLOATS)


def on_disk(folder: Path, values: Floats = FLOATS) -> Floats:
    path = folder / "column"
    path.write_bytes(values.tobytes())
    with path.open("rb") as file:
        return map_floats(file.fileno(), len(values))


def test_ours_is_told_from_others(tmp_path: Path) -> None:
    column = on_disk(tmp_path)
    assert is_mapped(column)
    assert is_mapped(column[7:90])
    assert is_mapped(column[7:90][::2])
    assert not is_mapped(FLOATS)
    assert not is_mapped(column.copy())
    assert np.array_equal(column, FLOATS)


def test_a_map_of_others_keeps_what_it_has(tmp_path: Path) -> None:
    on_disk(tmp_path)
    theirs = np.memmap(tmp_path / "column", np.float64, mode="c")
    theirs[:] = 7.0
    let_go(theirs)
    assert (theirs == 7.0).all()
    assert not is_mapped(theirs)


@pytest.mark.parametrize("sparse", [1, 1 << 20])
@pytest.mark.parametrize("begin", [0, 1_001])
def test_values_are_fetched_in_the_order_they_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: int, begin: int
) -> None:
    monkeypatch.setattr(mapped, "SPARSE", sparse)
    monkeypatch.setattr(mapped, "ROWS", 7_777)
    column = on_disk(tmp_path)[begin:]
    places = dice(5).generator().permutation(len(column))[:999].astype(np.uint64)
    assert np.array_equal(fetch(column, places), FLOATS[begin:][places])
    ends = np.array([len(column) - 1, 0], dtype=np.uint64)
    assert np.array_equal(fetch(column, ends), FLOATS[begin:][ends])
    assert len(fetch(column, ends[:0])) == 0


def test_blocks_and_samples_are_those_of_the_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "ROWS", 7_777)
    column = on_disk(tmp_path)
    assert np.array_equal(np.concatenate([block.copy() for block in blocks(column)]), FLOATS)
    for rows in (100, 4_096, 10**6):
        assert np.array_equal(evenly(column, rows), evenly(FLOATS, rows))


@pytest.mark.parametrize("values", [FLOATS, TIED])
def test_fingerprints_are_those_of_the_values(tmp_path: Path, values: Floats) -> None:
    column = on_disk(tmp_path, values)
    one, other = (mark([each, values[:90]])._asdict() for each in (column, values))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert (changes(column), chance_of(column)) == (changes(values), chance_of(values))


def test_changes_are_counted_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    known = int(np.count_nonzero(np.diff(TIED)))
    for chunk in (1, 7, 4_999, ROWS - 1, ROWS):
        monkeypatch.setattr(fingerprint, "_CHUNK", chunk)
        assert changes(TIED) == known
    assert changes(TIED[:1]) == 0


MEMORY = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet
from sottovoce.client import mapped
from sottovoce.client.fingerprint import mark
from sottovoce.client.quantile import ahead, site as module
from sottovoce.client.quantile.site import Site, look_rounded
from sottovoce.client.reading.large import open_large
from sottovoce.protocol.messages import Query, Study

folder, rows = Path(sys.argv[1]), 1 << 24
mapped.ROWS, ahead.BATCH, module.LARGE = 1 << 17, 1 << 18, 1000

def study(name, size):
    records = open_large(folder / name, "x", folder / "spools").records
    site = Site(records, Study(0.5, 1.0))
    queries = [Query(1, (0.1,), (size // 50,)), Query(2, (0.2,), (size // 4,))]
    assert [site._scans(query) for query in queries] == [False, True]
    for query in queries:
        site.tally(query)
    look_rounded(records)
    mark([records.values()])

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

schema = pa.schema([("x", pa.float64())])
for name, groups in (("small.parquet", 1), ("large.parquet", rows >> 18)):
    with pyarrow.parquet.ParquetWriter(folder / name, schema, use_dictionary=False, compression="none") as writer:
        for group in range(groups):
            writer.write_table(pa.table([np.arange(group, group + 1, 2.0**-18)], schema=schema))
study("small.parquet", 1 << 18)
Path("/proc/self/clear_refs").write_text("5")
before = peak()
study("large.parquet", rows)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are told by Linux alone")
def test_a_study_takes_no_more_memory_for_more_records(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50_000  # kB, of a column of 128 MB
