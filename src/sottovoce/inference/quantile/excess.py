"""The mean of a tail from letters about the survival function: two ends that hold for every distribution within bounds.

Let ``S(x) = P(Z > x)``, ``t`` the mass of the tail, ``q`` a point with ``S(q) <= t <= S(q-)`` and ``B`` the far bound.
The expected shortfall is ``e = q + E(Z - q)^+ / t``, and (Rockafellar and Uryasev 2000)

    e = min over x of x + (1/t) int_x^B S,        e = l + int_l^B min(S / t, 1)  for every l <= q.

So ``x + (1/t) int_x^B S`` is an upper end at any point ``x``, right or wrong about the quantile. If ``l <= q <= u``,
``min(S / t, 1)`` is ``S / t`` beyond ``u``, and at least ``S(u) / t`` between ``l`` and ``u``, which gives the lower
end ``l + ((u - l) S(u) + int_u^c S) / t`` at any ``c <= B``. An error in the quantile costs its square in both.

A report at ``x`` says "beyond" with probability ``(1 - R) / 2 + R S(x)``. Reports are as many at each point of a grid
in equal steps, and as many to each length at ``u``: so an integral, read from the left end of every step or from the
right one, is a mean of probabilities times a length. Given the points, the count of letters is a sum of independent
coins; its tails outside ``mean -+ 1`` are at most those of the binomial distribution of the same mean (Hoeffding 1956),
so that the exact binomial limits (Clopper and Pearson 1934) hold for the mean.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from sottovoce.core.arrays import Floats, Ints

MOST_ERROR = 0.2  # of an end: a binomial tail of less lies outside mean -+ 1, where Hoeffding's theorem speaks
HALVINGS = 60


class Excess(NamedTuple):
    """What was heard beyond a quantile; values are turned so that the tail is the upper one.

    ``most`` counts who said "beyond" or could not be asked, ``least`` who said it; a number a point, and ``each`` were
    asked at each of them, from ``start`` on in equal steps to ``far``. ``near`` were asked at ``edge``. ``first`` were
    asked beforehand, on a coarser grid between the same ends; ``reach`` is how many points the lower end goes to.
    """

    mass: float
    rate: float
    start: float
    far: float
    each: int
    least: Ints
    most: Ints
    edge: float
    near: int
    near_least: int
    first: int
    first_most: int
    first_least: int
    first_points: int
    reach: int

    @property
    def step(self) -> float:
        """Return the step of the grid."""
        return (self.far - self.start) / len(self.least)

    @property
    def grid(self) -> Floats:
        """Return the points that were asked."""
        return np.asarray(self.start + self.step * np.arange(len(self.least)), dtype=np.float64)


def upper_end(excess: Excess, error: float) -> float:
    """Return the upper end; it is wrong with at most this probability, whatever the quantile is."""
    asked = excess.first + excess.each * len(excess.most)
    said = excess.first_most + int(excess.most.sum())
    mean = _decoded(highest_chance(said, asked, min(error, MOST_ERROR)), excess.rate)
    return min(excess.start + max(mean, 0.0) * (excess.far - excess.start) / excess.mass, excess.far)


def lower_end(excess: Excess, low: float, high: float, error: float) -> float:
    """Return the lower end if the quantile lies above ``low`` and not above ``high``; wrong with at most this error."""
    width = excess.step / excess.each  # what one report stands for
    near, said = excess.near, excess.near_least
    if high > excess.edge:
        near, said = 0, 0
    base = min(low, excess.edge - width * near) if near else low
    first = int(np.searchsorted(excess.grid, max(high, excess.edge))) + 1  # each is the right end of a step
    used = excess.least[first : excess.reach]
    asked, said = near + excess.each * len(used), said + int(used.sum())
    if asked == 0:
        return low
    mean = _decoded(lowest_chance(said, asked, min(error, MOST_ERROR)), excess.rate)
    return max(low, min(base + max(mean, 0.0) * width * asked / excess.mass, excess.far))


def middle(excess: Excess, smooth: bool) -> float:
    """Return the unbiased estimate; ``smooth`` if the survival function has no steps as wide as the grid's."""
    asked = excess.first + excess.each * len(excess.least)
    said = excess.first_least + int(excess.least.sum())
    mean = _decoded(said / asked, excess.rate)
    coarse = (excess.far - excess.start) / excess.first_points
    step = (excess.first * coarse + (asked - excess.first) * excess.step) / asked
    # the left ends of steps count half a step of the tail too much
    return excess.start + mean * (excess.far - excess.start) / excess.mass - (step / 2 if smooth else 0.0)


def highest_chance(count: int, of: int, error: float) -> float:
    """Return the exact upper limit for a chance.

    >>> round(highest_chance(0, 100, 0.05), 6), highest_chance(5, 5, 0.05)
    (0.029513, 1.0)
    """
    return 1 - lowest_chance(of - count, of, error)


def lowest_chance(count: int, of: int, error: float) -> float:
    """Return the exact lower limit for a chance: the largest at which so many or more have at most this probability."""
    if count <= 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        tried = (low + high) / 2
        low, high = (tried, high) if betainc(count, of - count + 1, tried) <= error else (low, tried)
    return low


def _decoded(chance: float, rate: float) -> float:
    """Return the probability that letters with this chance of "beyond" speak of."""
    return (chance - (1 - rate) / 2) / rate
