"""How sites of every kind vote: the law of their values below a level of the scores.

Of a site's n scores, c ~ Bin(n, t) lie below level t. Asked for its l-th smallest, it answers with a value below the
level if c >= l; a private site does so with probability ``failure(c - l)`` at most. Hence

    p_l(t) = sum_c P(Bin(n, t) = c) failure(c - l),      without privacy I_t(l, n - l + 1).

Sites without privacy are computed all at once, private ones kind by kind.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Failure = Callable[[Ints], Floats]

REACH = 9.0  # standard deviations of a binomial law, and as many scores again for small ones


class Kind(NamedTuple):
    """What the design must know of a site: its size, and how a private answer may fail; sites alike share one.

    A mechanism that is ``bounded`` can only be asked for orders from 1 to the size.
    """

    size: int
    failure: Failure | None = None
    bounded: bool = False


def below(kinds: Sequence[Kind], orders: Ints, levels: Floats) -> Floats:
    """Return the probabilities that the values of orders (kinds, values) lie below levels: (kinds, values, levels).

    >>> below([Kind(10), Kind(9)], np.array([[9], [10]]), np.array([0.9])).round(4).tolist()
    [[[0.7361]], [[0.0]]]
    """
    from scipy.special import betainc

    sizes = np.array([kind.size for kind in kinds])[:, None]
    held = np.minimum(orders, sizes)[:, :, None]
    found = np.asarray(betainc(held, sizes[:, :, None] - held + 1, levels[None, None, :]))
    found[orders > sizes] = 0.0
    for i, kind in enumerate(kinds):
        if kind.failure is not None:
            counts, mass = binomial(kind.size, levels)
            for j, order in enumerate(orders[i]):
                found[i, j] = np.clip(mass @ kind.failure(counts - order), 0.0, 1.0)
    return found


def orders_for(kinds: Sequence[Kind], level: float, wanted: Floats) -> Ints:
    """Return for each kind the orders whose values lie below a level with nearest to the wanted probabilities.

    >>> orders_for([Kind(100), Kind(3)], 0.9, np.array([0.8, 0.5, 0.2])).tolist()
    [[88, 91, 93], [3, 3, 3]]
    """
    from scipy.special import bdtrik, betainc

    sizes = np.array([kind.size for kind in kinds], dtype=np.float64)[:, None]
    # P(count >= l) = wanted is P(count <= l - 1) = 1 - wanted
    near = np.floor(bdtrik(np.clip(1 - wanted, 1e-12, 1 - 1e-12)[None, :], sizes, level)) + 1
    tried = np.clip(near[:, :, None] + np.array([-1.0, 0.0, 1.0, 2.0]), 1, sizes[:, :, None])
    chance = betainc(tried, sizes[:, :, None] - tried + 1, level)
    best = np.abs(chance - wanted[None, :, None]).argmin(axis=2)
    found = np.take_along_axis(tried, best[:, :, None], axis=2)[:, :, 0].astype(np.int64)
    for i, kind in enumerate(kinds):
        if kind.failure is not None:
            private = _private_orders(kind.size, kind.failure, level, wanted)
            found[i] = np.clip(private, 1, kind.size) if kind.bounded else private
    return np.asarray(found)


def information(kinds: Sequence[Kind], orders: Ints, level: float) -> Floats:
    """Return the best weight of each kind's votes: slope over variance of the chance to lie below a level.

    >>> told = information([Kind(100), Kind(10_000)], np.array([[91], [9001]]), 0.9)
    >>> round(float(told[1] / told[0]), 1)
    10.0
    """
    from scipy.special import betaln, xlog1py, xlogy

    sizes = np.array([kind.size for kind in kinds])[:, None]
    held = np.minimum(orders, sizes)
    above = sizes - held + 1
    slope = np.exp(xlogy(held - 1, level) + xlog1py(above - 1, -level) - betaln(held, above))
    slope[orders > sizes] = 0.0
    for i, kind in enumerate(kinds):
        if kind.failure is not None:
            counts, mass = binomial(kind.size, np.array([level]))
            score = mass[0] * (counts - kind.size * level) / (level * (1 - level))
            slope[i] = [score @ kind.failure(counts - order) for order in orders[i]]
    chance = below(kinds, orders, np.array([level]))[:, :, 0]
    return np.asarray(np.mean(slope / np.maximum(chance * (1 - chance), 1e-12), axis=1))


def binomial(size: int, levels: Floats) -> tuple[Ints, Floats]:
    """Return counts that hold all but 1e-17 of the binomial laws, and the laws, one a row."""
    from scipy.special import gammaln, xlog1py, xlogy

    centre, deviation = size * levels, np.sqrt(size * levels * (1 - levels))
    low = max(int(np.min(centre - REACH * (deviation + 3))), 0)
    high = min(math.ceil(np.max(centre + REACH * (deviation + 3))), size)
    counts = np.arange(low, high + 1)
    ways = gammaln(size + 1) - gammaln(counts + 1) - gammaln(size - counts + 1)
    mass = np.exp(ways + xlogy(counts, levels[:, None]) + xlog1py(size - counts, -levels[:, None]))
    return counts, mass / mass.sum(axis=1, keepdims=True)


def _private_orders(size: int, failure: Failure, level: float, wanted: Floats) -> Ints:
    """Return the orders whose noisy values lie below a level with nearest to the wanted probabilities."""
    counts, mass = binomial(size, np.array([level]))
    margin = 8
    while margin < 1 << 24 and float(failure(np.array([-margin]))[0]) > 1e-3:
        margin *= 2
    orders = np.arange(int(counts[0]) - margin, int(counts[-1]) + margin + 1)
    # one correlation of the noise with the law of the count: chance[i] = sum_c mass[c] failure(c - orders[i])
    noise = failure(np.arange(int(counts[0] - orders[-1]), int(counts[-1] - orders[0]) + 1))
    chance = np.correlate(noise, mass[0], mode="valid")[::-1]
    return np.asarray(orders[np.abs(chance[:, None] - wanted[None, :]).argmin(axis=0)])
