"""Pairwise masks of a secure sum (Bonawitz et al. 2017, without dropouts): each pair adds and takes off the same words.

The masks cancel in the sum over all sites, and a single masked message is uniform, whatever it hides. The words of a
pair must come from a secret that only the two share, through a generator that nobody can predict: agreeing on it is the
task of the secure-aggregation layer, and seeded dice of a simulation are not fit for it.
"""

from collections.abc import Mapping

import numpy as np

from sottovoce.client.conformal.shares import Vector
from sottovoce.core.random_source import RandomSource


def masked(vector: Vector, place: int, shared: Mapping[int, RandomSource]) -> Vector:
    """Return a message under the masks that its site shares with every other site.

    Parameters
    ----------
    vector
        The message, integers modulo 2^32.
    place
        The number of the site.
    shared
        For the number of each other site, dice that throw the same words at both.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> first = masked(np.array([7, 3], dtype=np.uint32), 0, {1: dice(5)})
    >>> second = masked(np.array([1, 4], dtype=np.uint32), 1, {0: dice(5)})
    >>> (first + second).tolist()
    [8, 7]
    """
    if place in shared:
        raise ValueError("a site shares no mask with itself")
    hidden = vector.astype(np.uint32)
    for other, dice in sorted(shared.items()):
        # the low half of a uniform word is uniform; unsigned arrays wrap around without a word
        mask = dice.words(len(vector)).astype(np.uint32)
        hidden = hidden + mask if place < other else hidden - mask
    return hidden
