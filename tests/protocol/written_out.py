"""A box channel written out as the matrix that its two integers stand for."""

from fractions import Fraction
from itertools import product

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.box_channel import BoxChannel


def matrix(box: BoxChannel) -> tuple[tuple[int, ...], ...]:
    """Return the weights: a row for each side and place of the box, a column for each letter."""
    places = [*product(range(box.kinds), *[range(box.positions)] * box.slopes)]
    letters = [box.parts(letter) for letter in range(box.letters)]
    return tuple(tuple(_weight(box, place, parts, i) for i, parts in enumerate(letters)) for place in places)


def _weight(box: BoxChannel, place: tuple[int, ...], parts: tuple[int, ...], letter: int) -> int:
    near = place[0] == parts[0] and all(
        at <= cell < at + box.width for at, cell in zip(place[1:], parts[1:], strict=True)
    )
    return box.low + box.extra * near + box.spare * (letter == 0)


def dense_channel(box: BoxChannel, sides: Floats) -> Channel:
    """Return the same distribution as a matrix, decoding the side and the products of the side and the slopes.

    ``sides`` are the values of the side; a channel of one kind decodes the slopes alone.
    """
    values = [Fraction(float(side)) for side in sides]
    decode = box.decoder(sides)
    rows, table = [], []
    for place in product(range(box.kinds), *[range(box.positions)] * box.slopes):
        steps = max(box.positions - 1, 1)
        slopes = [Fraction(2 * at, steps) - 1 if box.positions > 1 else Fraction(0) for at in place[1:]]
        head = [values[place[0]]] if box.kinds > 1 else []
        rows.append([float(v) for v in (*head, *(values[place[0]] * s for s in slopes))])
    for letter in range(box.letters):
        side, *cells = box.parts(letter)
        first = [float((values[side] - decode.shift_side) / box.truth)] if box.kinds > 1 else []
        tail = [float((values[side] * box.value(c) - decode.shift_slope) * decode.slope) for c in cells]
        table.append(first + tail)
    return Channel(box.name, np.array(rows), matrix(box), np.array(table))
