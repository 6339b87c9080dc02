"""The pair channel: the best private distribution for the side and one slope, from a linear program, held in integers.

The program (`pair_program`) finds the letters; then the weights are made whole, so privacy and unbiasedness are exact
whatever the solver's tolerance was. Each letter's smaller weight is rounded down and its larger one is the largest
integer within e^epsilon of it. What a row then lacks of the die, about one outcome in a million for every row alike,
goes to one more letter, the blank; its likelihood ratio is next to one.

The channel is designed for a symmetric Beta covariate with a public second moment; any other covariate is decoded
without bias too, with a variance that depends on its distribution little.
"""

import functools
import math
from fractions import Fraction

import numpy as np

from sottovoce.core.arrays import Bools, Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.exact import exponential
from sottovoce.protocol.regression.box_channel import FINEST
from sottovoce.protocol.regression.covariates import UNIFORM
from sottovoce.protocol.regression.pair_program import solve_pair

PLACES = (
    (1.0, 5),
    (6.0, 9),
    (math.inf, 17),
)  # up to each budget, finer steps of the slope gain less than half a percent
_BIAS = 1e-13  # of the largest decoded value: more than rounding

_BLANK = 20  # the blank letter has one outcome in 2^20: above any rounding of a float, and no loss to speak of


def lp_pair(tau: float, epsilon: float, weight: float, second_moment: float = UNIFORM) -> Channel:
    """Return the pair channel that makes E D_0^2 + weight x E D_1^2 least.

    Its symbols are side-major: the side y > fit with each step of the slope from -1 to 1, then the side y <= fit.

    Parameters
    ----------
    tau
        The quantile level.
    epsilon
        The budget of one report; finite.
    weight
        How much the variance of the slope counts against that of the intercept.
    second_moment
        The public E z^2 of the covariate.

    Examples
    --------
    >>> channel = lp_pair(0.75, 1.0, 9.0)
    >>> len(channel.weights), channel.epsilon <= 1.0 < channel.epsilon + 1e-8
    (10, True)
    """
    if not epsilon > 0 or math.isinf(epsilon):
        raise BadInput(f"the pair channel needs a finite positive budget, not {epsilon!r}; give epsilon such as 1.")
    if not 0 < tau < 1:
        raise BadInput(f"a quantile level lies between 0 and 1, not {tau!r}; give tau such as 0.5.")
    return _solved(float(tau), float(epsilon), float(weight), float(second_moment))


@functools.lru_cache(maxsize=256)
def _solved(tau: float, epsilon: float, weight: float, second_moment: float) -> Channel:
    places = next(count for most, count in PLACES if epsilon <= most)
    if math.log(OUTCOMES / FINEST) - epsilon < math.log(4 * places):
        raise BadInput(f"epsilon {epsilon!r} is more than the pair channel can express; give a smaller budget, or inf.")
    if tau < 0.5:
        return _mirrored(_solved(1 - tau, epsilon, weight, second_moment))
    line = np.linspace(-1, 1, places)
    vertices = np.array([(side, side * z) for side in (-tau, 1 - tau) for z in line])
    letters = solve_pair(tau, epsilon, (1.0, weight), second_moment, places)
    channel = whole_channel("lp", epsilon, vertices, letters.values, letters.patterns, letters.masses)
    if np.abs(channel.distribution @ channel.table - vertices).max() <= _BIAS * np.abs(channel.table).max():
        return channel
    # a side that is next to nothing sinks below the solver's tolerance: its symbols may then share all their letters
    letters = solve_pair(tau, epsilon, (1.0, weight), second_moment, places, rounds=0)
    return whole_channel("lp", epsilon, vertices, letters.values, letters.patterns, letters.masses)


def _mirrored(channel: Channel) -> Channel:
    """Return the channel for one less the level: the sides change places, and scores change sign."""
    half = len(channel.weights) // 2
    weights = channel.weights[half:] + channel.weights[:half]
    return Channel(channel.name, -np.roll(channel.vertices, half, axis=0), weights, -channel.table)


def _example(epsilon: float, tau: float, weight: float, second_moment: float = UNIFORM) -> Channel:
    return lp_pair(tau, epsilon, weight, second_moment)


EXAMPLES = (
    (0.05, functools.partial(_example, tau=0.75, weight=9.0)),
    (0.5, functools.partial(_example, tau=0.99, weight=40.0, second_moment=0.1)),
    (1.0, functools.partial(_example, tau=0.75, weight=9.0)),
    (2.0, functools.partial(_example, tau=0.25, weight=3.0, second_moment=1.0)),
    (4.0, functools.partial(_example, tau=0.5, weight=9.0)),
    (16.0, functools.partial(_example, tau=0.6, weight=9.0)),
    (8.0, functools.partial(_example, tau=0.5, weight=9.0)),
)
"""Budgets on which the universal channel checks run."""


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
    growth, scale = exponential(epsilon), OUTCOMES - (OUTCOMES >> _BLANK)
    lows = [int(Fraction(float(mass)) * scale) for mass in masses]
    kept = [i for i, low in enumerate(lows) if low >= FINEST]
    highs = [int(growth * low) for low in lows]
    rows = [[highs[i] if patterns[i, symbol] else lows[i] for i in kept] for symbol in range(len(vertices))]
    weights = tuple((*row, OUTCOMES - sum(row)) for row in rows)
    table = np.vstack([values[kept], np.zeros((1, values.shape[1]))])
    return Channel(name, vertices, weights, _unbiased(weights, vertices, table))


def _unbiased(weights: tuple[tuple[int, ...], ...], vertices: Floats, table: Floats) -> Floats:
    """Return the table nearest to ``table`` that decodes every symbol to its vertex, residuals taken in fractions."""
    distribution = np.array([[w / OUTCOMES for w in row] for row in weights])
    inverse = np.linalg.pinv(distribution)
    for _ in range(3):  # two refinements reach the last bit; the third keeps it
        rest = np.empty_like(vertices)
        for symbol, row in enumerate(weights):
            for axis in range(table.shape[1]):
                said = sum((w * Fraction(float(t)) for w, t in zip(row, table[:, axis], strict=True)), Fraction(0))
                rest[symbol, axis] = float(Fraction(float(vertices[symbol, axis])) - said / OUTCOMES)
        table = table + inverse @ rest
    return np.asarray(table)
