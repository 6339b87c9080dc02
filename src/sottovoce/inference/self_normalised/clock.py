"""The clock of a schedule: how the share of rounds done runs against the share of noise spent (Theorem 3.2).

A round of `E` local steps adds noise in proportion to `1/E`, so after round `m` the noise clock shows `r_m =
(sum_{i<=m} 1/E_i) / (sum_i 1/E_i)` while the share of rounds done is `g(r_m) = m/T`. Between rounds `g` is linear.
Rounds of equal length lie on one straight line, so runs of them are kept as one piece, without error.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

# A schedule with more runs than this is read off at points equally spaced in (r + g)/2: each cell of the graph is
# then at most 2/PIECES wide and high, and a smooth schedule is followed to about 1/PIECES**2.
PIECES = 1024


class Clock(NamedTuple):
    """The graph of `g`, piece by piece: both coordinates rise from 0 to 1."""

    noise: tuple[float, ...]
    rounds: tuple[float, ...]


STEADY = Clock((0.0, 1.0), (0.0, 1.0))


def checked(elapsed: Sequence[float] | Floats) -> Floats:
    """Return the local steps of each round as an array, or refuse them."""
    try:
        steps = np.asarray(elapsed, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput("elapsed must hold one number of local steps for each round.") from None
    if steps.ndim != 1 or steps.size == 0:
        raise BadInput("elapsed must be a non-empty sequence with the number of local steps of each round.")
    wrong = ~(np.isfinite(steps) & (steps > 0.0))
    if wrong.any():
        raise BadInput(f"elapsed must be positive and finite, but round {int(np.argmax(wrong)) + 1} is not.")
    return steps


def clock(elapsed: Sequence[float] | Floats | None) -> Clock:
    """Draw the clock of a schedule in at most `PIECES` pieces.

    ``elapsed`` has the local steps of each round; None for rounds of equal length.

    >>> clock([3, 3, 3]) == clock(None)
    True
    >>> clock([1, 1, 4, 4]).rounds
    (0.0, 0.5, 1.0)
    >>> clock([1, 1, 4, 4]).noise
    (0.0, 0.8, 1.0)
    """
    if elapsed is None:
        return STEADY
    steps = checked(elapsed)
    ends = np.append(np.flatnonzero(np.diff(steps) != 0.0), steps.size - 1)
    lengths = np.diff(ends, prepend=-1)
    noise = np.append(0.0, np.cumsum(lengths / steps[ends]))
    rounds = np.append(0, ends + 1) / steps.size
    noise /= noise[-1]
    if ends.size > PIECES:
        along = (noise + rounds) / 2.0
        kept = np.unique(np.searchsorted(along, np.linspace(0.0, 1.0, PIECES + 1)).clip(0, along.size - 1))
        kept[-1] = along.size - 1
        noise, rounds = noise[kept], rounds[kept]
    # A round so long that it leaves the noise clock where it was would be a jump of g; its width is below rounding.
    moving = np.append(True, np.diff(noise) > 0.0)
    noise, rounds = noise[moving], rounds[moving]
    rounds[-1] = 1.0
    return Clock(tuple(noise.tolist()), tuple(rounds.tolist()))


def detour(dial: Clock, steps: int) -> Floats:
    """Return `r - g(r)` at `steps + 1` equally spaced times."""
    times = np.linspace(0.0, 1.0, steps + 1)
    return times - np.interp(times, dial.noise, dial.rounds)


def smoothed_detour(dial: Clock, steps: int) -> Floats:
    """Return `r - g(r)` averaged around each of `steps + 1` times, so that sums over them keep its integral."""
    noise, excess = np.array(dial.noise), np.array(dial.noise) - np.array(dial.rounds)
    # Twice integrated exactly: h is linear on a piece, so its second integral is a cubic there.
    width, slope = np.diff(noise), np.diff(excess) / np.diff(noise)
    once = np.append(0.0, np.cumsum(width * (excess[1:] + excess[:-1]) / 2.0))
    twice = np.append(0.0, np.cumsum(once[:-1] * width + excess[:-1] * width**2 / 2.0 + slope * width**3 / 6.0))
    times = np.linspace(0.0, 1.0, steps + 1)
    piece = (np.searchsorted(noise, times, side="right") - 1).clip(0, width.size - 1)
    past = times - noise[piece]
    second = twice[piece] + once[piece] * past + excess[piece] * past**2 / 2.0 + slope[piece] * past**3 / 6.0
    inner = np.diff(second, 2) * steps**2
    first = 2.0 * steps**2 * second[1]
    last = 2.0 * steps**2 * (second[-2] - second[-1] + once[-1] / steps)
    return np.concatenate([[first], inner, [last]])
