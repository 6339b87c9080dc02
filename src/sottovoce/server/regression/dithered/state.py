"""The online quantile regression: each person is asked once, and each look decides how the next ones are asked.

State is plain: where the points stand, the sums of the stretch under way, and the sums of the stretches behind it.
Looks come at fixed numbers of people, so that it does not matter in which batches people arrive.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.regression.dithered.gain import gain, pace, reach, shares
from sottovoce.server.regression.dithered.knowledge import Knowledge, Stretch, coefficients_size, learn_all
from sottovoce.server.regression.dithered.moments import whitener
from sottovoce.server.regression.dithered.step import Orders
from sottovoce.server.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.dithered.sums import Sums, no_sums

FIRST, RATIO = 64, 1.3  # people before the first look, and the growth from one look to the next


class State(NamedTuple):
    """People asked so far, their points (and room for a dithered one), the stretch under way and those behind it."""

    people: int
    points: Floats  # (2, levels, d)
    orders: Orders
    sums: Sums
    begun: int  # people before the stretch under way
    until: int  # people at the next look
    behind: tuple[Stretch, ...]


def init(study: DitheredStudy) -> State:
    """Return the state before the first person."""
    points = np.stack([study.start, study.start]).astype(np.float64)
    return State(0, points, orders_after(study, 0, learn_all(study, ())), no_sums(study.levels, study.d), 0, FIRST, ())


def look(study: DitheredStudy, state: State) -> State:
    """Close the stretch under way and give the orders for the next."""
    behind = (*state.behind, under_way(state))
    orders = orders_after(study, state.people, learn_all(study, behind))
    later = int(state.until * RATIO) + 1
    return State(state.people, state.points, orders, no_sums(study.levels, study.d), state.people, later, behind)


def under_way(state: State) -> Stretch:
    """Return the stretch under way as if it were closed."""
    return Stretch(state.begun, state.people, state.sums, state.orders.directions, state.orders.sizes)


def know(study: DitheredStudy, state: State) -> Knowledge:
    """Return what all people so far tell."""
    return learn_all(study, (*state.behind, under_way(state)))


def orders_after(study: DitheredStudy, people: int, knowledge: Knowledge) -> Orders:
    """Return how the next people are asked, and what their gradients do."""
    levels, d = study.levels, study.d
    gains, needs = np.zeros((2, levels, d, d)), np.zeros((levels, d + 1))
    directions, sizes = np.zeros((levels, d, d)), np.zeros((2, levels))
    worth = np.zeros(levels)
    doubt, sure = knowledge.worst_doubt(), knowledge.worst_doubt(confident=True)
    for level in range(levels):
        slope = knowledge.slopes[level]
        size = coefficients_size(study, knowledge, level)
        left, right, need = gain(slope.matrix, knowledge.omegas[level], size)
        _, _, at_first = gain(study.density[level] * study.moments, study.omega[level], study.size)
        gains[0, level], gains[1, level], needs[level, :d] = left, right, need
        worth[level] = float(np.mean(at_first))
        needs[level, d] = 1 / pace(people, worth[level], sure)
        directions[level] = whitener(knowledge.moments.matrix) / np.sqrt(d)
        far = reach(float(study.tails[level])) / slope.density
        sizes[:, level] = far / 2, far
    moments, dithered = shares(
        doubt, knowledge.moments, study.known or study.exact or d == 1, people / float(worth.max())
    )
    upto = np.array([moments, moments + dithered / 2, moments + dithered])
    return Orders(gains, needs, directions, sizes, upto, study.limit)
