"""One pass, or several, of section 5.2's recursion over real rows: start at zero, steps .08 i^-.75, points in [-8, 8].

The channel is the paper's CQ_X(q, s) or none (the production loop of the paper's recursion), or a release of the whole
score, with Laplace noise or face-exponential.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import njit
from sottovoce.local.regression.liu_hu import LiuHuRun
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.protocol.regression.box import cq
from sottovoce.server.regression.study import LiuHuStudy
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression import face_exponential, laplace
from sottovoce_papers.simulation.regression.cell import printed
from sottovoce_papers.simulation.regression.dice import UNIT, roll, seeded, unit
from sottovoce_papers.simulation.regression.geometry import diameter

Order = npt.NDArray[np.int64]

STEP, POWER, LIMIT = 0.08, 0.75, 8.0


def through_channel(x: Floats, y: Floats, orders: Sequence[Order], tau: float, epsilon: float, seed: int) -> Floats:
    """Return the averaged coefficients with the paper's channel, or without privacy where epsilon is infinite.

    Examples
    --------
    >>> x, y = np.zeros((50, 8)), np.ones(50)
    >>> through_channel(x, y, [np.arange(50)], 0.5, 16.0, 1).shape
    (9,)
    """
    p = x.shape[1]
    cell = printed(tau, p, epsilon)
    channel = cq(tau, p, epsilon, q=cell.q, s=cell.s) if cell.private else open_channel(tau, p)
    d = p + 1
    study = LiuHuStudy(channel, np.eye(d)[None], np.zeros((1, d)), STEP, power=POWER, offset=0.0, limit=LIMIT)
    recursion, die = LiuHuRun(study), dice(seed)
    for order in orders:
        recursion.ask(Rows(np.ascontiguousarray(x[order]), y[order]), die, shuffle=False)
    return np.asarray(recursion.estimate().point[0])


def by_release(
    x: Floats, y: Floats, orders: Sequence[Order], tau: float, epsilon: float, seed: int, release: str
) -> Floats:
    """Return the averaged coefficients with a release of the whole score.

    ``release`` is "laplace", or face-exponential with the base measure as printed ("faces") or each face's divided by
    its volume ("even faces").

    Examples
    --------
    >>> x, y = np.zeros((50, 8)), np.ones(50)
    >>> by_release(x, y, [np.arange(50)], 0.5, 16.0, 1, "faces").shape
    (9,)
    """
    p = x.shape[1]
    point, total, words, done = np.zeros(p + 1), np.zeros(p + 1), seeded(seed), 0
    faces, even = release != "laplace", release == "even faces"
    noise = epsilon / (2.0 * diameter(tau, p)) if faces else diameter(tau, p) / epsilon
    with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
        for order in orders:
            _pass(x, y, order, done, point, total, tau, noise, faces, even, words)
            done += len(order)
    return total / done


@njit(cache=True, nogil=True)
def _pass(
    x: Floats,
    y: Floats,
    order: Order,
    done: int,
    point: Floats,
    total: Floats,
    tau: float,
    noise: float,
    faces: bool,
    even: bool,
    words: Words,
) -> None:
    """Ask rows in an order, moving the point and adding it up; ``noise`` is a rate of decay or the scale of noise."""
    state = (words[0], words[1], words[2], words[3])
    d = point.shape[0]
    score, u = np.empty(d), np.empty(d)
    for i in range(order.shape[0]):
        row = x[order[i]]
        fit = point[0]
        for j in range(1, d):
            fit += row[j - 1] * point[j]
        side = 1.0 - tau if y[order[i]] <= fit else -tau
        for j in range(d):
            state, word = roll(state)
            u[j] = unit(word) + 0.5 * UNIT
            score[j] = side if j == 0 else side * row[j - 1]
        report = face_exponential.encode(score, tau, noise, even, u) if faces else laplace.encode(score, noise, u)
        step = STEP * float(done + i + 1) ** -POWER
        for j in range(d):
            point[j] = min(max(point[j] - step * report[j], -LIMIT), LIMIT)
            total[j] += point[j]
    words[0], words[1], words[2], words[3] = state
