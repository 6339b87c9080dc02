"""New York's yellow-taxi trips, cleaned and coded as in section 5.1 of Liu and Hu's paper.

The paper has January 2024; the sample has 10,000 trips of every month of 2018 to 2020, at
``<folder>/taxi/yellow_sample_2018_2020.parquet``.
"""

import math
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice

FILE = "taxi/yellow_sample_2018_2020.parquet"
AIRPORTS = (132, 138)  # JFK and LaGuardia
# The 69 zones of the borough Manhattan in the Taxi & Limousine Commission's public table of zones.
MANHATTAN = (
    4, 12, 13, 24, 41, 42, 43, 45, 48, 50, 68, 74, 75, 79, 87, 88, 90, 100, 103, 104, 105, 107, 113, 114, 116, 120, 125,
    127, 128, 137, 140, 141, 142, 143, 144, 148, 151, 152, 153, 158, 161, 162, 163, 164, 166, 170, 186, 194, 202, 209,
    211, 224, 229, 230, 231, 232, 233, 234, 236, 237, 238, 239, 243, 244, 246, 249, 261, 262, 263,
)  # fmt: skip
# distance, sine and cosine of the hour, weekend, passengers; from an airport, to an airport, from Manhattan
BOUNDS = ((-1, 1), (-1, 1), (-1, 1), (0, 1), (-1, 1), (0, 1), (0, 1), (0, 1))
FARTHEST = 20.0  # miles
HOLDOUT = 650_575 / 2_713_434  # Table 8
SPLIT = 2026061903  # the paper's public seed


class Trips(NamedTuple):
    """Cleaned trips in the order of time: covariates (n, 8), response, who is held out, and raw columns."""

    x: Floats
    y: Floats
    held: npt.NDArray[np.bool_]
    minutes: Floats
    miles: Floats
    passengers: Floats
    raw: int


@lru_cache(maxsize=1)
def read_trips(folder: Path) -> Trips:
    """Read and clean the sample, and draw the holdout."""
    import pyarrow.parquet as parquet

    names = ["passenger_count", "trip_distance", "fare_amount", "pickup_location_id", "dropoff_location_id"]
    table = parquet.read_table(folder / FILE, columns=["pickup_datetime", "dropoff_datetime", "month", *names])
    pickup, dropoff = (table[f"{end}_datetime"].to_numpy().astype("datetime64[s]") for end in ("pickup", "dropoff"))
    passengers, miles, fare, start, end = (table[name].to_numpy().astype(float) for name in names)
    due = np.array(table["month"].to_pylist(), dtype="datetime64[M]")
    minutes = (dropoff - pickup).astype(float) / 60
    kept = (pickup.astype("datetime64[M]") == due) & (minutes >= 1) & (minutes <= 180)
    kept &= (miles > 0) & (miles <= 100) & (fare > 0) & (passengers >= 1) & (passengers <= 6)
    rows = np.flatnonzero(kept & np.isfinite(start) & np.isfinite(end))
    rows = rows[np.argsort(pickup[rows], kind="stable")]
    x = covariates(pickup[rows], passengers[rows], miles[rows], start[rows], end[rows])
    held = np.zeros(len(rows), dtype=bool)
    held[dice(SPLIT).generator().choice(len(rows), round(HOLDOUT * len(rows)), replace=False)] = True
    return Trips(x, np.log1p(minutes[rows]), held, minutes[rows], miles[rows], passengers[rows], table.num_rows)


def covariates(pickup: npt.NDArray[Any], passengers: Floats, miles: Floats, start: Floats, end: Floats) -> Floats:
    """Return the eight covariates, all in [-1, 1].

    Examples
    --------
    >>> when = np.array(["2020-02-01T06:30:00"], dtype="datetime64[s]")
    >>> one = np.ones(1)
    >>> covariates(when, one, 20 * one, 132 * one, 4 * one).round(3).tolist()
    [[1.0, 1.0, 0.0, 1.0, -1.0, 1.0, 0.0, 0.0]]
    """
    days = pickup.astype("datetime64[D]")
    turn = 2 * np.pi * ((pickup - days).astype(float) // 3600) / 24
    return np.column_stack(
        [
            2 * np.log1p(np.minimum(miles, FARTHEST)) / math.log1p(FARTHEST) - 1,
            np.sin(turn),
            np.cos(turn),
            (days.astype(int) + 3) % 7 >= 5,  # day 0 was a Thursday
            (passengers - 3.5) / 2.5,
            np.isin(start, AIRPORTS),
            np.isin(end, AIRPORTS),
            np.isin(start, MANHATTAN),
        ]
    ).astype(float)
