"""Limits beyond which a value is known only as a symbol: below a detection limit, `<5`; above what was counted, `>200`.

A symbol has its place in the order, below or above every value that was measured, and no other: on which side of a
point it lies is known for every point within the limits. Records hold one number for it, beyond all points of interest,
which is public and never shown.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sottovoce.core.checks import kind_of
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted

LEAST = 4.0  # units between a limit of whole numbers and the number for what lies beyond it
COARSE = 0.5  # of the gap between them: the coarsest resolution

_PARTS = re.compile(r"[,;\s]+(?=[<>≤≥])")
_LIMIT = re.compile(r"(<=|>=|[<>≤≥])\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)")
_ADVICE = 'give what stands for values beyond the limits, such as "<5", ">200" or "<5,>200"'


@dataclass(frozen=True)
class Censoring:
    """A lower and an upper limit; infinite where there is none, and closed where the limit itself is beyond it.

    >>> limits = read_censoring("<5, >=200")
    >>> str(limits), [limits.shown(value) for value in (-math.inf, 4.9, 5.0, 200.0)]
    ('<5,>=200', ['<5', '<5', None, '>=200'])
    """

    low: float = -math.inf
    high: float = math.inf
    low_closed: bool = False
    high_closed: bool = False

    def __str__(self) -> str:
        return ",".join(filter(None, (self.below, self.above)))

    @property
    def below(self) -> str:
        """Return the symbol of what lies below; empty if there is no lower limit."""
        return f"<{'=' * self.low_closed}{_short(self.low)}" if math.isfinite(self.low) else ""

    @property
    def above(self) -> str:
        """Return the symbol of what lies above; empty if there is no upper limit."""
        return f">{'=' * self.high_closed}{_short(self.high)}" if math.isfinite(self.high) else ""

    @property
    def codes(self) -> tuple[float, float]:
        """Return the numbers that stand for both symbols, whole if they can be; infinite where there is no limit."""
        return _code(self.low - _gap(self.low), math.floor), _code(self.high + _gap(self.high), math.ceil)

    @property
    def coarsest(self) -> float:
        """Return the coarsest resolution of records that keeps the symbols apart from values."""
        return COARSE * min(_gap(limit) for limit in (self.low, self.high) if math.isfinite(limit))

    @property
    def words(self) -> str:
        """Return in words what is one symbol."""
        low = f"{'at or ' * self.low_closed}below {_short(self.low)}" if self.below else ""
        high = f"{'at or ' * self.high_closed}above {_short(self.high)}" if self.above else ""
        symbols = " and ".join(filter(None, (self.below, self.above)))
        return f"values {' and those '.join(filter(None, (low, high)))} are known as {symbols} only"

    def side(self, value: float) -> int:
        """Return -1 for what lies below, 1 for what lies above, 0 for a value that was measured."""
        if value < self.low or (self.low_closed and value == self.low):
            return -1
        return int(value > self.high or (self.high_closed and value == self.high))

    def shown(self, value: float) -> str | None:
        """Return the symbol of a value beyond a limit; None for others."""
        return {-1: self.below, 1: self.above}.get(self.side(value)) or None

    def known(self, value: float, end: int = 0, slack: float = 0.0) -> float:
        """Return what a point says of the records' values, from their codes: of an estimate, or an interval's end.

        Between a limit and its code lies nothing, so that a lower end (-1) there goes to the limit, and an upper one
        (1) below a limit says that the quantile is the symbol. A symbol is minus infinity where it begins an interval,
        plus infinity where it ends one, and else the number next to its limit. ``slack`` is how far records may be off.
        """
        side, (low, high) = self.side(value), self.codes
        if side == 0:
            return value
        if side < 0:
            if end > 0:
                return self._last_below
            return -math.inf if end == 0 or value <= low + slack else self._first
        if end < 0:
            return self._first_above
        return math.inf if end == 0 or value >= high - slack else self._last

    def plain(self, value: float) -> float:
        """Return a number that ends an interval as a file writes it: the limit, where it lies next to one."""
        return {self._last_below: self.low, self._first_above: self.high}.get(value, value)

    def within(self, value: float) -> float:
        """Return a value, or the limit beyond which it lies."""
        return min(max(value, self.low), self.high)

    def settled(self, low: float, high: float) -> bool:
        """Tell whether an interval is one symbol, of which no more can be known."""
        return self.side(low) == self.side(high) != 0

    @property
    def _first(self) -> float:
        """Return the least value that is no symbol."""
        return math.nextafter(self.low, math.inf) if self.low_closed else self.low

    @property
    def _last(self) -> float:
        """Return the largest value that is no symbol."""
        return math.nextafter(self.high, -math.inf) if self.high_closed else self.high

    @property
    def _last_below(self) -> float:
        """Return the largest number that stands for the lower symbol."""
        return self.low if self.low_closed else math.nextafter(self.low, -math.inf)

    @property
    def _first_above(self) -> float:
        """Return the least number that stands for the upper symbol."""
        return self.high if self.high_closed else math.nextafter(self.high, math.inf)


def read_censoring(given: Any) -> Censoring | None:
    """Read the limits beyond which values are symbols, from text or several of them; of several, the widest count.

    >>> str(read_censoring(["<5", "<10", ">200"])), read_censoring(None)
    ('<10,>200', None)
    """
    if given is None or isinstance(given, Censoring):
        return given
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise _refused(f"is {kind_of(given)}")
    lows: list[tuple[float, bool]] = []
    highs: list[tuple[float, bool]] = []
    for part in (part.strip() for text in texts for part in _PARTS.split(text.strip())):
        found = _LIMIT.fullmatch(part)
        value = float(found[2]) if found else math.inf
        if found is None or not math.isfinite(value):
            raise _refused(f"has a part {quoted(part)} that is no limit")
        closed = found[1] not in "<>"
        (lows if found[1][0] in "<≤" else highs).append((value, closed))
    low, low_closed = max(lows, default=(-math.inf, False))
    high, not_closed = min(((value, not closed) for value, closed in highs), default=(math.inf, True))
    if not lows and not highs:
        raise _refused("is empty")
    if low >= high:
        raise _refused(f"leaves no value between {_short(low)} and {_short(high)}")
    return Censoring(low, high, low_closed, not not_closed)


def _refused(what: str) -> BadInput:
    """Refuse limits that cannot be read."""
    return BadInput(f"censored {what}: {_ADVICE}", parameter="censored")


def _gap(limit: float) -> float:
    """Return how far from a limit the number lies that stands for what is beyond: about as far as zero."""
    return max(abs(limit), LEAST) if abs(limit) >= 1 or limit == 0 else abs(limit)


def _code(value: float, whole: Callable[[float], int]) -> float:
    """Return a number, whole unless it is a small fraction: a column of whole numbers stays one."""
    return whole(value) if math.isfinite(value) and (abs(value) >= 1 or value == 0) else value


def _short(value: float) -> str:
    """Write a limit with the digits that it has."""
    return f"{value:.15g}"
