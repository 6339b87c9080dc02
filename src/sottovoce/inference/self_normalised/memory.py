r"""Online self-normalised inference from averages alone (Algorithm 2), without the cancellation of its printed form.

Rounds `i = 1..m` of `E_i` local steps end at points whose running averages are `Q_i`. Algorithm 2 needs `V = sum_i
(i^2 / E_i) (Q_i - Q_m)^2 / (m^2 sum_i 1/E_i)`, and the interval is `Q_m +- v sqrt(V)`. The memory keeps the sum
itself, already centred at the present average; when the average moves by `d` the sum becomes `spread - 2 d lean + d^2
ramp`, with `lean = sum_i (i^2/E_i)(Q_i - Q_m)` and `ramp = sum_i i^2/E_i`. Points enter as distances from the first
one, so a shift or a change of unit changes nothing but the last digits.

A look weighs by what has elapsed since the last one, not by the call. Only ratios of `elapsed` matter, so the unit of
time is free; and one look may stand for several rounds of equal length (`rounds`, with their mean point): it then
counts for as many rounds and as much noise as they do, and the interval is the same up to the gap between looks.
"""

import math
from typing import NamedTuple

from numba import njit

from sottovoce.inference.self_normalised.critical_values import Schedule, critical_value


class Memory(NamedTuple):
    """What the self-normaliser remembers: eight floats, whatever the number of rounds."""

    centre: float
    rounds: float
    offset: float
    spread: float
    lean: float
    ramp: float
    noise: float
    time: float


def init() -> Memory:
    """Return the memory before the first round."""
    return Memory(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@njit(cache=True)
def look(memory: Memory, point: float, elapsed: float, rounds: float = 1.0) -> Memory:
    """Take in the merged point of a round.

    Parameters
    ----------
    memory
        What is known so far.
    point
        The merged point at the end of the round, or the mean of the points of `rounds` rounds.
    elapsed
        Local steps of the round (of each of the rounds).
    rounds
        How many rounds of this length the look stands for.

    Returns
    -------
    The memory with the round in it.

    Examples
    --------
    >>> memory = init()
    >>> for point in (1.0, 3.0):
    ...     memory = look(memory, point, 1.0)
    >>> average(memory), variance(memory)
    (2.0, 0.125)
    """
    centre = point if memory.rounds == 0.0 else memory.centre
    done = memory.rounds + rounds
    move = (point - centre - memory.offset) * (rounds / done)
    return Memory(
        centre,
        done,
        memory.offset + move,
        memory.spread + move * (move * memory.ramp - 2.0 * memory.lean),
        memory.lean - move * memory.ramp,
        memory.ramp + done * done * rounds / elapsed,
        memory.noise + rounds / elapsed,
        memory.time + rounds * elapsed,
    )


def average(memory: Memory) -> float:
    """Return the average of the points, the estimate."""
    return memory.centre + memory.offset


def variance(memory: Memory) -> float:
    """Return Algorithm 2's self-normaliser: the interval is average +- v sqrt(variance)."""
    if memory.rounds == 0.0:
        return 0.0
    return max(memory.spread, 0.0) / (memory.rounds**2 * memory.noise)


def interval(memory: Memory, level: float, elapsed_schedule: Schedule = None) -> tuple[float, float]:
    """Return the ends of the confidence interval.

    Parameters
    ----------
    memory
        What the looks have left.
    level
        Confidence level, strictly between 0 and 1.
    elapsed_schedule
        Local steps of each round, for the schedule's own critical value; None for that of equal rounds.

    Returns
    -------
    Low and high end; infinite until the average has moved for the first time.

    Examples
    --------
    >>> memory = init()
    >>> for point in (1.0, 3.0, 2.0, 2.0):
    ...     memory = look(memory, point, 1.0)
    >>> low, high = interval(memory, 0.9)
    >>> round(low, 3), round(high, 3)
    (1.335, 2.665)
    """
    v = critical_value(level, elapsed_schedule)
    half = v * math.sqrt(variance(memory))
    # Where nothing has moved there is nothing to normalise by.
    return (average(memory) - half, average(memory) + half) if half > 0.0 else (-math.inf, math.inf)
