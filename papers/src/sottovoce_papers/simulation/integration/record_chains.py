"""The paper's chains over given records, for its illustration with salaries (section 5.3): many throws of the dice.

The records of a site are put in random order and dealt to its chains; each answers once, through randomised response.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.kernels import njit
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce_papers.simulation.families import Generator


class Asking(NamedTuple):
    """How a site is asked: level, response rate, where its chains start, and the power of the step of (3.6)."""

    tau: float
    rate: float
    start: float = 0.0
    power: float = 0.6


def chain_averages(records: Floats, chains: int, asking: Asking, generator: Generator) -> Floats:
    """Return the average point of each of a site's chains.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> records = np.linspace(-1.0, 1.0, 4_000)
    >>> bool(np.all(np.abs(chain_averages(records, 4, Asking(0.5, 0.9), dice(1).generator())) < 0.5))
    True
    """
    length = len(records) // chains
    paths = _paths(records[generator.permutation(len(records))[: chains * length]], chains, asking, generator)
    return np.asarray(paths.mean(axis=1))


def alone(records: Floats, asking: Asking, generator: Generator, level: float = 0.95) -> tuple[float, float]:
    """Return the average of one chain over all records, and half its self-normalised interval.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> estimate, half = alone(np.linspace(-1.0, 1.0, 4_000), Asking(0.5, 0.9), dice(1).generator())
    >>> abs(estimate) < 0.3, half > 0
    (True, True)
    """
    [path] = _paths(records[generator.permutation(len(records))], 1, asking, generator)
    n = len(path)
    average = float(path.mean())
    bridge = np.cumsum(path - average)
    return average, critical_value(level) * float(np.sqrt(np.sum(bridge**2) / n**3))


def _paths(records: Floats, chains: int, asking: Asking, generator: Generator) -> Floats:
    """Return all points of all chains, (chains, length)."""
    length = len(records) // chains
    steps: Floats = np.arange(1.0, length + 1.0) ** -asking.power
    coins = generator.random(chains * length)
    # 0: says zero, 1: the record answers truthfully, 2: says one
    faces = (coins < (1 + asking.rate) / 2).astype(np.uint8) + (coins < (1 - asking.rate) / 2)
    points = np.empty((chains, length))
    walk_records(records.reshape(chains, length), faces.reshape(chains, length), steps, asking, points)
    return points


@njit(cache=True, nogil=True)
def walk_records(records: Floats, faces: npt.NDArray[np.uint8], steps: Floats, asking: Asking, points: Floats) -> None:
    """Take all steps of all chains; fill the points they lead to."""
    target = (1.0 - asking.rate) / 2.0 + asking.rate * asking.tau
    for m in range(records.shape[0]):
        point = asking.start
        for t in range(records.shape[1]):
            face = faces[m, t]
            one = records[m, t] <= point if face == 1 else face == 2
            point -= steps[t] * ((1.0 if one else 0.0) - target)
            points[m, t] = point
