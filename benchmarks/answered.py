"""What remembering rows costs: its time in a call over the rest of that call.

Two calls ask a different number of rounds, so that one with and one without it are no fair pair: the time is taken
inside one call, at the four places where rows are marked, compared, looked up and booked.
"""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import sottovoce as sv
from sottovoce.client.answered import MEMORY, AnsweredRows
from sottovoce.client.reading import table
from sottovoce.sim import dice

ROUNDS = 9
PLACES = ((table, "mark"), (table, "shared_columns"), (AnsweredRows, "with_study"), (AnsweredRows, "book"))


def timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """Return a function that notes how long it took, unless another of the four has called it."""

    def call(*arguments: Any) -> Any:
        inner, begun = len(spent), time.perf_counter()
        result = function(*arguments)
        del spent[inner:]
        spent.append(time.perf_counter() - begun)
        return result

    return call


def share(call: Callable[[], object]) -> float:
    """Return the time of a call that remembering took, over the rest of it."""
    spent: list[float] = []
    with ExitStack() as stack:
        for owner, name in PLACES:
            stack.enter_context(mock.patch.object(owner, name, timed(getattr(owner, name), spent)))
        begun = time.perf_counter()
        call()
        whole = time.perf_counter() - begun
    return sum(spent) / (whole - sum(spent))


def run() -> None:
    """Print a line for each number of records and sites."""
    draw = dice(1).generator()
    print("records      sites   remembering / rest of the call   (median, smallest, largest)")
    for records, sites in ((500, 2), (5_000, 2), (50_000, 2), (1_000_000, 2), (10_000_000, 2), (1_000_000, 5_000)):
        whole = draw.normal(size=(sites, records // sites))
        shares = []
        MEMORY.clear()
        for _ in range(ROUNDS):
            whole += 1.0  # other records each time, and those before still remembered
            columns = [each.copy() for each in whole]
            shares.append(share(partial(sv.federated_quantile, columns, 0.5, 2.0)))
        low, middle, high = min(shares[1:]), statistics.median(shares[1:]), max(shares[1:])  # the first call warms up
        print(f"{records:>10,} {sites:>8,} {middle:>12.3f} {low:>8.3f} {high:>8.3f}")


if __name__ == "__main__":
    run()
