"""The density about the quantile, from people whose intercept alone was moved: a line through squared distances.

The side of their response changes by density times distance: the covariates' moments need not be known. Far off the
density is another, f (1 + bend distance^2), and the bend is taken out, as far as it is known. Points that swing about
the root see it from farther off: a swing of variance s^2 counts as 3 s^2 of squared distance.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

# relative standard deviation of the guessed density, which is wrong by a factor 2 (decision 0017), and from which tail
# on by more, and by what power: of an exponential response a normal guess is 2.7 times too large at .99 (decision 0090)
DENSITY_SD, FAR, FARTHER = 0.5, 0.1, 1 / 2
LOWEST, HIGHEST = 0.2, 8.0  # the density, in units of its guess
BENDS = (-0.6, 1.5)  # the bend at the far distance, which no usual distribution leaves (decision 0018)
STEEP, FARTHEST = 0.45, 0.25
FARTHEST_SEEN = 4.0  # squared distances that the line is thought to reach
WIDER = 1.5  # log-likelihoods by which a wide prior of the bend has to win
SWING = 3.0  # squared distances that a point's squared distance from the root is worth: (F(r + h) - F(r - h)) / 2h is
# f (1 + c (h^2 + 3 r^2)) where the density is f (1 + 3 c r^2)


class Density(NamedTuple):
    """The density, how it bends at the far distance, and how little is known of it."""

    value: float
    bend: float
    variance: float  # relative
    prior: float  # of the bend
    prior_sd: float
    spread: float = DENSITY_SD  # standard deviation of the guess, in units of the density


def reach(tail: float) -> float:
    """Return by how much the far dither moves the distribution function; ``tail`` is min(tau, 1 - tau)."""
    return min(FARTHEST, (STEEP + tail) * tail)


def bend_prior(tail: float) -> tuple[float, float, float]:
    """Return mean, and narrow and wide standard deviation, of how much denser it is at the far distance.

    Distributions are peaked, and thin out in the tails: from the ratios (F(h) - F(-h)) / 2hf of common ones at tail .5,
    .25 and .1, at the end where intervals become longer (decision 0076).
    """
    steep = (reach(tail) / tail) ** 2
    return max(0.6 - 2 * tail, -0.2) * steep, 0.25 * steep + 0.02, 0.75 * steep + 0.02


def guess_sd(tail: float) -> float:
    """Return the relative standard deviation of a guessed density: the farther out, the more shapes differ.

    >>> [round(guess_sd(tail), 2) for tail in (0.5, 0.1, 0.01)]
    [0.5, 0.5, 1.58]
    """
    return float(DENSITY_SD * max(FAR / tail, 1.0) ** FARTHER)


def learn_density(seen: Floats, weights: Floats, squares: Floats, guess: float, tail: float) -> Density:
    """Return the density from those that were ``seen`` at squared distances, with their precisions."""
    mean, *spreads = bend_prior(tail)
    asked = weights > 0
    told = seen[asked], weights[asked], squares[asked]
    narrow, wide = (_fit(*told, guess, tail, (mean, spread)) for spread in spreads)
    return wide[1] if wide[0] > narrow[0] + WIDER else narrow[1]


def _fit(
    seen: Floats, weights: Floats, squares: Floats, guess: float, tail: float, prior: tuple[float, float]
) -> tuple[float, Density]:
    """Return log-likelihood and density of one prior of the bend, which is in units of the density."""
    value, far, sd = guess, reach(tail), guess_sd(tail)
    for _ in range(3):
        distances = np.minimum(squares * (value / far) ** 2, FARTHEST_SEEN)
        a, b, c = float(weights.sum()), float(weights @ distances), float(weights @ distances**2)
        first, second = 1 / (sd * guess) ** 2, 1 / (prior[1] * value) ** 2
        upper, lower = float(weights @ seen) + first * guess, float((weights * distances) @ seen)
        lower += second * prior[0] * value
        determinant = (a + first) * (c + second) - b**2
        line = ((c + second) * upper - b * lower) / determinant
        slope = ((a + first) * lower - b * upper) / determinant
        value = min(max(line, LOWEST * guess), HIGHEST * guess)
    bend = min(max(slope / value, BENDS[0]), BENDS[1])
    likelihood = 0.5 * np.log(first * second / determinant) + 0.5 * (upper * line + lower * slope)
    likelihood -= 0.5 * (first * guess**2 + second * (prior[0] * value) ** 2)
    variance = (c + second) / determinant
    return float(likelihood), Density(value, bend, variance / value**2, *prior, sd * max(guess / value, 1.0))
