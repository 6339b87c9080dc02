"""What is assumed of a covariate in [-1, 1] when a channel is designed: a Beta distribution with its public moments.

Privacy and unbiasedness need none of it; it only predicts how often each place of a grid is the rounded covariate. With
mean 0 and second moment 1/3 the distribution is uniform. Stochastic rounding to a grid turns the distribution into
hat-function expectations, which are second differences of ``E (z - t)_+``; for a Beta distribution these are incomplete
Beta functions.
"""

import functools
import math

import numpy as np

from sottovoce.core.arrays import Floats

UNIFORM = 1 / 3  # the second moment of the uniform distribution on [-1, 1]
_TWO_POINTS = 1e-9  # closer than this to second moment 1, the distribution is taken to sit on -1 and 1


@functools.lru_cache(maxsize=65536)
def chances(places: int, second: float = UNIFORM, mean: float = 0.0, scale: float = 1.0) -> tuple[float, ...]:
    """Return how often ``scale`` x covariate, rounded at random to ``places`` equal steps of [-1, 1], is each place.

    >>> [round(chance, 4) for chance in chances(5)]
    [0.125, 0.25, 0.25, 0.25, 0.125]
    """
    if places == 1:
        return (1.0,)
    step = 2 / (places - 1)
    at: Floats = -1 + step * np.arange(-1, places + 1, dtype=np.float64)
    size = abs(scale)
    excess = np.maximum(-at, 0.0) if size == 0 else size * _excess(at / size, second, math.copysign(mean, mean * scale))
    found = np.maximum(excess[:-2] - 2 * excess[1:-1] + excess[2:], 0.0) / step
    return tuple((found / found.sum()).tolist())


def rounded(places: int, second: float = UNIFORM, mean: float = 0.0, scale: float = 1.0) -> float:
    """Return the second moment of ``scale`` x covariate after random rounding to ``places`` steps of [-1, 1].

    >>> round(rounded(3), 6), rounded(2)
    (0.5, 1.0)
    """
    if places == 1:
        return 0.0
    return float(np.linspace(-1, 1, places) ** 2 @ np.array(chances(places, second, mean, scale)))


def _excess(at: Floats, second: float, mean: float) -> Floats:
    """Return E (z - t)_+ for the Beta distribution on [-1, 1] with these moments."""
    from scipy.special import betainc

    middle, variance = (1 + mean) / 2, (second - mean * mean) / 4
    where = np.clip((at + 1) / 2, 0.0, 1.0)
    below = np.maximum(-1 - at, 0.0)
    size = middle * (1 - middle) / variance - 1
    if size < _TWO_POINTS:
        return np.asarray(2 * middle * (1 - where) + below)
    first, last = middle * size, (1 - middle) * size
    upper = middle * (1 - betainc(first + 1, last, where)) - where * (1 - betainc(first, last, where))
    return np.asarray(2 * upper + below)
