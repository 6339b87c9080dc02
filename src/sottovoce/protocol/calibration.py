"""What crosses the wire in one round of calibration: what a site is asked, and the one message that it sends."""

from sottovoce.protocol.messages import Message


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
