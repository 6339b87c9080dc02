"""What remembering rows costs: the time of a call with it and without it, in turns, as a ratio."""

import statistics
import time
from typing import Any
from unittest import mock

import numpy as np

import sottovoce as sv
from sottovoce.client.answered import MEMORY
from sottovoce.client.reading.table import SiteTable
from sottovoce.sim import dice

ROUNDS = 9


def seconds(call: Any) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def without(call: Any) -> Any:
    """Return a call that remembers nothing."""

    def booked(_: Any, __: Any, epsilons: Any) -> tuple[float, ...]:
        return tuple(epsilons)

    def bare() -> None:
        with mock.patch.object(SiteTable, "marks", None), mock.patch.object(MEMORY, "book", booked):
            call()

    return bare


def run() -> None:
    """Print a line for each number of records and sites."""
    draw = dice(1).generator()
    print("records      sites   with / without   (median of the ratios of neighbours)")
    for records, sites in ((5_000, 2), (50_000, 2), (1_000_000, 2), (10_000_000, 2), (1_000_000, 5_000)):
        whole = draw.normal(size=(sites, records // sites))
        ratios = []
        for _ in range(ROUNDS if records < 5_000_000 else 3):
            whole = whole + 1.0  # other records each time
            columns = list(whole)

            def call(columns: list[Any] = columns) -> None:
                sv.federated_quantile(columns, 0.5, 2.0)

            MEMORY.clear()
            plain = seconds(without(call))
            ratios.append(seconds(call) / plain)
        print(
            f"{records:>10,} {sites:>8,} {statistics.median(ratios):>12.3f}    {np.round(sorted(ratios), 3).tolist()}"
        )


if __name__ == "__main__":
    run()
