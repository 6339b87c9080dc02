"""A site with calibration scores: it sends one message in its life, and the same again when asked the same again."""

import math
from typing import NoReturn, SupportsIndex

from sottovoce.client.conformal.draw import select
from sottovoce.client.conformal.order_values import order_values
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.calibration import CellQuery, CellReport, OrderQuery, OrderReport
from sottovoce.protocol.exact import within
from sottovoce.protocol.selection import selection
from sottovoce.protocol.selection.base import grid

Query = OrderQuery | CellQuery
Report = OrderReport | CellReport


class CalibrationSite:
    """Hold the scores of one site and answer one query about them.

    Parameters
    ----------
    scores
        The scores.
    budget
        What the message may cost a record; ``math.inf`` to send order statistics as they are.
    dice
        None for the operating system's entropy.

    Examples
    --------
    >>> import numpy as np
    >>> site = CalibrationSite(Records(np.array([3.0, 1.0, 2.0])), math.inf)
    >>> site.answer(OrderQuery((2,)))
    OrderReport(values=(2.0,))
    >>> site.answer(OrderQuery((3,)))
    Traceback (most recent call last):
    sottovoce.core.errors.BadInput: this site has sent its one message; it answers the same query again, and no other.
    """

    __slots__ = ("_asked", "_budget", "_dice", "_said", "_scores")

    def __init__(self, scores: Records, budget: float, dice: RandomSource | None = None) -> None:
        if not budget > 0:
            raise BadInput(f"the budget of a site must be positive, not {budget!r}; give math.inf for no privacy.")
        self._scores, self._budget = scores, budget
        self._dice: RandomSource = SystemEntropy() if dice is None else dice
        self._asked: Query | None = None
        self._said: Report | None = None

    def answer(self, query: Query) -> Report:
        """Return the message to a query; it is spent before it is drawn, and never drawn twice."""
        if self._said is not None and query == self._asked:
            return self._said
        if self._asked is not None:
            raise BadInput("this site has sent its one message; it answers the same query again, and no other.")
        if isinstance(query, OrderQuery):
            if self._budget != math.inf:
                raise BadInput(f"this site has a budget of {self._budget:g}; ask it for a cell, not for scores.")
            if not query.orders or min(query.orders) < 1:
                raise BadInput("ranks of scores begin at 1; ask for one at least.")
            self._asked = query
            self._said = OrderReport(tuple(order_values(self._scores, query.orders).tolist()))
            return self._said
        edges = grid(query.edges)
        mechanism = selection(query.mechanism, self._scores.size, query.order, len(edges) + 1, query.epsilon)
        if not within(mechanism.ratio, self._budget):
            raise BadInput(
                f"the query would cost epsilon {mechanism.epsilon:.6g}, more than this site's budget of "
                f"{self._budget:.6g}; ask for less."
            )
        self._asked = query
        self._said = CellReport(select(self._scores, edges, mechanism, self._dice))
        return self._said

    def __len__(self) -> int:
        return self._scores.size

    def __repr__(self) -> str:
        return f"CalibrationSite({self._scores.size:,} scores, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a site cannot be pickled or copied: its scores do not leave it")
