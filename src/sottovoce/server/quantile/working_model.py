"""A rough picture of the distribution, to decide where to ask next; no interval ever rests on it.

Left and right of the median the excess over it follows a generalised Pareto law (bounded, exponential or heavy), with
its own scale on the side of the quantile. A grid of such pictures is weighed by everything heard so far.
"""

from functools import cache

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.asking import Decoded

FAR = 50.0  # scales from the centre beyond which an answer tells nothing about the shape
MISFIT = 0.02  # no picture is exact: keeps a few precise answers from ruling out all of them


@cache
def _grid() -> tuple[Floats, Floats, Floats, Floats]:
    """Return median offsets, half-mass distances on both sides, and the tail index of the near side."""
    axes = np.meshgrid(
        np.sinh(np.linspace(-2.3, 2.3, 15)),
        np.linspace(-3, 3, 16),
        (-0.7, 0.7),
        (-2.2, -1.1, -0.5, 1e-6, 0.5, 1.0, 2.0),
        indexing="ij",
    )
    offset, near, asymmetry, tail = (axis.ravel() for axis in axes)
    return offset, np.exp(near), np.exp(near + asymmetry), tail


def _survival(distance: Floats, tail: Floats) -> Floats:
    """Return how much of one side lies beyond a distance, in units at which one half does."""
    base = np.maximum(1 + (2.0**tail - 1) * distance, 1e-30)
    survival: Floats = np.exp(np.minimum(-np.log(base) / tail, 0.0))
    return survival


class WorkingModel:
    """Beliefs about the quantile function around a centre and scale, near one level."""

    def __init__(self, centre: float, scale: float, tau: float) -> None:
        self._centre, self._scale = centre, scale
        self._sign = 1.0 if tau >= 0.5 else -1.0  # mirrored so that the level is always on the right-hand side
        offset, near, _, tail = _grid()
        # a priori: the median near the centre, the scale as searched, light tails a little more likely than heavy ones
        self._log = -0.5 * np.arcsinh(offset) ** 2 - 0.5 * (np.log(near) / 1.2) ** 2 - 0.5 * tail**2

    def hear(self, heard: Decoded) -> None:
        """Weigh the pictures by decoded answers."""
        offset, near, far, tail = _grid()
        for point, seen, variance in zip(heard.points, heard.below, heard.variances, strict=True):
            if variance <= 0 or abs(point - self._centre) > FAR * self._scale:  # nobody said
                continue
            distance = self._sign * (point - self._centre) / self._scale - offset
            right = 1 - 0.5 * _survival(np.maximum(distance, 0) / near, tail)
            left = 0.5 * np.exp2(np.minimum(distance, 0) / far)
            expected = np.where(distance >= 0, right, left)
            mirrored = seen if self._sign > 0 else 1 - seen
            self._log = self._log - 0.5 * (mirrored - expected) ** 2 / (variance + MISFIT**2)

    def quantiles(self, taus: Floats) -> Floats:
        """Return the believed quantiles at some levels, averaged over the pictures."""
        offset, near, far, tail = _grid()
        belief = np.exp(self._log - self._log.max())
        belief /= belief.sum()
        answers = np.empty(len(taus))
        for i, tau in enumerate(taus):
            level = tau if self._sign > 0 else 1 - tau
            if level >= 0.5:
                distance = near * ((2 * (1 - level)) ** -tail - 1) / (2.0**tail - 1)
            else:
                distance = far * np.log2(2 * level)
            answers[i] = self._centre + self._sign * self._scale * float(np.sum(belief * (offset + distance)))
        return answers
