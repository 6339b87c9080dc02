"""What the letters of people at the point tell of the moments of their covariates, beside the gradient: at no cost.

A letter of a matrix speaks of the side and of one slope z: where some table of the letters is z, or z^2, on average
whatever the side, it is read as well; of all such tables the one of least variance is taken. A letter of a box has a
cell for each slope, whose middles and their products are z, z^2 and products of two slopes on average, once the
letters that are uniform are allowed for; without a side, and at the median, the score turns both slopes alike, so that
their products are right and single slopes tell nothing.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.kernels import njit
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.blocks import (
    CELLS,
    FORM,
    MATRIX,
    SLOPES,
    Block,
    RegressionChannel,
)
from sottovoce.protocol.regression.box_channel import BoxChannel

MEAN, SQUARE, CROSS = range(3)  # kinds of moments
FEW, SELDOM = 2, 8  # slopes of a block up to which everybody is listened to; else one of so many people
EXACT = 1e-9  # how far a table may be from what it is to tell
SPREAD_OF_SQUARE, SPREAD_OF_CROSS = 4 / 45, 1 / 9  # variances of z^2, and of two slopes' product, of even covariates


class Overheard(NamedTuple):
    """How letters are read: for each block the precision of one letter (0: tells nothing), and how it is decoded."""

    precisions: Floats  # (blocks, 3)
    table: Floats  # (blocks, letters, 2): a matrix's z and z^2, times their precisions
    scales: Floats  # (blocks, 3): what a box's middles and products are multiplied by, their precisions included
    shifts: Floats  # (blocks,): what is taken off the square of a middle before
    every: Ints  # (blocks,): of so many people one is listened to, where a letter tells of many products
    rounding: float  # how far squares may be off because slopes are rounded to a grid


def overheard_of(channel: RegressionChannel) -> Overheard:
    """Return how the letters of a channel are read for moments.

    >>> from sottovoce.protocol.regression.box import box
    >>> overheard_of(box((0.5,), 3, 4.0, slopes=2, cells=8, width=3)).precisions.shape
    (1, 3)
    """
    blocks = channel.blocks
    letters = max((len(b.channel.weights[0]) for b in blocks if isinstance(b.channel, Channel)), default=1)
    found = Overheard(
        np.zeros((len(blocks), 3)),
        np.zeros((len(blocks), letters, 2)),
        np.zeros((len(blocks), 3)),
        np.zeros(len(blocks)),
        np.array([1 if block.count <= FEW else SELDOM for block in blocks], dtype=np.int64),
        max(_grid(block) ** 2 / 12 for block in blocks),
    )
    for i, block in enumerate(blocks):
        if isinstance(block.channel, BoxChannel):
            _fill_box(found, i, block.channel, channel)
        elif isinstance(block.channel, Channel):
            _fill_matrix(found, i, block.channel, channel.taus[0])
    return found


def _grid(block: Block) -> float:
    """Return the step to which a block rounds slopes."""
    if isinstance(block.channel, BoxChannel):
        return 2 / max(block.channel.positions - 1, 1)
    return 2 / max(len(block.channel.weights) // 2 - 1, 1) if isinstance(block.channel, Channel) else 0.0


def _fill_box(found: Overheard, i: int, box: BoxChannel, channel: RegressionChannel) -> None:
    """Fill how a box is read: a middle is that of the slope's place, or of any cell."""
    if box.slopes == 0 or box.positions < 2 or (box.kinds == 1 and channel.taus != (0.5,)):
        return
    truth, reach = float(box.truth), 1 - box.width / box.cells
    noise, inside = (1 - 1 / box.cells**2) / 3, (box.width**2 - 1) / (3 * box.cells**2)
    middle = truth * (reach**2 / 3 + inside) + (1 - truth) * noise
    grid = (2 / (box.positions - 1)) ** 2 / 6  # by so much rounding to places lengthens a square, on average
    found.shifts[i] = truth * (inside + reach**2 * grid) + (1 - truth) * noise
    factors = np.array([1 / (truth * reach), 1 / (truth * reach**2), 1 / (truth * reach**2)])
    spreads = np.array([middle, SPREAD_OF_SQUARE, middle**2]) * factors**2
    found.precisions[i] = 1 / spreads
    found.precisions[i, MEAN] *= box.kinds > 1
    found.precisions[i, CROSS] *= box.slopes > 1
    found.scales[i] = factors * found.precisions[i]


