"""Critical values of the self-normalised statistic, for the schedule that was run (Corollaries 3.1 and 3.2).

The statistic tends to `B(1) / N(B - g B(1))`, where `g` is the schedule's own clock and `N` is the norm of the
self-normaliser: `sqrt(int G^2)` (l2), `sup |G|` (sup) or `int |G|` (l1). The paper uses the value of equal rounds for
every schedule (6.747 at 95 %), which is too wide when local steps grow.

Relative accuracy of a critical value: equal rounds 1e-9 (each norm). Other schedules: l2 1e-9 up to 1024 runs of equal
rounds, 1e-6 beyond if smooth; sup 1e-4 and l1 5e-5 where local steps vary tenfold, 5e-3 and 3e-4 where a thousandfold.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.inference.common.roots import root
from sottovoce.inference.self_normalised.clock import STEADY, Clock, clock
from sottovoce.inference.self_normalised.pivots import area_tail, square_tail, sup_tail
from sottovoce.inference.self_normalised.scheduled_tails import (
    area_table,
    scheduled_area_tail,
    scheduled_square_tail,
    scheduled_sup_tail,
)

Schedule = Sequence[float] | Floats | None

# The schedule shifts small quantiles by v^2 in relative terms: below this the distribution of equal rounds serves.
TINY = 1e-5

PLAIN: dict[str, Callable[[float], float]] = {"l2": square_tail, "sup": sup_tail, "l1": area_tail}


def critical_value(level: float, elapsed: Schedule = None, norm: str = "l2") -> float:
    """Find v such that |B(1)| / N(B - g B(1)) stays below v with probability `level`.

    ``elapsed`` has the local steps of each round, None when all have equal length; the norm is "l2", "sup" or "l1".

    >>> round(critical_value(0.95), 3)
    6.747
    >>> round(critical_value(0.95, [1] * 500 + [5] * 1900), 3)
    5.555
    >>> round(critical_value(0.95, norm="sup"), 4)
    2.6402
    """
    if not 0.0 < level < 1.0:
        raise BadInput(f"level is {level}, but a confidence level lies strictly between 0 and 1.")
    return _critical_value(float(level), clock(elapsed), _known(norm))


def p_value(statistic: float, elapsed: Schedule = None, norm: str = "l2") -> float:
    """Return the chance that |B(1)| / N(B - g B(1)) exceeds |statistic|.

    ``elapsed`` has the local steps of each round, None when all have equal length; the norm is "l2", "sup" or "l1".

    >>> round(p_value(-6.747302), 6)
    0.05
    >>> p_value(0.0)
    1.0
    """
    if math.isnan(statistic):
        raise BadInput("statistic is not a number, so it has no tail probability.")
    v, dial, norm = abs(float(statistic)), clock(elapsed), _known(norm)
    if v < 1e-12:
        return 1.0
    # The distribution has exponential tails: beyond 1500 they are below 1e-250.
    return _tail(v, dial, norm) if v < 1500.0 else 0.0


def _known(norm: str) -> str:
    if norm not in PLAIN:
        raise BadInput(f"norm is {norm!r}, but the self-normaliser is one of 'l2', 'sup', 'l1'.")
    return norm


@lru_cache(maxsize=256)
def _tail(v: float, dial: Clock, norm: str) -> float:
    if dial == STEADY or v < TINY:
        chance = PLAIN[norm](v)
    elif norm == "l2":
        chance = scheduled_square_tail(v, dial)
    elif norm == "sup":
        chance = scheduled_sup_tail(v, dial)
    else:
        # Beyond 120 the tail, below 1e-20, is only bounded: the table would sink below the smallest double.
        far = min(v, 120.0)
        chance = scheduled_area_tail(far, area_table(dial, far))
    return min(max(chance, 0.0), 1.0)


@lru_cache(maxsize=256)
def _critical_value(level: float, dial: Clock, norm: str) -> float:
    if dial == STEADY or level < TINY:
        return _solve(PLAIN[norm], level, 3.0, 1e-13)
    if norm == "l2":
        return _solve(lambda v: scheduled_square_tail(v, dial), level, _critical_value(level, STEADY, "l2"), 1e-12)
    # The l2 norm tells by how much the schedule narrows the interval, so the search starts next to its end.
    narrowing = _critical_value(level, dial, "l2") / _critical_value(level, STEADY, "l2")
    guess = narrowing * _critical_value(level, STEADY, norm)
    if norm == "sup":
        return _solve(lambda v: scheduled_sup_tail(v, dial), level, guess, 1e-5)
    # A table is good near its anchor alone: where the guess was poor it is made again.
    for _ in range(8):
        tail = partial(scheduled_area_tail, table=area_table(dial, guess))
        value = _solve(tail, level, guess, 1e-10, (0.75 * guess, 1.3 * guess))
        if abs(value / guess - 1.0) < 0.15:
            break
        guess = value
    return value


def _solve(
    tail: Callable[[float], float],
    level: float,
    guess: float,
    accuracy: float,
    bounds: tuple[float, float] = (0.0, math.inf),
) -> float:
    """Solve tail(v) = 1 - level from a guess, within bounds where the tail may be trusted."""

    def excess(log_v: float) -> float:
        chance = tail(math.exp(log_v))
        # Logarithms where the tail is small, the complement where it is large: both are nearly straight.
        if level > 0.5:
            return math.log(max(chance, 1e-300)) - math.log1p(-level)
        return math.log(level) - math.log(max(1.0 - chance, 1e-300))

    # In logarithms the tail falls nearly straight, so a bracket of the right size is read off the first two values.
    here = math.log(guess)
    ends, values = [here, here], [excess(here)] * 2
    side = 1 if values[0] > 0.0 else 0
    reach = 0.01
    while (values[side] > 0.0) == (side == 1) and values[side] != 0.0:
        if not bounds[0] < math.exp(ends[side]) < bounds[1]:
            return math.exp(ends[side])
        ends[1 - side], values[1 - side] = ends[side], values[side]
        ends[side] += reach if side else -reach
        values[side] = excess(ends[side])
        fall = abs(values[side] - values[1 - side]) / reach
        reach = min(max(1.05 * abs(values[side]) / max(fall, 1e-3), 1e-3), 3.0 * reach + 0.1)
    if ends[0] == ends[1]:
        return guess
    return math.exp(root(excess, (ends[0], ends[1]), accuracy, (values[0], values[1])))
