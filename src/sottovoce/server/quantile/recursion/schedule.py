"""When sites talk, and how far one report moves the point (Cai, Hu and Wu, section 4.1).

The first 5 % of the *iterations* are rounds of one; counting 5 % of the rounds instead misses the printed tables by a
fifth. After this warm-up a round takes ``E`` iterations ("every:E") or ``ceil(log2(m + 1))`` ("log"); the last one is
clipped to end at the horizon.

`decay` is the paper's slowly falling step: a round moves by ``gamma_m = 20 rbar / (m^0.51 + 100)``, shared among its
iterations. Its 20 and 100 presume data of spread one, hence ``unit``. `constant` moves each iteration by
``kappa / (H sqrt(N))`` where ``H`` is the density at the quantile, learnt on the way: the curvature bias
``kappa sigma f' / (4 H^2)`` and the relative noise of the slope, ``rho^2 = 2 / (kappa sqrt(N))``, are then balanced.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit

WARMUP = 0.05
FIRST_REFRESH = 32


def elapsed(schedule: str | Sequence[int], iterations: int, warmup: float = WARMUP) -> Ints:
    """Return the number of iterations of each round.

    The schedule is "every:E", "log", or the rounds' lengths themselves, which then set the horizon; else it is the
    number of ``iterations``, the records that the largest site can spend. ``warmup`` is the part of them that are
    rounds of one.

    >>> elapsed("every:4", 20).tolist()
    [1, 4, 4, 4, 4, 3]
    >>> elapsed("log", 12, warmup=0).tolist()
    [1, 2, 2, 3, 3, 1]
    """
    if iterations < 1:
        raise BadInput(f"a schedule needs at least one iteration, not {iterations!r}; give sites with records.")
    if not 0 <= warmup < 1:
        raise BadInput(f"warmup is a fraction of the iterations in [0, 1), not {warmup!r}; give one such as 0.05.")
    if not isinstance(schedule, str):
        return _given(schedule, iterations)
    alone = int(warmup * iterations)
    left = iterations - alone
    if schedule == "log":
        return _clipped(alone, _logarithmic(left), left)
    kind, _, number = schedule.partition(":")
    if kind != "every" or not number.isdecimal() or int(number) < 1:
        raise BadInput(f'schedule {schedule!r} is not known; give "every:E" with E >= 1, "log", or a list of integers.')
    each = int(number)
    if each == 1:
        # one number, seen T times: the finest schedule of a large site needs no memory
        return np.broadcast_to(np.int64(1), iterations)
    return _clipped(alone, np.full(-(-left // each), each, dtype=np.int64), left)


def _logarithmic(iterations: int) -> Ints:
    """Return intervals ceil(log2(m + 1)) that together cover the iterations."""
    pieces: list[Ints] = []
    covered, width = 0, 1
    while covered < iterations:  # the integers m of `width` bits all have ceil(log2(m + 1)) == width
        pieces.append(np.full(min(1 << (width - 1), -(-(iterations - covered) // width)), width, dtype=np.int64))
        covered += width * len(pieces[-1])
        width += 1
    return np.concatenate(pieces)


def _clipped(alone: int, intervals: Ints, left: int) -> Ints:
    """Put the warm-up in front and shorten the last interval so that the horizon is met."""
    if len(intervals):
        intervals[-1] -= int(intervals.sum()) - left
    return np.concatenate((np.ones(alone, dtype=np.int64), intervals))


def _given(schedule: Sequence[int], iterations: int) -> Ints:
    """Check the lengths that somebody wrote down."""
    lengths = np.asarray(schedule)
    whole = lengths.ndim == 1 and len(lengths) > 0 and lengths.dtype.kind in "iu"
    if not whole or int(lengths.min()) < 1:
        raise BadInput(f"schedule {_shortened(schedule)} is not a list of integers of at least 1; correct it.")
    total = sum(int(length) for length in lengths)
    if total > iterations:
        raise BadInput(
            f"schedule {_shortened(schedule)} takes {total} iterations, but the largest site has {iterations} records; "
            "shorten it."
        )
    return lengths.astype(np.int64)


def _shortened(schedule: Sequence[int]) -> str:
    """Write a schedule down, however long it is."""
    text = repr(schedule)
    return text if len(text) <= 60 else text[:57] + "..."


class StepSize(NamedTuple):
    """A step rule: ``scale / (m^power + offset) / slope``, shared by the iterations of a round or for each of them."""

    scale: float
    power: float
    offset: float
    slope: float
    shared: bool
    refreshes: bool


def decay(rates: npt.ArrayLike, unit: float = 1.0, constant: float = 20.0) -> StepSize:
    """Return the paper's rule for sites with some response rates.

    >>> round(step_length(decay([0.25, 0.75]), 1, 2, 1.0), 4)
    0.0495
    """
    return StepSize(
        constant * float(np.mean(np.asarray(rates, dtype=np.float64))) * unit, 0.51, 100.0, 1.0, True, False
    )


def constant(iterations: int, slope: float, kappa: float = 0.5) -> StepSize:
    """Return the constant rule for a horizon and a first guess of the density at the quantile.

    >>> step_length(constant(10_000, slope=0.5), 7, 5, 0.5)
    0.01
    """
    return StepSize(kappa / math.sqrt(iterations), 0.0, 0.0, slope, False, True)


@njit(cache=True)
def step_length(pace: StepSize, number: int, elapsed: int, slope: float) -> float:
    """Return the step of one iteration in round ``number`` (from 1), which takes ``elapsed`` iterations."""
    # math.pow is one function compiled and not; ** would differ in the last digit for integers of numpy and of Python
    fall = math.pow(number, pace.power) + pace.offset if pace.power > 0 else 1.0
    step = pace.scale / fall / slope
    return step / elapsed if pace.shared else step


@njit(cache=True)
def refresh_due(pace: StepSize, number: int) -> bool:
    """Tell whether the slope is learnt anew after round ``number``: at 32, 64, 128, ..."""
    return pace.refreshes and number >= FIRST_REFRESH and number & (number - 1) == 0
