"""Digits worth showing: enough that an interval's ends and its middle differ visibly, and no more.

Two digits of an interval's width are shown of each of its numbers; where records are rounded to a step, as many as the
step has. Ordinary magnitudes are written out, with commas between thousands.
"""

import math
from decimal import Decimal

SHORTEST_STEP = 9  # places after the point up to which a step is written out
DIGITS, MOST = 6, 17  # of a number without an interval, and of any double
HUGE, TINY = 1e15, 1e-6  # beyond which powers of ten are shorter


def span(low: float, middle: float, high: float) -> float:
    """Return the width of an interval; twice a half of it where an end is missing, NaN where both are.

    >>> span(4.0, 5.0, 7.0), span(-math.inf, 5.0, 7.0), span(-math.inf, 5.0, math.inf)
    (3.0, 4.0, nan)
    """
    if math.isfinite(low) and math.isfinite(high):
        return high - low
    ends = [2 * abs(end - middle) for end in (low, high) if math.isfinite(end)]
    return ends[0] if ends else math.nan


def places(width: float, step: float = 0.0) -> int | None:
    """Return how many places after the point are shown beside an interval of a width; None where none is known.

    >>> places(2e-6), places(2.0), places(300.0), places(4.0, step=0.25), places(math.nan)
    (7, 1, -1, 2, None)
    """
    if step > 0:
        exponent = Decimal(repr(float(step))).normalize().as_tuple().exponent
        if isinstance(exponent, int) and exponent >= -SHORTEST_STEP:
            return max(-exponent, 0)
    if not (math.isfinite(width) and width > 0):
        return None
    return 1 - math.floor(math.log10(width))


def number_text(value: float, width: float = math.nan, step: float = 0.0) -> str:
    """Write a number with the digits that an interval of a width deserves; six where there is none.

    >>> number_text(5.0, 2e-6), number_text(120_000_000.0, 2.0), number_text(52.0, 4.0, step=1.0)
    ('5.0000000', '120,000,000.0', '52')
    >>> number_text(0.5), number_text(1234567.25), number_text(2.5e-9), number_text(-math.inf)
    ('0.5', '1,234,567', '2.5e-09', '-inf')
    """
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    order = math.floor(math.log10(abs(value))) if value else 0
    shown = places(width, step)
    exact = shown is None
    if shown is None:
        shown = (15 if width == 0 else DIGITS) - 1 - order
    shown = min(shown, MOST - 1 - order)
    if abs(value) >= HUGE or (value and abs(value) < TINY and shown > 6):
        text = f"{value:.{min(max(order + shown, 0), MOST - 1)}e}"
        mantissa, _, power = text.partition("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{power}"
    text = f"{value:,.{max(shown, 0)}f}"
    if exact and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.removeprefix("-") if not text.strip("-0.,") else text


def multiple(count: int, step: float) -> float:
    """Return a multiple of a step as the nearest short decimal.

    >>> multiple(798, 0.1), 798 * 0.1, multiple(3, 1 / 3), multiple(7, 0.25)
    (79.8, 79.80000000000001, 1.0, 1.75)
    """
    inverse = 1 / step
    if inverse < 2**53 and abs(round(inverse) * step - 1) < 1e-15:
        return count / round(inverse)
    return float(Decimal(repr(float(step))) * count)
