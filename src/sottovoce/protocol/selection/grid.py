"""The public grid of a selection: increasing finite edges; the cell beyond the last one has no upper edge."""

import math

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput


def grid(edges: npt.ArrayLike) -> Floats:
    """Return the edges of a public grid as an array that cannot be changed.

    Parameters
    ----------
    edges
        Finite numbers, each larger than the one before; chosen without a look at the scores.

    Examples
    --------
    >>> grid([0.5, 1.0, 2.0])
    array([0.5, 1. , 2. ])
    """
    line = np.array(edges, dtype=np.float64)
    if line.ndim != 1 or line.size == 0 or not np.isfinite(line).all() or (line[1:] <= line[:-1]).any():
        raise BadInput("a grid is a list of finite edges, each larger than the one before; give at least one.")
    line.flags.writeable = False
    return line


def upper_edge(edges: Floats, cell: int) -> float:
    """Return the number that a cell stands for.

    Parameters
    ----------
    edges
        The edges of the grid.
    cell
        The cell, from 0 to the number of edges.

    Examples
    --------
    >>> [upper_edge(grid([0.5, 1.0]), cell) for cell in range(3)]
    [0.5, 1.0, inf]
    """
    if not 0 <= cell <= len(edges):
        raise BadInput(f"cell {cell} is not on a grid of {len(edges)} edges; cells go from 0 to {len(edges)}.")
    return math.inf if cell == len(edges) else float(edges[cell])
