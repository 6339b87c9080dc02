r"""Replications of the private walk abreast, one lane each (Algorithms 1 and 2 of Cai, Hu and Wu).

All lanes share sites, schedule and steps, so the innermost loop runs over lanes and a processor takes several of them
at once. With fresh records nothing is drawn but letters: site k says 1 with probability ``r_k (1 - F_k(q)) + (1 - r_k)
/ 2``, read from a table by linear interpolation. With one fixed data set every lane compares with the same record and
only the coins differ.

The self-normaliser is that of `inference.self_normalised.memory`: what depends on the schedule alone is shared by the
lanes.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.regression.dice import UNIT

_11, _17, _19, _23, _41, _45 = (np.uint64(k) for k in (11, 17, 19, 23, 41, 45))
STAR, ALONE, RING = 0, 1, 2


class Lanes(NamedTuple):
    """What the lanes carry, overwritten by the kernels.

    ``points`` (sites, lanes); ``words`` (4, lanes), the dice; ``memory`` (3, lanes): average, spread, lean of the
    self-normaliser; ``clock``: rounds, ramp, noise and iterations, the same in all lanes.
    """

    points: Floats
    words: Words
    memory: Floats
    clock: Floats


class Letters(NamedTuple):
    """How a site's letter comes about.

    ``chances`` (distributions, grid): probability of a one at points ``low + j / per`` from the location; ``locations``
    (distributions, lanes); ``data`` (iterations, sites): the fixed records, none if they are fresh; ``rates`` (sites,)
    for fixed records; ``moves`` (sites, 2): where a letter 0 or 1 moves the point per unit of step. Distributions take
    turns where there are more of them than sites.
    """

    chances: Floats
    low: float
    per: float
    locations: Floats
    data: Floats
    rates: Floats
    moves: Floats


def begin(starts: Floats, sites: int, words: Words) -> Lanes:
    """Return lanes that start from some points."""
    memory = np.zeros((3, len(starts)))
    return Lanes(np.tile(starts, (sites, 1)), words, memory, np.zeros(4))


def spread(lanes: Lanes) -> Floats:
    """Return each lane's square root of Algorithm 2's self-normaliser."""
    rounds, _, noise, _ = lanes.clock
    return np.asarray(np.sqrt(np.maximum(lanes.memory[1], 0.0) / (rounds**2 * noise)))


@njit(cache=True)
def toss(words: Words, faces: Floats) -> None:
    """Draw one uniform number a lane (xoshiro256++, lane by lane)."""
    for i in range(faces.shape[0]):
        a, b, c, d = words[0, i], words[1, i], words[2, i], words[3, i]
        total = a + d
        word = ((total << _23) | (total >> _41)) + a
        shifted = b << _17
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        words[0, i], words[1, i], words[2, i], words[3, i] = a, b, c, (d << _45) | (d >> _19)
        faces[i] = float(word >> _11) * UNIT


@njit(cache=True)
def ask_fresh(
    points: Floats, faces: Floats, chances: Floats, low: float, per: float, locations: Floats, down: float, up: float
) -> None:
    """Move each lane's point at one site by the letter of a fresh record."""
    top = chances.shape[0] - 1.000001
    for i in range(points.shape[0]):
        place = min(max((points[i] - locations[i] - low) * per, 0.0), top)
        j = np.int64(place)
        chance = chances[j] + (place - j) * (chances[j + 1] - chances[j])
        points[i] += up if faces[i] < chance else down


@njit(cache=True)
def ask_fixed(points: Floats, faces: Floats, record: float, rate: float, down: float, up: float) -> None:
    """Move each lane's point at one site by the letter of one record."""
    often, seldom = 0.5 * (1.0 + rate), 0.5 * (1.0 - rate)
    for i in range(points.shape[0]):
        points[i] += up if faces[i] < (often if record > points[i] else seldom) else down


@njit(cache=True)
def ask_own(
    points: Floats, faces: Floats, data: Floats, turns: Ints, chosen: Floats, rate: float, down: float, up: float
) -> None:
    """Move each lane's point at one site, where it is chosen, by the letter of the site's next record."""
    often, seldom = 0.5 * (1.0 + rate), 0.5 * (1.0 - rate)
    for i in range(points.shape[0]):
        if chosen[i] > 0.0:
            points[i] += up if faces[i] < (often if data[turns[i]] > points[i] else seldom) else down
            turns[i] += 1


