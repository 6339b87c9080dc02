"""Table 8: what the cleaned taxi trips look like, in the sample at hand."""

from pathlib import Path

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.simulation.regression.taxi import read_trips

VERSION = 1
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Return counts, quartiles and shares."""
    del setting, replications, seed
    if data is None:
        raise BadInput("the taxi trips need a data folder; name it by --data or SOTTOVOCE_DATA.")
    trips = read_trips(data)
    numbers: dict[str, float] = {
        "raw": trips.raw,
        "retained": len(trips.y),
        "training": int(np.sum(~trips.held)),
        "test": int(np.sum(trips.held)),
        "passengers": trips.passengers.mean(),
        "weekend_percent": 100 * trips.x[:, 3].mean(),
        "airport_pickup_percent": 100 * trips.x[:, 5].mean(),
        "airport_dropoff_percent": 100 * trips.x[:, 6].mean(),
        "manhattan_percent": 100 * trips.x[:, 7].mean(),
    }
    for name, level in QUARTILES.items():
        numbers[f"duration_{name}"] = float(np.quantile(trips.minutes, level))
        numbers[f"distance_{name}"] = float(np.quantile(trips.miles, level))
    return [Row({}, {name: exact(float(number)) for name, number in numbers.items()})]
