"""A regression channel as flat arrays, so that compiled code on both sides of the wire reads the same tables."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.blocks import Block, RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel

BOX, MATRIX, OPEN = 0, 1, 2
FORM, KINDS, SLOPES, CELLS, WIDTH, POSITIONS, FIXED = range(7)  # columns of the plan
LOW, COMMON, EXTRA, INSIDE = range(4)  # columns of the faces
Weights = npt.NDArray[np.uint64]


class Tables(NamedTuple):
    """One row a block; `client.regression.randomize_row` makes a letter, `server.regression.decode` reads it."""

    upto: Floats  # (blocks,): cumulative probabilities
    plan: Ints  # (blocks, 6 + slopes): form, kinds, slopes, cells, width, places of a box; fixed slopes, 0: drawn
    faces: Weights  # (blocks + 1, 4): low, low x letters, extra, extra x letters inside; last the bit of a moment
    steps: Weights  # (blocks, 1 + symbols, letters): a matrix's faces, cumulative: any symbol's, then each one's own
    score: Floats  # (levels, kinds): the score at each face
    read: Floats  # (blocks, levels, kinds + 1 + d): intercept by face, what is taken off a slope, then its factors
    matrix: Floats  # (blocks, letters, 2): a matrix's decoded face and slope
    radius: float


def tables_of(channel: RegressionChannel) -> Tables:
    """Return the arrays of a regression channel."""
    blocks, levels, d = channel.blocks, len(channel.taus), channel.p + 1
    n, kinds = len(blocks), levels + 1
    matrices = [b.channel for b in blocks if isinstance(b.channel, Channel)]
    letters = max((len(m.weights[0]) for m in matrices), default=1)
    symbols = max((len(m.weights) for m in matrices), default=1)
    tables = Tables(
        np.cumsum([b.probability for b in blocks]),
        np.zeros((n, FIXED + max(channel.widest, 1)), dtype=np.int64),
        np.zeros((n + 1, 4), dtype=np.uint64),
        np.zeros((n, 1 + symbols, letters), dtype=np.uint64),
        np.array([channel.faces(level) for level in range(levels)]),
        np.zeros((n, levels, kinds + 1 + d)),
        np.zeros((n, letters, 2)),
        channel.radius,
    )
    tables.upto[-1] = 1.0
    bit = channel.bit
    tables.faces[n] = (bit.low, bit.low * bit.letters, bit.extra, bit.extra)
    for i, block in enumerate(blocks):
        if block.slopes is not None:
            tables.plan[i, FIXED : FIXED + len(block.slopes)] = block.slopes
        if isinstance(block.channel, BoxChannel):
            _fill_box(tables, i, block, block.channel, channel)
        elif isinstance(block.channel, Channel):
            _fill_matrix(tables, i, block, block.channel)
        else:
            tables.plan[i, :FIXED] = (OPEN, 2, channel.p, 1, 1, 1)
    return tables


def _fill_box(tables: Tables, i: int, block: Block, box: BoxChannel, channel: RegressionChannel) -> None:
    tables.plan[i, :FIXED] = (BOX, box.kinds, box.slopes, box.cells, box.width, box.positions)
    tables.faces[i] = (box.low, box.low * box.letters, box.extra, box.extra * box.inside)
    for level in range(len(channel.taus)):
        faces = channel.faces(level) if box.kinds > 1 else np.array([channel.radius])
        kinds, decode = len(channel.taus) + 1, box.decoder(faces)
        if box.kinds > 1:
            tables.read[i, level, :kinds] = (
                (faces - float(decode.shift_face)) * float(decode.face) * block.gains[level, 0]
            )
        tables.read[i, level, kinds] = float(decode.shift_slope)
        tables.read[i, level, kinds + 1 :] = float(decode.slope) * block.gains[level]


def _fill_matrix(tables: Tables, i: int, block: Block, matrix: Channel) -> None:
    symbols, letters = len(matrix.weights), len(matrix.weights[0])
    tables.plan[i, :FIXED] = (MATRIX, 2, 1, symbols // 2, 1, symbols // 2)
    common = [min(column) for column in zip(*matrix.weights, strict=True)]
    rows = [common, *([w - c for w, c in zip(row, common, strict=True)] for row in matrix.weights)]
    for j, row in enumerate(rows):
        tables.steps[i, j, :letters] = np.cumsum(np.array(row, dtype=np.uint64))
        tables.steps[i, j, letters:] = tables.steps[i, j, letters - 1]
    tables.matrix[i, :letters] = matrix.table
    tables.read[i, :, tables.score.shape[1] + 1 :] = block.gains
