"""When sites talk: how many iterations each round takes (Cai, Hu and Wu, section 4.1).

The first 5 % of the *iterations* are rounds of one; counting 5 % of the rounds instead misses the printed tables by a
fifth. After this warm-up a round takes ``E`` iterations ("every:E") or ``ceil(log2(m + 1))`` ("log"); the last one is
clipped to end at the horizon.
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput

WARMUP = 0.05


def elapsed(schedule: str | Sequence[int], iterations: int, warmup: float = WARMUP) -> Ints:
    """Return the number of iterations of each round.

    Parameters
    ----------
    schedule
        "every:E", "log", or the rounds' lengths themselves, which then set the horizon.
    iterations
        How many records the largest site can spend.
    warmup
        The fraction of the iterations that are rounds of one.

    Examples
    --------
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
