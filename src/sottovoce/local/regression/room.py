"""Room for a compiled loop to work in; made outside it, because what is lent is not kept alive (`lent`)."""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints


class Room(NamedTuple):
    """Which slopes a person is asked about, which coordinates they told, the gradient, and a move of the point."""

    chosen: Ints
    coordinates: Ints
    values: Floats  # (levels, d)
    move: Floats


def make_room(levels: int, d: int) -> Room:
    """Return room for a loop."""
    return Room(
        np.zeros(max(d - 1, 1), dtype=np.int64), np.zeros(d, dtype=np.int64), np.zeros((levels, d)), np.zeros(d)
    )