@njit(cache=True)
def note(middle: Floats, memory: Floats, clock: Floats, elapsed: float) -> None:
    """Take the merged points of a round into the self-normaliser."""
    clock[0] += 1.0
    part, ramp = 1.0 / clock[0], clock[1]
    for i in range(middle.shape[0]):
        move = (middle[i] - memory[0, i]) * part
        memory[0, i] += move
        memory[1, i] += move * (move * ramp - 2.0 * memory[2, i])
        memory[2, i] -= move * ramp
    clock[1] += clock[0] * clock[0] / elapsed
    clock[2] += 1.0 / elapsed
    clock[3] += elapsed


@njit(cache=True)
def choose(chosen: Floats, words: Words, faces: Floats, few: int) -> None:
    """Choose that many sites at random in every lane: 1 where a site is in, 0 where it is not."""
    sites, n = chosen.shape
    order = np.empty((sites, n), np.int64)
    for k in range(sites):
        for i in range(n):
            order[k, i] = k
            chosen[k, i] = 0.0
    for k in range(few):
        toss(words, faces)
        for i in range(n):
            other = k + np.int64(faces[i] * (sites - k))
            order[k, i], order[other, i] = order[other, i], order[k, i]
            chosen[order[k, i], i] = 1.0


@njit(cache=True)
def merge(points: Floats, before: Floats, chosen: Floats, few: int, topology: int, middle: Floats) -> None:
    """Put the sites' average into ``middle``, and let the sites go on from what they hear."""
    sites, n = points.shape
    for i in range(n):
        middle[i] = 0.0
    if few < sites:
        for k in range(sites):
            for i in range(n):
                middle[i] += chosen[k, i] * points[k, i]
        for i in range(n):
            middle[i] /= few
    else:
        for k in range(sites):
            for i in range(n):
                middle[i] += points[k, i]
        for i in range(n):
            middle[i] /= sites
    if topology == STAR:
        for k in range(sites):
            for i in range(n):
                points[k, i] = middle[i]
    elif topology == RING:
        before[:] = points
        for k in range(sites):
            left, right = before[k - 1 if k > 0 else sites - 1], before[k + 1 if k < sites - 1 else 0]
            for i in range(n):
                points[k, i] = (left[i] + before[k, i] + right[i]) / 3.0


@njit(cache=True)
def walk(lanes: Lanes, letters: Letters, elapsed: Ints, steps: Floats, topology: int, few: int) -> None:
    """Take some rounds: ``elapsed`` iterations of ``steps`` each; ``few`` sites answer and merge by ``topology``.

    Sites that have not been chosen for a round spend no records and go on from the average. (Where records are fresh
    they walk in vain, which costs nothing.) Their turns are counted from the first round of the call.
    """
    points, words, memory, clock = lanes
    chances, low, per, locations, data, rates, moves = letters
    sites, n = points.shape
    faces, middle, before = np.empty(n), np.empty(n), np.empty((sites, n))
    chosen, turns = np.ones((sites, n)), np.zeros((sites, n), np.int64)
    t, distribution, distributions = np.int64(clock[3]), 0, chances.shape[0]
    if distributions > sites:
        distribution = t % distributions
    fixed = data.shape[0] > 0
    for m in range(elapsed.shape[0]):
        if few < sites:
            choose(chosen, words, faces, few)
        for _ in range(elapsed[m]):
            for k in range(sites):
                down, up = steps[m] * moves[k, 0], steps[m] * moves[k, 1]
                toss(words, faces)
                if fixed and few < sites:
                    ask_own(points[k], faces, data[:, k], turns[k], chosen[k], rates[k], down, up)
                elif fixed:
                    ask_fixed(points[k], faces, data[t, k], rates[k], down, up)
                else:
                    ask_fresh(points[k], faces, chances[distribution], low, per, locations[distribution], down, up)
                    distribution = distribution + 1 if distribution < distributions - 1 else 0
            t += 1
        merge(points, before, chosen, few, topology, middle)
        note(middle, memory, clock, float(elapsed[m]))
