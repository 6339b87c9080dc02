"""Symmetric matrices as vectors of their upper triangle, row by row: entry (0, 0) is the first."""

from functools import lru_cache

import numpy as np

from sottovoce.core.arrays import Floats, Ints


@lru_cache(maxsize=32)
def places(d: int) -> tuple[Ints, Ints, Floats]:
    """Return row and column of each entry, and one half for those of the diagonal, else one."""
    rows, columns = np.triu_indices(d)
    return rows, columns, np.where(rows == columns, 0.5, 1.0)


def packed(matrix: Floats) -> Floats:
    """Return the upper triangle of a matrix as a vector.

    >>> import numpy as np
    >>> packed(np.array([[1.0, 2.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    rows, columns, _ = places(matrix.shape[-1])
    return np.asarray(matrix[..., rows, columns])


def unpacked(vector: Floats, d: int) -> Floats:
    """Return the symmetric matrix of a vector."""
    rows, columns, _ = places(d)
    matrix = np.empty((d, d))
    matrix[rows, columns] = vector
    matrix[columns, rows] = vector
    return matrix


def product(left: Floats, right: Floats) -> Floats:
    """Return the vector whose inner product with the packed M is left' M right; the last axis is that of M.

    >>> import numpy as np
    >>> m = np.array([[1.0, 2.0], [2.0, 5.0]])
    >>> a, b = np.array([1.0, -1.0]), np.array([3.0, 4.0])
    >>> float(product(a, b) @ packed(m)), float(a @ m @ b)
    (-15.0, -15.0)
    """
    rows, columns, halves = places(left.shape[-1])
    return np.asarray(halves * (left[..., rows] * right[..., columns] + left[..., columns] * right[..., rows]))


def congruence(root: Floats) -> Floats:
    """Return the map from a packed E to the packed root E root'."""
    first, second, across, back = _pairs(len(root))
    found = root.take(first) * root.take(second)
    found += root.take(across) * root.take(back)
    found *= places(len(root))[2]
    return np.asarray(found)


@lru_cache(maxsize=4)
def _pairs(d: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return where in a matrix, row by row, two entries' first indices meet, their second ones, and each other's."""
    rows, columns, _ = places(d)
    met = [d * one[:, None] + other[None, :] for one in (rows, columns) for other in (rows, columns)]
    return met[0], met[3], met[1], met[2]
