"""What is kept of the reports between two looks: sums, of a size that does not grow with the people."""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

LOOKED = 4  # of the counts, after the four kinds of question: people whose spread was looked at
POINT, GRADIENT = 0, 1
PRODUCT, SPREAD = 2, 3  # of the squares; the first two are the slopes of the near and the far
SELDOM = 8  # every so many people the spread of the points is looked at: d^2 sums that need no precision


class Sums(NamedTuple):
    """Sums over the people of one segment; points are counted from a reference, so that none is large."""

    counts: Floats  # (5,): tight, near, far, moment; people whose spread was looked at
    vectors: Floats  # (3, 2, levels, d): points and gradients of tight, near, far
    squares: Floats  # (4, levels, d, d): gradient x sign of near and far; gradient x gradient; point x point
    moments: Floats  # (2, d, d): people asked about a product of covariates, and the sum of their bits


def no_sums(levels: int, d: int) -> Sums:
    """Return empty sums."""
    return Sums(np.zeros(5), np.zeros((3, 2, levels, d)), np.zeros((4, levels, d, d)), np.zeros((2, d, d)))
