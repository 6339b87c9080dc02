"""Falling integer weights: a discrete exponential of which no step costs more than a given factor.

``W[0] = 2^bits`` and ``W[k + 1] = ceil(W[k] p / 2^64)``. Rounding up keeps each ratio ``W[k] / W[k + 1]`` within
``2^64 / p``, and no weight reaches zero: the table ends where it stops falling, and its last entry goes on for ever.
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

BITS = 100  # a weight reaches 2^-100 of the largest before the table is flat
MOST = 1 << 29  # bits in one table: 64 MB
_TOO_LONG = "this selection needs tables beyond 64 MB; choose the sparse vector, which needs none."


@dataclass(frozen=True, eq=False)
class Table:
    """The weights of a table and its steepest step."""

    weights: tuple[int, ...]
    steepest: Fraction

    def at(self, place: int) -> int:
        """Return the weight at a place from 0 on."""
        return self.weights[min(place, len(self.weights) - 1)]

    def relative(self, places: npt.NDArray[np.int64], to: int) -> Floats:
        """Return the weights at places from 0 on as multiples of a weight."""
        kinds, where = np.unique(np.minimum(places, len(self.weights) - 1), return_inverse=True)
        return np.array([self.weights[k] / to for k in kinds.tolist()])[where].reshape(places.shape)


@functools.lru_cache(maxsize=16)
def table(numerator: int, length: int, bits: int = BITS) -> Table:
    """Return the table of a numerator: at most ``length`` steps, fewer where it stops falling.

    Parameters
    ----------
    numerator
        The integer p: one step costs at most a factor 2^64 / p.
    length
        The last place that is ever asked for.
    bits
        The logarithm of the first weight.

    Examples
    --------
    >>> table(1 << 63, 9, bits=3).weights, table(1 << 63, 9).steepest
    ((8, 4, 2, 1), Fraction(2, 1))
    """
    falls = -math.log(numerator / 2.0**64)  # a step; the table is flat when all bits have fallen
    if min(length, bits * math.log(2) / max(falls, 1e-19)) * bits > 4 * MOST:
        raise BadInput(_TOO_LONG)
    weights, held = [1 << bits], bits
    steep, flat = 1, 1
    while len(weights) <= length:
        weight = weights[-1]
        lower = -(-weight * numerator >> 64)
        if lower == weight:
            break
        if weight * flat > steep * lower:
            steep, flat = weight, lower
        weights.append(lower)
        held += lower.bit_length()
        if held > MOST:
            raise BadInput(_TOO_LONG)
    return Table(tuple(weights), Fraction(steep, flat))
