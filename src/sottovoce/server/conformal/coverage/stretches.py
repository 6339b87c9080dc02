"""Few points that stand for all whole numbers up to a count, for a function that bends less and less on its way up.

The first numbers stand for themselves. Beyond them each stretch from s to 2 s - 1 has DEGREE Chebyshev points, between
which the function is interpolated (barycentric formula): with its nearest singularity at 0 or below, the error falls by
a factor 3 + sqrt(8) a point, to less than 1e-15.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

THEMSELVES, DEGREE = 64, 20


class Stretch(NamedTuple):
    """Whole numbers ``start + 1`` to ``stop``, the first of their points, and the matrix from points to numbers."""

    start: int
    stop: int
    first: int
    matrix: Floats | None  # None: the points are the numbers

    def fill(self, known: Floats) -> Floats:
        """Return the values at the whole numbers from those at all points, along the first axis."""
        if self.matrix is None:
            return known[self.first : self.first + self.stop - self.start]
        return np.asarray(self.matrix @ known[self.first : self.first + DEGREE])


def stretches(count: int) -> tuple[Floats, list[Stretch]]:
    """Return the points, and how the values at 1, ..., ``count`` follow from those at the points.

    >>> points, parts = stretches(1_000_000)
    >>> len(points), max(float(abs(part.fill(np.sqrt(points)) ** 2 - np.arange(part.start + 1, part.stop + 1)).max())
    ...                  / part.stop for part in parts) < 1e-13
    (344, True)
    """
    points, parts = [np.arange(1.0, min(THEMSELVES, count) + 1)], [Stretch(0, min(THEMSELVES, count), 0, None)]
    angle = np.pi * (2 * np.arange(DEGREE) + 1) / (2 * DEGREE)
    weight = (-1.0) ** np.arange(DEGREE) * np.sin(angle)
    while (start := parts[-1].stop) < count:
        stop = min(2 * start, count)
        placed = (start + 1 + stop) / 2 + (stop - start) / 2 * np.cos(angle)
        apart = np.arange(start + 1.0, stop + 1)[:, None] - placed
        hit = apart == 0
        matrix = weight / np.where(hit, 1.0, apart)
        matrix = np.where(hit.any(axis=1, keepdims=True), hit, matrix / matrix.sum(axis=1, keepdims=True))
        parts.append(Stretch(start, stop, sum(map(len, points)), matrix))
        points.append(placed)
    return np.concatenate(points), parts
