"""What records have cost in this process before a study asks them, and with it; a limit on both.

Every public function that asks records comes through here, after all input is checked and before the first question:
the same records twice in a study are refused, a second study of the same records is added up and warned of, and what
would pass the limit is refused. Simulations with seeded dice protect nobody, and are not counted.
"""

import math
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from sottovoce.client.answered import MEMORY
from sottovoce.client.fingerprint import Column, Fingerprints, mark
from sottovoce.client.reading.table import SiteTable
from sottovoce.core.calling import warn
from sottovoce.core.checks import number
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, is_private
from sottovoce.server.stored import InAll


class limit:  # noqa: N801 - called like a function, and used in a `with` statement
    """Refuse, from now on and in this process, whatever would cost a record more than epsilon in all.

    Set it once, or for a block with ``with``; the cost of studies before it counts too.

    Parameters
    ----------
    epsilon
        The most that a record may cost in all, over all studies of this process; ``math.inf`` for no limit.

    Examples
    --------
    >>> import sottovoce as sv
    >>> with sv.limit(epsilon=0.5):
    ...     sv.federated_quantile([range(5000), range(5000, 9000)], 0.5, 1.0)
    Traceback (most recent call last):
    sottovoce.core.errors.BadInput: with this study these records would have cost epsilon 1 in all, and the limit is \
0.5; ask for less, ask other records, or raise the limit.
    """

    def __init__(self, epsilon: float) -> None:
        most = number(epsilon, "epsilon")
        if not most > 0:
            raise BadInput("epsilon of a limit must be positive; give what a record may cost in all.")
        self._before, MEMORY.limit = MEMORY.limit, most
        self.epsilon = most

    @staticmethod
    def now() -> float:
        """Return the limit that holds now."""
        return MEMORY.limit

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        MEMORY.limit = self._before

    def __repr__(self) -> str:
        return f"limit(epsilon={self.epsilon:g})"


def spend(
    table: SiteTable,
    epsilons: Sequence[float],
    randomness: RandomSource | None,
    counted: Mapping[str, Column] | None = None,
) -> InAll:
    """Count a study of a table that is about to begin; return what its records have cost with it, a site each.

    ``epsilons`` are those of all that answer, strata of a site among them; ``counted`` are the records behind scores:
    another model gives the same ones other scores.
    """
    columns: Sequence[Column] = table.columns
    marks = table.marks
    if counted is not None:
        columns = [counted[name] for name in table.names]
        marks = mark(columns)
    paid = dict(zip(table.roster.places, epsilons, strict=True))
    total = spend_columns(columns, marks, [paid[place] for place in table.places], randomness)
    return None if total is None else dict(zip(table.places, total, strict=True))


def spend_columns(
    columns: Sequence[Column], marks: Fingerprints, epsilons: Sequence[float], randomness: RandomSource | None
) -> tuple[float, ...] | None:
    """Count a study of columns that is about to begin; None for a simulation."""
    if randomness is not None and not is_private(randomness):
        return None
    total = MEMORY.with_study(columns, marks, epsilons)
    again = [(all_, own) for all_, own in zip(total, epsilons, strict=True) if all_ > own]
    if again and any(math.isfinite(own) for own in epsilons):
        worst = shown(max(all_ for all_, _ in again))
        warn(f"these records have answered before in this process: with this study they have cost {worst} in all")
    return MEMORY.book(columns, marks, epsilons)  # after the warning: where warnings are errors, nothing is counted


def check_cost(total: float, past: float) -> None:
    """Refuse what would cost a record more in all than the limit, ``past`` of it before."""
    MEMORY.check(total, past)


def shown(epsilon: float) -> str:
    """Write a cost."""
    return f"epsilon {epsilon:.4g}" if math.isfinite(epsilon) else "more than any epsilon"
