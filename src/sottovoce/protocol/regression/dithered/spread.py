"""What is not known of a packed symmetric matrix: a whole covariance, or for many covariates two rows.

A whole covariance of d covariates has d^4 / 4 numbers. Beyond some covariates the entries count as independent of each
other but for one direction, which is that of the density: the first row holds their variances, and the second the
direction, times its standard deviation. What a standard error then depends on takes products of d x d matrices alone.
"""

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.vech import packed, product, unpacked

WHOLE = 41  # coefficients up to which the covariance is kept whole: a look at more takes seconds (decision 0081)


def is_apart(d: int) -> bool:
    """Tell whether the entries of a matrix of so many coefficients count as independent but for one direction."""
    return d > WHOLE


def nothing(d: int) -> Floats:
    """Return the spread of a matrix that is known.

    >>> nothing(2).shape, nothing(50).shape
    ((3, 3), (2, 1275))
    """
    entries = d * (d + 1) // 2
    return np.zeros((2 if is_apart(d) else entries, entries))


def apart(variances: Floats, way: Floats) -> Floats:
    """Return the spread of entries that are independent but for one direction."""
    return np.stack([variances, way])


def about_product(matrix: Floats, diagonal: float, crosses: float) -> Floats:
    """Return about the variances of the packed R E R, R the root of a matrix, with independent entries of E.

    The first entry is that of the density, and has none.

    >>> about_product(np.eye(2), 0.15, 0.1).round(4).tolist()
    [0.0, 0.01, 0.0225]
    """
    squares = np.diag(matrix)
    found = crosses**2 * (np.outer(squares, squares) + matrix**2)
    np.fill_diagonal(found, diagonal**2 * squares**2)
    variances = packed(found)
    variances[0] = 0.0
    return variances


def carried(u: Floats, w: Floats, spread: Floats) -> Floats:
    """Return the variance of u' H w for each row of u and w."""
    d = u.shape[1]
    if not is_apart(d):
        gradients = product(u, w)
        return np.asarray(((gradients @ spread) * gradients).sum(axis=1))
    variances, way = _halved(spread[0], d), unpacked(spread[1], d)
    both = u * w
    own = ((u**2 @ variances) * w**2 + (both @ variances) * both).sum(axis=1)
    return np.asarray(own + np.square(((u @ way) * w).sum(axis=1)))


def moved(rows: Floats, along: Floats, spread: Floats) -> Floats:
    """Return the covariance of rows H along: what is not known of H does to them."""
    d = len(along)
    if not is_apart(d):
        moves = product(rows, along[None, :])
        return np.asarray(moves @ spread @ moves.T)
    variances, way = _halved(spread[0], d), unpacked(spread[1], d)
    inner = np.diag(variances @ along**2) + np.outer(along, along) * variances
    shift = rows @ (way @ along)
    return np.asarray(rows @ inner @ rows.T + np.outer(shift, shift))


def _halved(variances: Floats, d: int) -> Floats:
    """Return variances as a matrix whose sums count the entries beside the diagonal twice, and the diagonal once."""
    found = unpacked(variances, d)
    found[np.diag_indices(d)] /= 2
    return found
