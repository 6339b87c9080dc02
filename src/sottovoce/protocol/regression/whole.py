"""A law in floats made whole: integer weights that keep the budget exactly, and a decoding that stays unbiased.

Each letter's smaller weight is rounded down and its larger one is the largest integer within e^epsilon of it. What a
row then lacks of the die, about one face in a million for every row alike, goes to one more letter, the blank; its
likelihood ratio is next to one.
"""

from fractions import Fraction

import numpy as np

from sottovoce.core.arrays import Bools, Floats
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.exact import exponential
from sottovoce.protocol.regression.box_channel import FACES, FINEST

_BLANK = 20  # the blank letter has one face in 2^20: above any rounding of a float, and no loss to speak of


def whole_channel(
    name: str, epsilon: float, vertices: Floats, values: Floats, patterns: Bools, masses: Floats
) -> Channel:
    """Return the exact channel of letters with probability ``masses``, times e^epsilon where ``patterns`` say so.

    Parameters
    ----------
    name
        What to call it.
    epsilon
        The budget, finite.
    vertices
        What each symbol must decode to on average.
    values, patterns, masses
        Of each letter: its decoded value, the symbols that prefer it, and its probability for the others.

    Examples
    --------
    >>> flip = 1 / (1 + np.exp(1.0))
    >>> square = np.array([[0.0], [1.0]])
    >>> channel = whole_channel("rr", 1.0, square, square, np.eye(2, dtype=bool), np.full(2, flip))
    >>> len(channel.table), channel.epsilon <= 1.0 < channel.epsilon + 1e-8
    (3, True)
    """
    growth, scale = exponential(epsilon), FACES - (FACES >> _BLANK)
    lows = [int(Fraction(float(mass)) * scale) for mass in masses]
    kept = [i for i, low in enumerate(lows) if low >= FINEST]
    highs = [int(growth * low) for low in lows]
    rows = [[highs[i] if patterns[i, symbol] else lows[i] for i in kept] for symbol in range(len(vertices))]
    weights = tuple((*row, FACES - sum(row)) for row in rows)
    table = np.vstack([values[kept], np.zeros((1, values.shape[1]))])
    return Channel(name, vertices, weights, _unbiased(weights, vertices, table))


def _unbiased(weights: tuple[tuple[int, ...], ...], vertices: Floats, table: Floats) -> Floats:
    """Return the table nearest to ``table`` that decodes every symbol to its vertex, residuals taken in fractions."""
    distribution = np.array([[w / FACES for w in row] for row in weights])
    inverse = np.linalg.pinv(distribution)
    for _ in range(3):  # two refinements reach the last bit; the third keeps it
        rest = np.empty_like(vertices)
        for symbol, row in enumerate(weights):
            for axis in range(table.shape[1]):
                said = sum((w * Fraction(float(t)) for w, t in zip(row, table[:, axis], strict=True)), Fraction(0))
                rest[symbol, axis] = float(Fraction(float(vertices[symbol, axis])) - said / FACES)
        table = table + inverse @ rest
    return np.asarray(table)
