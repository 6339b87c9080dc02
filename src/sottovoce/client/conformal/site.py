"""Sites with scores: each sends one message in its life, and the same again when asked the same again.

The message is order statistics or a cell of the scores or, to judge a threshold, how many of them it covers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from sottovoce.client.conformal.draw import geometric, select
from sottovoce.client.door import SiteLimits
from sottovoce.client.ledger import Ledger, MemoryStorage, Storage
from sottovoce.client.mapped import blocks
from sottovoce.client.order_statistics import order_statistics
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private
from sottovoce.protocol.exact import within
from sottovoce.protocol.messages import (
    ROUND,
    CellQuery,
    CellReport,
    CoverageCount,
    CoverageQuery,
    Message,
    OrderQuery,
    OrderReport,
)
from sottovoce.protocol.selection import SELECTIONS, selection
from sottovoce.protocol.selection.base import grid
from sottovoce.protocol.selection.geometric import SMALLEST, WORD, NoisyCount, noisy_count
from sottovoce.protocol.selection.sparse_vector import SparseVector

Query = OrderQuery | CellQuery
Report = OrderReport | CellReport
Sent = TypeVar("Sent", bound=Message)

LARGEST = 1e3  # of an epsilon in a query: no integers of 64 bits could spend a tenth of it
MOST_WORDS = 1 << 30  # of randomness for one message: half a minute, and no query is to take more of a site
MOST_ORDERS = 5  # scores that a site without privacy sends: a study asks no more, and all of them would be its data
LIMITS = SiteLimits(points=100_000, rounds=ROUND)  # points: the most edges that a study of this package asks about

_MOST_NOISE = noisy_count(SMALLEST).numerator  # more takes millions of words for one number


class OneMessageSite(ABC):
    """Hold the scores of one site and answer one query about them; what answers it is told by a subclass.

    ``budget`` is what the message may cost a record, ``math.inf`` to send what is asked as it is; without ``dice`` the
    operating system's entropy is used, and without ``storage`` the ledger is kept in memory.
    """

    __slots__ = ("_budget", "_dice", "_ledger", "_limits", "_scores", "_storage")

    kinds: tuple[type[Message], ...] = ()
    asked_for: ClassVar[str]  # what the site is asked for, in a sentence

    def __init__(
        self,
        scores: Records,
        budget: float,
        dice: RandomSource | None = None,
        *,
        storage: Storage | None = None,
        limits: SiteLimits = LIMITS,
    ) -> None:
        if not budget > 0:
            raise BadInput(f"the budget of a site must be positive, not {budget!r}; give math.inf for no privacy.")
        self._scores, self._limits = scores, limits
        self._budget = min(budget, limits.epsilon)
        self._dice: RandomSource = SystemEntropy() if dice is None else dice
        self._storage: Storage = MemoryStorage() if storage is None else storage
        self._ledger = Ledger(scores.size, self._storage)

    @property
    def size(self) -> int:
        """Return how many scores the site holds."""
        return self._scores.size

    @property
    def spent(self) -> int:
        """Return how many scores have answered."""
        return self._ledger.spent

    @property
    def private(self) -> bool:
        """Tell whether nobody can reproduce the noise and the budget is finite."""
        return is_private(self._dice) and math.isfinite(self._budget)

    def __len__(self) -> int:
        return self._scores.size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._scores.size:,} scores, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a site cannot be pickled or copied: its scores do not leave it")

    def reply(self, round: int, query: Message) -> Message:
        """Answer a query of the one round; a retry gets the same."""
        if round != ROUND:
            raise BadInput(f"this site answers round {ROUND} alone, for there is no other; ask it there.")
        if not isinstance(query, self.kinds):
            raise BadInput(f"this site is asked {self.asked_for}; correct the query.")
        return self.answer(query)

    @abstractmethod
    def answer(self, query: Any) -> Message:
        """Return the message to a query of its kinds, drawn once; a retry gets the same, and no other query any."""

    def _check_orders(self, orders: Sequence[int]) -> None:
        """Refuse ranks that no site has."""
        if not orders or min(orders) < 1:
            raise BadInput("ranks of scores begin at 1; ask for one at least.")
        self._limits.check_points(len(orders))
        if len(orders) > MOST_ORDERS:
            raise BadInput(f"this site sends {MOST_ORDERS} scores at most; ask for fewer ranks.")

    def _check_grid(self, edges: Sequence[float]) -> npt.NDArray[np.float64]:
        """Return the public grid of a query, or refuse it."""
        line = grid(edges)
        self._limits.check_points(line.size)
        return line

    def _once(self, query: Message, kind: type[Sent], draw: Callable[[], Sent]) -> Sent:
        """Spend all scores on the one message, or repeat it; a query must have been checked before."""
        last = self._storage.last()
        if last is not None and last.query != query:
            raise BadInput("this site has sent its one message; it answers the same query again, and no other.")
        return self._ledger.transaction(ROUND, query, self._scores.size, kind, lambda _: draw())


class CalibrationSite(OneMessageSite):
    """A site that answers with order statistics of its scores or, with a budget, with one cell of a public grid.

    >>> site = CalibrationSite(Records(np.array([3.0, 1.0, 2.0])), math.inf)
    >>> site.answer(OrderQuery((2,)))
    OrderReport(values=(2.0,))
    >>> site.answer(OrderQuery((3,)))
    Traceback (most recent call last):
    sottovoce.core.errors.BadInput: this site has sent its one message; it answers the same query again, and no other.
    """

    __slots__ = ()

    kinds = (OrderQuery, CellQuery)
    asked_for = "for order statistics or for a cell"

    def answer(self, query: Query) -> Report:
        """Return the message to a query, drawn once; a retry gets the same, and no other query gets any."""
        if isinstance(query, OrderQuery):
            if self._budget != math.inf:
                raise BadInput(f"this site has a budget of {self._budget:g}; ask it for a cell, not for scores.")
            self._check_orders(query.orders)
            return self._once(query, OrderReport, lambda: OrderReport(order_values(self._scores, query.orders)))
        edges = self._check_grid(query.edges)
        if query.mechanism not in SELECTIONS:
            raise BadInput(f"there is no such mechanism; choose {', '.join(SELECTIONS)}.")
        if not 0 < query.epsilon <= LARGEST:
            raise BadInput(f"an epsilon that is not between 0 and {LARGEST:g} makes no selection; give one such as 1.")
        mechanism = selection(query.mechanism, self._scores.size, query.order, len(edges) + 1, query.epsilon)
        if not within(mechanism.ratio, self._budget):
            raise BadInput(
                f"the query would cost epsilon {mechanism.epsilon:.6g}, more than this site's budget of "
                f"{self._budget:.6g}; ask for less."
            )
        if isinstance(mechanism, SparseVector):
            check_words(mechanism.query, len(edges))
        return self._once(query, CellReport, lambda: CellReport(select(self._scores, edges, mechanism, self._dice)))


def check_words(numerator: int, draws: int) -> None:
    """Refuse noise that would take more words than a site is ready to draw."""
    if draws * WORD > MOST_WORDS * (WORD - numerator):
        raise BadInput("so much noise on so many cells takes too long to draw; ask for fewer cells, or less noise.")


def order_values(scores: Records, orders: Sequence[int]) -> tuple[float, ...]:
    """Return the scores of the asked ranks, infinite where a rank is beyond the number of scores."""
    held = [order for order in orders if order <= scores.size]
    if held and min(held) < 1:
        raise ValueError(f"ranks begin at 1, not at {min(held)}")
    found = order_statistics(scores.values(), held)
    return tuple(found.get(order, math.inf) for order in orders)


class CoverageSite(OneMessageSite):
    """A site that counts how many of its scores a threshold covers, once.

    >>> site = CoverageSite(Records(np.array([3.0, 1.0, 2.0])), math.inf)
    >>> site.answer(CoverageQuery(2.5, 0, (3,)))
    CoverageCount(covered=2, values=(3.0,))
    """

    __slots__ = ()

    kinds = (CoverageQuery,)
    asked_for = "how many scores are covered"

    def answer(self, query: CoverageQuery) -> CoverageCount:
        """Return the count, and scores where the site is not private; a retry gets the same, another query none."""
        if math.isnan(query.threshold):
            raise BadInput("the threshold of the query is not a number; correct the query.")
        if not 0 <= query.noise <= _MOST_NOISE:
            raise BadInput("the integer of the noise is out of range; make it of the study's epsilon.")
        noise = NoisyCount(query.noise) if query.noise else None
        if not within(None if noise is None else noise.ratio, self._budget):
            raise BadInput(
                f"the count would cost a record more than this site's budget of {self._budget:.6g}; ask for more noise."
            )
        if query.orders:
            if self._budget != math.inf:
                raise BadInput(f"this site has a budget of {self._budget:g}; ask it for a count, not for scores.")
            self._check_orders(query.orders)

        def drawn() -> CoverageCount:
            values = order_values(self._scores, query.orders)
            if noise is None:
                return CoverageCount(count_covered(self._scores, query.threshold), values)
            return CoverageCount(noisy_covered(self._scores, query.threshold, noise, self._dice), values)

        return self._once(query, CoverageCount, drawn)


def count_covered(scores: Records, threshold: float) -> int:
    """Count the scores at or below a threshold."""
    return sum(int(np.count_nonzero(block <= threshold)) for block in blocks(scores.values()))


def noisy_covered(scores: Records, threshold: float, noise: NoisyCount, dice: RandomSource) -> int:
    """Count the scores at or below a threshold and add noise; the sum may fall outside 0 to the number of scores."""
    up, down = geometric(noise.numerator, 2, dice)
    return count_covered(scores, threshold) + int(up - down)


class PooledScores:
    """Hold the sorted scores of every site as long as a report is being made.

    >>> pooled = PooledScores([Records(np.array([1.0, 4.0])), Records(np.array([2.0, 3.0]))])
    >>> len(pooled), pooled.shares_at(np.array([0, 3])).tolist()
    (4, [[0.25, 0.75], [0.0, 1.0]])
    >>> pooled.averages(np.array([0, 3]), np.array([1.0, 0.0])).round(3).tolist()
    [0.5, 0.5]
    """

    __slots__ = ("_distinct", "_sorted")

    def __init__(self, scores: Sequence[Records]) -> None:
        self._sorted = [np.sort(each.values()) for each in scores]
        self._distinct = np.unique(np.concatenate(self._sorted))

    def __len__(self) -> int:
        return int(self._distinct.size)

    def __repr__(self) -> str:
        return f"PooledScores({len(self._sorted):,} sites, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("the scores of all sites cannot be pickled or copied: they are kept for one report")

    def shares_at(self, ranks: Ints) -> Floats:
        """Return the part of each site's scores below the distinct scores of some ranks.

        A score counts half below itself: else a site's own would lie, on average, half a score too low.
        """
        points = self._distinct[ranks]
        parts = []
        for values in self._sorted:
            below = np.searchsorted(values, points, side="left")
            own = np.searchsorted(values, points, side="right") > below
            parts.append((below + 0.5 * own) / values.size)
        return np.array(parts)

    def averages(self, ranks: Ints, heights: Floats) -> Floats:
        """Return the average over each site's scores of a function given at some ranks, linear between them."""
        places = (np.searchsorted(self._distinct, values) for values in self._sorted)
        return np.array([np.interp(place, ranks, heights).mean() for place in places])
