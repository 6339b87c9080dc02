"""The local walk that both sides run: each decoded report moves the point (Algorithm 1 of the federated paper).

A letter decodes to an unbiased guess of "above the point", so moving by ``step * (decoded - (1 - tau))`` drifts towards
the quantile. The walk is a function of public letters, so the server repeats it from the reports alone.
"""

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.kernels import njit
from sottovoce.protocol.channel import Channel


def moves(channel: Channel, tau: float) -> Floats:
    """Return how far each letter moves the point, at unit step."""
    return channel.table[:, 0] - (1.0 - tau)


@njit(cache=True)
def walk(point: float, step: float, letters: npt.NDArray[np.uint8], moves: Floats) -> Floats:
    """Return the points at which the letters were given, and where the walk ended."""
    path = np.empty(len(letters) + 1)
    path[0] = point
    for i in range(len(letters)):
        path[i + 1] = path[i] + step * moves[letters[i]]
    return path
