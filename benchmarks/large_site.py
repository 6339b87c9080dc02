"""A site larger than memory: what its spool, its rounds and a whole study cost, and the most memory they take."""

import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sottovoce as sv
from sottovoce.client.quantile.site import Site
from sottovoce.client.reading.large import open_large
from sottovoce.protocol.messages import Query, Study

PIECE = 10_000_000
MOST = 2_000_000_000  # bytes that the process may hold


def peak() -> int:
    """Return the most memory that this process has held, in bytes, mapped files included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def write(path: Path, records: int) -> None:
    """Write a Parquet file of normal records, piece by piece."""
    generator, schema = sv.sim.dice(1).generator(), pa.schema([("delay", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, records, PIECE):
            values = generator.normal(50.0, 10.0, min(PIECE, records - start))
            writer.write_table(pa.table([values], schema=schema), row_group_size=1_000_003)


def run(records: int = 100_000_000) -> None:
    """Measure a site of so many records; a thousand million take 16 GB of disk and some minutes."""
    print(f"\nA site of {records:,} records in a file, operating-system entropy, epsilon 1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "delays.parquet"
        write(path, records)
        start = time.perf_counter()
        held = open_large(path, "delay", Path(folder) / "spools").records
        print(f"   from Parquet to a spool             {time.perf_counter() - start:8.2f} s")
        Site(held, Study(0.5, 1.0)).tally(Query(1, (50.0,), (10,)))  # compiled
        for asked in (10**3, 10**5, 10**7, records // 10, records // 2):
            site, query = Site(held, Study(0.5, 1.0)), Query(1, (50.0,), (asked,))
            start = time.perf_counter()
            site.tally(query)
            how = "scanned" if site._scans(query) else "fetched"
            print(f"   a round of {asked:13,} {how}    {time.perf_counter() - start:8.3f} s")
        start = time.perf_counter()
        sv.federated_quantile({"large": held}, 0.5, 1.0)
        print(f"   a whole study                       {time.perf_counter() - start:8.2f} s")
        print(f"   peak memory                         {peak() / 1e9:8.2f} GB (at most {MOST / 1e9:g})")