def _fill_matrix(found: Overheard, i: int, matrix: Channel, tau: float) -> None:
    """Fill how a matrix is read, if it tells of the slope whatever the side."""
    weights = np.array(matrix.weights, dtype=np.float64)
    laws, places = weights / weights.sum(axis=1, keepdims=True), len(weights) // 2
    if places < 2:
        return
    grid = np.linspace(-1, 1, places)
    often = np.repeat([1 - tau, tau], places) / places
    seen = often @ laws
    used = seen > 0
    root = np.sqrt(seen[used])
    for kind, told in ((MEAN, grid), (SQUARE, grid**2)):
        target = np.tile(told, 2)
        whole = np.linalg.lstsq(laws[:, used] / root, target, rcond=1e-10)[0] / root
        if np.abs(laws[:, used] @ whole - target).max() > EXACT:
            continue
        table = np.zeros(len(seen))
        table[used] = whole - (grid[1] - grid[0]) ** 2 / 6 * (kind == SQUARE)
        precision = 1 / (seen @ table**2 - (seen @ table) ** 2)
        found.precisions[i, kind] = precision
        found.table[i, : len(seen), kind] = precision * table


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def overhear(
    plan: Ints,
    precisions: Floats,
    table: Floats,
    scales: Floats,
    shifts: Floats,
    every: Ints,
    block: int,
    chosen: Ints,
    letter: int,
    person: int,
    sums: Floats,
) -> None:
    """Book what a letter tells of moments: sums of precisions, and of precisions x values (upper triangle)."""
    if every[block] > 1 and person % SELDOM != 0:
        return
    first = chosen[0]
    if plan[block, FORM] == MATRIX:
        sums[0, 0, first] += precisions[block, MEAN]
        sums[1, 0, first] += table[block, letter, MEAN]
        sums[0, first, first] += precisions[block, SQUARE]
        sums[1, first, first] += table[block, letter, SQUARE]
        return
    slopes, cells, rest = plan[block, SLOPES], plan[block, CELLS], np.int64(letter)
    if precisions[block, SQUARE] == 0.0:
        return
    if slopes == 2:  # as most boxes
        second = chosen[1]
        one = (2 * (rest % cells) + 1 - cells) / cells
        other = (2 * ((rest // cells) % cells) + 1 - cells) / cells
        _book_one(precisions, scales, shifts, block, first, one, sums)
        _book_one(precisions, scales, shifts, block, second, other, sums)
        _book_two(precisions, scales, block, first, second, one * other, sums)
        return
    for k in range(slopes):
        one = (2 * (rest % cells) + 1 - cells) / cells
        rest //= cells
        _book_one(precisions, scales, shifts, block, chosen[k], one, sums)
        further = rest
        for m in range(k + 1, slopes):
            other = (2 * (further % cells) + 1 - cells) / cells
            further //= cells
            _book_two(precisions, scales, block, chosen[k], chosen[m], one * other, sums)


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def _book_one(
    precisions: Floats, scales: Floats, shifts: Floats, block: int, slope: int, middle: float, sums: Floats
) -> None:
    """Book one slope's middle."""
    sums[0, 0, slope] += precisions[block, MEAN]
    sums[1, 0, slope] += middle * scales[block, MEAN]
    sums[0, slope, slope] += precisions[block, SQUARE]
    sums[1, slope, slope] += (middle * middle - shifts[block]) * scales[block, SQUARE]


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def _book_two(
    precisions: Floats, scales: Floats, block: int, one: int, other: int, product: float, sums: Floats
) -> None:
    """Book the product of two slopes' middles."""
    low, high = min(one, other), max(one, other)
    sums[0, low, high] += precisions[block, CROSS]
    sums[1, low, high] += product * scales[block, CROSS]
