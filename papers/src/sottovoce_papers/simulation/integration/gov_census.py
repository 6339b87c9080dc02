"""Salaries of the government employees in the American Community Survey 2018, by economic region.

Both papers' illustrations use the 204,309 people that the R package fairadapt carries. The file is read from a folder
that the user names; salaries are in dollars.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.families import Generator

NAME = "gov_census"
MERGED = 3


def read_regions(data: Path | None) -> dict[str, Floats]:
    """Return the salaries of each of the nine regions.

    Raises
    ------
    BadInput
        If the folder has no such file.
    """
    file = None if data is None else data / NAME / f"{NAME}.parquet"
    if file is None or not file.exists():
        raise BadInput(f"{NAME}/{NAME}.parquet is not in the folder of data sets; name its folder by SOTTOVOCE_DATA.")
    return dict(_read(file))


@lru_cache(maxsize=2)
def _read(file: Path) -> tuple[tuple[str, Floats], ...]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(file, columns=["salary", "economic_region"])
    salaries = table["salary"].to_numpy().astype(np.float64)
    regions = np.array(table["economic_region"].to_pylist())
    return tuple((str(name), np.ascontiguousarray(salaries[regions == name])) for name in np.unique(regions))


def merged(regions: Mapping[str, Floats], smallest: int = MERGED) -> dict[str, Floats]:
    """Put the smallest regions together as "Others".

    Examples
    --------
    >>> list(merged({"a": np.ones(3), "b": np.ones(1), "c": np.ones(2)}, smallest=2))
    ['Others', 'a']
    """
    few = sorted(regions, key=lambda name: len(regions[name]))[:smallest]
    kept = {name: values for name, values in regions.items() if name not in few}
    kept["Others"] = np.concatenate([regions[name] for name in sorted(few)])
    return {name: kept[name] for name in sorted(kept)}


def oversampled(records: Floats, size: int, generator: Generator) -> Floats:
    """Draw records again, with replacement, until there are as many as asked for.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> oversampled(np.ones(3), 5, dice(1).generator()).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    return np.concatenate([records, generator.choice(records, size - len(records))])


def equal_quantile(sites: Mapping[str, Floats], tau: float) -> float:
    """Return the quantile of all records if every site counts the same.

    Examples
    --------
    >>> equal_quantile({"a": np.array([1.0, 2.0, 3.0]), "b": np.array([10.0])}, 0.5)
    3.0
    """
    values = np.unique(np.concatenate(list(sites.values())))
    below = np.mean([np.searchsorted(np.sort(x), values, side="right") / len(x) for x in sites.values()], axis=0)
    return float(values[np.searchsorted(below, tau - 1e-12)])
