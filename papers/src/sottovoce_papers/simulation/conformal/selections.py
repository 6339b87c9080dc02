"""Private selections at many sites at once, seeded: the distribution of `client.conformal.draw`, in floating point."""

import math

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.selection import Mechanism
from sottovoce.protocol.selection.exponential import Exponential, WeightTable
from sottovoce.protocol.selection.geometric import cost
from sottovoce.protocol.selection.sparse_vector import SparseVector
from sottovoce_papers.simulation.families import Generator


def draw_cells(mechanism: Mechanism, counts: Ints, generator: Generator) -> Ints:
    """Draw the cell that each of many sites names.

    Parameters
    ----------
    mechanism
        The selection of all of them.
    counts
        How many scores each site has in each cell, (sites, cells).
    generator
        Where the noise comes from.

    Examples
    --------
    >>> from sottovoce.protocol.selection.sparse_vector import sparse_vector
    >>> from sottovoce.sim import dice
    >>> draw_cells(sparse_vector(10, 9, 4, 20.0), np.array([[2, 6, 2, 0], [9, 0, 0, 1]]), dice(1).generator()).tolist()
    [2, 0]
    """
    if isinstance(mechanism, SparseVector):
        return _scan(mechanism, counts, generator)
    below = np.cumsum(counts, axis=1) - counts
    above = mechanism.size - below - counts
    one, two = map(_logarithms, mechanism.tables)
    if isinstance(mechanism, Exponential):
        too_low = np.maximum(above - (mechanism.size - mechanism.order), 0)
        too_high = np.maximum(below - (mechanism.order - 1), 0)
        logs = np.where(too_low > 0, _at(one, too_low), _at(two, too_high))
    else:
        logs = np.minimum(_at(one, above), _at(two, below))
    sums = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    thrown = generator.random((len(counts), 1)) * sums[:, -1:]
    return np.asarray(np.sum(thrown >= sums, axis=1), dtype=np.int64)


def geometric(numerator: int, shape: tuple[int, ...], generator: Generator) -> Ints:
    """Draw noise with P(noise >= k) = (numerator / 2^64)^k.

    >>> from sottovoce.sim import dice
    >>> bool(geometric(1 << 63, (1000,), dice(1).generator()).min() == 0)
    True
    """
    return np.asarray(generator.geometric(-math.expm1(-cost(numerator)), shape) - 1, dtype=np.int64)


def _scan(mechanism: SparseVector, counts: Ints, generator: Generator) -> Ints:
    """Return the highest cell that stops."""
    tails = np.cumsum(counts[:, :0:-1], axis=1)
    noise = geometric(mechanism.query, tails.shape, generator)
    threshold = geometric(mechanism.threshold, (len(counts), 1), generator)
    stops = tails + noise - threshold > mechanism.size - mechanism.order
    return np.asarray(np.where(stops.any(axis=1), mechanism.cells - 1 - stops.argmax(axis=1), 0), dtype=np.int64)


def _logarithms(table: WeightTable) -> Floats:
    return np.array([math.log(weight) for weight in table.weights])


def _at(logs: Floats, places: Ints) -> Floats:
    """Return a table's logarithms at places; its last entry goes on for ever."""
    return np.asarray(logs[np.minimum(places, len(logs) - 1)])
