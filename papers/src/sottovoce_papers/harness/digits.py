"""How a number is written: ours with the digits of the print, differences in standard errors, times in words."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from sottovoce_papers.harness.measure import Measure

SMALL, LARGE = 1e-4, 1e6


class Digits(NamedTuple):
    """How the numbers of a column are written: with so many decimals, of the number or before a power of ten."""

    decimals: int
    power: bool = False


def digits_of(texts: Iterable[str], found: Iterable[Measure] = ()) -> Digits | None:
    """Return how a column is written: like the print, else with three digits of a usual number of it.

    None where there is no print and numbers are too small, or too different, for one number of decimals.

    Examples
    --------
    >>> digits_of(["0.95", "0.948"]), digits_of(["1.6e-3"])
    (Digits(decimals=3, power=False), Digits(decimals=1, power=True))
    >>> digits_of([], [Measure(0.91), Measure(0.09)]), digits_of([], [Measure(0.91), Measure(1e-9)])
    (Digits(decimals=3, power=False), None)
    """
    listed = [text.lower() for text in texts]
    if listed:
        parts = [text.partition("e")[0].partition(".")[2] for text in listed]
        return Digits(max(map(len, parts)), any("e" in text for text in listed))
    sizes = sorted(abs(one.value) for one in found if one.value != 0 and math.isfinite(one.value))
    if not sizes or sizes[0] < SMALL or sizes[-1] > LARGE or sizes[-1] / sizes[0] > 1e4:
        return None
    return Digits(max(2 - math.floor(math.log10(sizes[len(sizes) // 2])), 0))


def written(measure: Measure, digits: Digits | None) -> str:
    """Write what was found: as its column is written, or with as many digits as its error lets one believe.

    Examples
    --------
    >>> written(Measure(0.94812), Digits(3)), written(Measure(0.00004), Digits(3)), written(Measure(0.0), Digits(3))
    ('0.948', '4e-5', '0.000')
    >>> written(Measure(0.00926), Digits(2, True)), written(Measure(2.5, 0.03), None), written(Measure(1.2345), None)
    ('9.26e-3', '2.50', '1.234')
    >>> written(Measure(1.234e-7, 1e-9), None), written(Measure(float("inf")), Digits(2))
    ('1.23e-7', 'inf')
    """
    value, error = measure.value, measure.error
    if not math.isfinite(value) or (value == 0 and (digits is None or digits.power)):
        return f"{value:.0f}"
    if value == 0 and digits is not None:
        return f"{value:.{digits.decimals}f}"
    if digits is not None and digits.power:
        return _short(f"{value:.{digits.decimals}e}")
    if digits is not None:
        near = abs(value) < 0.5 * 10**-digits.decimals
        return _short(f"{value:.2g}" if near else f"{value:.{digits.decimals}f}")
    size = math.floor(math.log10(abs(value)))
    significant = min(max(size - math.floor(math.log10(error)) + 1, 2), 6) if error > 0 else 4
    if not SMALL <= abs(value) < LARGE:
        return _short(f"{value:.{min(significant, 4) - 1}e}")
    return f"{value:.{max(significant - 1 - size, 0)}f}"


def _short(text: str) -> str:
    """Write a power of ten as print does: 1e-03 is 1e-3."""
    number, _, power = text.partition("e")
    return f"{number}e{int(power)}" if power else number


def apart(difference: float) -> str:
    """Write a difference in standard errors.

    Examples
    --------
    >>> apart(0.42), apart(-12.34), apart(123.4), apart(-1e5), apart(float("nan"))
    ('+0.4', '-12.3', '+123', '<-999', '')
    """
    if math.isnan(difference):
        return ""
    if abs(difference) >= 999.5:
        return ">+999" if difference > 0 else "<-999"
    return f"{difference:+.{0 if abs(difference) >= 99.95 else 1}f}"


def lasting(seconds: float) -> str:
    """Write a time in words.

    Examples
    --------
    >>> lasting(0.42), lasting(12.3), lasting(200), lasting(4000), lasting(200_000)
    ('0.4 s', '12 s', '3 min 20 s', '1 h 7 min', '56 h')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 and whole < 600 else "")
    minutes = round(whole / 60)
    if minutes >= 1440:
        return f"{round(minutes / 60)} h"
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def percent(part: float) -> str:
    """Write a share, never rounded up to all of it.

    Examples
    --------
    >>> percent(0.953), percent(0.9999), percent(1.0)
    ('95 %', '99.9 %', '100 %')
    """
    if 0.99 < part < 1:
        return f"{math.floor(1000 * part) / 10:g} %"
    return f"{math.floor(100 * part + 0.5)} %"
