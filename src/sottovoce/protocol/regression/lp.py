"""The pair channel: the best private law for the face and one slope, from a linear program, held in integers.

The program (`pair_program`) finds the letters; the weights are made whole (`whole`), so privacy and unbiasedness are
exact whatever the solver's tolerance was. The law is designed for a symmetric Beta covariate with a public second
moment; any other covariate is decoded without bias too, with a variance that depends on the law little.
"""

import functools
import math

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.box_channel import FACES, FINEST
from sottovoce.protocol.regression.covariates import UNIFORM
from sottovoce.protocol.regression.pair_program import solve_pair
from sottovoce.protocol.regression.whole import whole_channel

PLACES = (
    (1.0, 5),
    (6.0, 9),
    (math.inf, 17),
)  # up to each budget, finer steps of the slope gain less than half a percent
_BIAS = 1e-13  # of the largest decoded value: more than rounding


def lp_pair(tau: float, epsilon: float, weight: float, second_moment: float = UNIFORM) -> Channel:
    """Return the pair channel that makes E D_0^2 + weight x E D_1^2 least.

    Its symbols are face-major: the face y > fit with each step of the slope from -1 to 1, then the face y <= fit.

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
    if math.log(FACES / FINEST) - epsilon < math.log(4 * places):
        raise BadInput(f"epsilon {epsilon!r} is more than the pair channel can express; give a smaller budget, or inf.")
    if tau < 0.5:
        return _mirrored(_solved(1 - tau, epsilon, weight, second_moment))
    line = np.linspace(-1, 1, places)
    vertices = np.array([(face, face * z) for face in (-tau, 1 - tau) for z in line])
    letters = solve_pair(tau, epsilon, (1.0, weight), second_moment, places)
    channel = whole_channel("lp", epsilon, vertices, letters.values, letters.patterns, letters.masses)
    if np.abs(channel.distribution @ channel.table - vertices).max() <= _BIAS * np.abs(channel.table).max():
        return channel
    # a face that is next to nothing sinks below the solver's tolerance: its symbols may then share all their letters
    letters = solve_pair(tau, epsilon, (1.0, weight), second_moment, places, rounds=0)
    return whole_channel("lp", epsilon, vertices, letters.values, letters.patterns, letters.masses)


def _mirrored(channel: Channel) -> Channel:
    """Return the channel for one less the level: the faces change places, and scores change sign."""
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
