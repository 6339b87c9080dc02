"""The gain of the dithered regression, and how it dithers: functions of what has been learnt so far.

With H the slope and Omega the noise of a gradient, W diagonalises the information H Omega^-1 H and the guess I / B^2
at once: W' H Omega^-1 H W = I and W' W / B^2 = diag(need). Along column k, ``need_k`` people tell as much as the
guess. The gain W diag(1 / (need + i / pace)) W' H Omega^-1 is the Kalman gain at pace 1: the rule barely moves before
``need`` people have spoken, and then like pace / i.
"""

import numpy as np
from scipy.linalg import eigh

from sottovoce.core.arrays import Floats
from sottovoce.server.regression.dithered.moments import Moments, whitened, whitener

# while the slope is not known well, larger steps, growing against a far start: chosen on six cells (tau, p, epsilon),
# confirmed on six others; they still serve where the density is guessed 4 times too large (decision 0017)
PACE, GROWTH = 4.0, 0.2
STEADY = 2.0  # pace once it is: the bias of curvature falls from .4-.7 to about .1 standard errors (decision 0017)
SURE = 0.3  # relative standard deviation of a standard error from which on the slope counts as known (decision 0017)
DITHERED = (0.02, 0.15)  # least and most people asked beside the point (decision 0018)
MOMENTS = (0.002, 0.1)  # and about moments (decision 0019)
WORTH = 4.0  # relative variance x this: the share of dithered people that makes intervals shortest (decision 0018)
WORTH_MOMENTS = 1.5  # likewise for moments (decision 0019)
# the far dither moves the distribution function by at most so much, of tau and in all: larger ones saw the density rise
# at tau .9 and covered .85 to .90 (decision 0018)
STEEP, FAR = 0.55, 0.25


def gain(slope: Floats, omega: Floats, size: float) -> tuple[Floats, Floats, Floats]:
    """Return the left and the right factor of the gain, and the people after which data outweighs the guess."""
    d = len(slope)
    middle = slope @ np.linalg.inv(omega)
    information = middle @ slope
    need, left = eigh(np.eye(d) * d / size**2, (information + information.T) / 2)
    return np.asarray(left), np.asarray(left.T @ middle), np.asarray(need)


def pace(people: int, need: float, relative_sd: float) -> float:
    """Return the pace: larger than one against wrong guesses and far starts, small once the slope is known."""
    if relative_sd < SURE:
        return max(STEADY, PACE * relative_sd / SURE)
    return float(PACE * (1 + people / need) ** GROWTH)


def shares(relative_sd: float, moments: Moments, known: bool, settled: float) -> tuple[float, float]:
    """Return which part of the people to ask about moments, and which beside the point.

    ``relative_sd`` is that of the worst known standard error, and ``settled`` how many people were asked,
    of those who are worth the guess: before them neither helps yet.
    """
    part = min(settled, 1.0)
    dithered = part * min(max(WORTH * relative_sd**2, DITHERED[0]), DITHERED[1])
    if known:
        return 0.0, dithered
    worst = float(np.max(np.diag(whitened(moments.raw, whitener(moments.matrix)))))
    return part * min(max(WORTH_MOMENTS * worst, MOMENTS[0]), MOMENTS[1]), dithered


def reach(tail: float) -> float:
    """Return by how much the far dither moves the distribution function; ``tail`` is min(tau, 1 - tau)."""
    return min(FAR, STEEP * tail)


def curvature_prior(tail: float) -> tuple[float, float]:
    """Return mean and standard deviation of how much denser it is at the far dither, before anybody has answered.

    Distributions are peaked, and thin out in the tails: the line through ratios (F(h) - F(-h)) / 2hf of common ones at
    tail .5, .25 and .1, in units of the squared reach (decision 0018).
    """
    steep = (reach(tail) / tail) ** 2
    return (0.85 - 3.2 * tail) * steep, 0.6 * steep + 0.05
