"""Times of several calls in one run: each turn makes every call once, in an order that moves on, on one clock."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

Ready = Callable[[], Callable[[], object]]  # makes a call ready, outside the time that is taken


class Timed(NamedTuple):
    """What a call costs: processor seconds in the median, its ratio to the first call, and the ratio's quartiles."""

    seconds: float
    ratio: float
    low: float
    high: float

    @property
    def spread(self) -> str:
        """Write the ratio with its quartiles."""
        return f"{self.ratio:.3g} ({self.low:.3g} to {self.high:.3g})"


def interleaved(calls: Mapping[str, Ready], turns: int) -> dict[str, Timed]:
    """Return what each call costs, beside the first one, turn by turn; the first turn warms up and is not counted.

    Times are those of the processor, so that other work on the machine counts little; ratios are taken within a turn.
    """
    names = list(calls)
    spent: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns + 1):
        at = turn % len(names)
        for name in (*names[at:], *names[:at]):
            work = calls[name]()
            start = time.process_time()
            work()
            took = time.process_time() - start
            if turn:
                spent[name].append(took)
    first = spent[names[0]]
    found = {}
    for name in names:
        ratios = [max(took, 1e-9) / max(base, 1e-9) for took, base in zip(spent[name], first, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if turns > 1 else ratios * 3
        found[name] = Timed(statistics.median(spent[name]), middle, low, high)
    return found
