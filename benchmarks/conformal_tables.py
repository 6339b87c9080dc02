"""Tables in Markdown, as the pages of figures hold them."""

import zlib
from collections.abc import Iterable, Sequence

from sottovoce_papers.simulation.conformal.repeat import Repeated


def show(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print(f"\n{title}\n")
    print("| " + " | ".join(headers) + " |")
    print("|" + "---|" * len(headers))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def seed_of(*what: object) -> int:
    """Return a seed of its own for each thing measured: rows that shared one would err together.

    >>> seed_of("closest", 10, 100) == seed_of("closest", 10, 100) != seed_of("closest", 100, 10)
    True
    """
    return zlib.crc32(repr(what).encode())


def within(value: float, error: float, digits: int = 4) -> str:
    """Return a figure with its Monte-Carlo error.

    >>> within(0.9, 0.00012)
    '0.9000 ± 0.0001'
    """
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def mean_of(found: Repeated) -> str:
    return within(found.mean, found.error, 5)


def spread_of(found: Repeated) -> str:
    """Return a standard deviation with the error that it has whatever the law."""
    squares = (found.coverages - found.mean) ** 2
    error = float(squares.std()) / (2 * max(found.spread, 1e-300) * len(squares) ** 0.5)
    return within(found.spread, error, 5)
