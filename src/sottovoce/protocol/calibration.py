"""What crosses the wire of conformal prediction, in one round each: what a site is asked, and the one message it sends.

The one-record questions of mechanism "local" are `Query` and `Tally` of `protocol.messages`.
"""

from sottovoce.protocol.messages import Message

ROUND = 1  # there is only one


class OrderQuery(Message, frozen=True):
    """Ask for order statistics of a site's scores, by rank from 1; a site without privacy answers it."""

    orders: tuple[int, ...]


class OrderReport(Message, frozen=True):
    """The scores of the asked ranks, infinite where a site has fewer."""

    values: tuple[float, ...]


class CellQuery(Message, frozen=True):
    """Ask for a cell of a public grid, drawn by a mechanism that is to cost at most epsilon."""

    mechanism: str
    order: int
    epsilon: float
    edges: tuple[float, ...]


class CellReport(Message, frozen=True):
    """The cell that a site names, from 0: it stands for its upper edge, and the last one for infinity."""

    cell: int


class SumQuery(Message, frozen=True):
    """Ask for a site's share of a secure sum: counts above each edge, with one of ``sites`` shares of noise.

    The summed noise has the ratio ``noise / 2^64`` (`protocol.selection.polya`); ``noise`` zero is none.
    """

    edges: tuple[float, ...]
    noise: int
    sites: int


class SumShare(Message, frozen=True):
    """Noisy counts above each edge up to the next, modulo 2^32; one share alone is not private."""

    counts: tuple[int, ...]


class CoverageQuery(Message, frozen=True):
    """Ask how many scores a threshold covers, with two-sided geometric noise of ratio ``noise / 2^64``; zero is none.

    A site without privacy also tells the scores of some ``orders``.
    """

    threshold: float
    noise: int
    orders: tuple[int, ...] = ()


class CoverageCount(Message, frozen=True):
    """How many scores are covered, with noise where there is any, and the scores of the asked ranks."""

    covered: int
    values: tuple[float, ...] = ()
