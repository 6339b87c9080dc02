"""What a way of inference covered, as a row of Tables 7 and 16 to 20 of the paper on online quantile regression.

A printed minimum over coordinates is one over *estimates* of 500 replications each, so it lies below the smallest
coverage. To be compared, more replications are cut into batches of 500, and the coverages of each are kept as curves.
"""

from collections.abc import Iterable

import numpy as np

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, mean, share
from sottovoce_papers.simulation.regression.cell import Cell, printed
from sottovoce_papers.simulation.regression.studentised import Covered

PRINTED = 500  # replications behind every printed coverage
FINAL = 300_000_000


def cell_of(setting: Setting) -> Cell:
    """Return the paper's cell that a setting names, with the step that its tables need."""
    return printed(float(setting["tau"]), int(setting["p"]), float(setting["epsilon"]))


def rows_of(found: dict[str, Covered], reading: str) -> list[Row]:
    """Return a row for each method."""
    return [
        Row({"method": method, "reading": reading}, measures_of(one), dict(_batches(one)))
        for method, one in found.items()
    ]


def measures_of(one: Covered) -> dict[str, Measure]:
    """Return coverages, sizes and the error, by the names of the printed tables."""
    coordinates = {f"coverage_coordinate_{j}": share(hits) for j, hits in enumerate(one.coordinates.T)}
    return coordinates | {
        "coverage_dense": share(one.dense),
        "coverage_ellipsoid": share(one.ellipsoid),
        "length_coordinate_0": mean(one.lengths[:, 0]),
        "length_dense": mean(one.dense_length),
        "volume_ellipsoid": mean(one.volume),
        "error": mean(np.linalg.norm(one.deviations, axis=1)),
    }


def _batches(one: Covered) -> Iterable[tuple[str, list[float]]]:
    whole = len(one.dense) // PRINTED
    if whole == 0:
        return
    columns = {f"coordinate_{j}": hits for j, hits in enumerate(one.coordinates.T)}
    for name, hits in (columns | {"dense": one.dense, "ellipsoid": one.ellipsoid}).items():
        yield name, hits[: whole * PRINTED].reshape(whole, PRINTED).mean(axis=1).tolist()


def at(n: int) -> str:
    """Return how a reading names a horizon: 1e6.

    >>> at(10_000_000)
    '1e7'
    """
    return f"{n:.0e}".replace("e+0", "e")
