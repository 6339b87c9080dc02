"""What is publicly guessed of the values: bounds, a spread or a density, and a shape; from levels to values.

The shape is normal where a spread or a density is guessed, and uniform between bounds, unless one is named. What the
other shapes with the same public number would come to is the range that a width is told with.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sottovoce.core.checks import dimensions, moderate, number, unknown
from sottovoce.core.errors import BadInput
from sottovoce.server.shapes import PLAUSIBLE, SHAPES, KnownShape

WITHIN = 6.0  # standard deviations that lie between bounds, where a shape other than the uniform is named


class ToldWidth(NamedTuple):
    """A width in values by the guessed shape, and by the shapes for which it is shortest and longest."""

    value: float
    shortest: float
    longest: float


@dataclass(frozen=True)
class PublicGuess:
    """A public number about the values: ``kind`` is "bounds", "sd", "iqr", "density", or "none" for levels alone."""

    kind: str
    size: float = 1.0
    shape: str = "normal"
    named: bool = False
    most: float = math.inf  # the distance of public bounds, which no interval exceeds

    def told(self, tau: float, low: float, high: float) -> ToldWidth:
        """Return the width between two levels around a third, in values; in levels, if nothing is guessed."""
        if self.kind == "none":
            return ToldWidth(*[high - low] * 3)
        guessed = self._width(SHAPES[self.shape], tau, low, high)
        if self.named:
            return ToldWidth(guessed, guessed, guessed)
        others = [self._width(shape, tau, low, high) for shape in PLAUSIBLE]
        return ToldWidth(guessed, min(guessed, *others), max(guessed, *others))

    def density(self, tau: float) -> float | None:
        """Return the guessed density at a quantile; None if nothing is guessed."""
        if self.kind == "none":
            return None
        shape = SHAPES[self.shape]
        return shape.density(tau) / self._stretch(shape, tau)

    def _width(self, shape: KnownShape, tau: float, low: float, high: float) -> float:
        """Return the width by one shape, which bounds keep from reaching beyond them."""
        return min(self._stretch(shape, tau) * shape.between(low, high), self.most)

    def _stretch(self, shape: KnownShape, tau: float) -> float:
        """Return by how much a shape is stretched to agree with the public number."""
        if self.kind == "density":
            return shape.density(tau) / self.size
        if self.kind == "bounds":
            return self.size if shape is SHAPES["uniform"] else self.size / WITHIN / shape.sd
        return self.size / (shape.iqr if self.kind == "iqr" else shape.sd)

    @property
    def words(self) -> str:
        """Say what was guessed."""
        if self.kind == "none":
            return "nothing is guessed of the values, so widths are told in levels"
        if self.kind == "bounds":
            about = f"bounds {self.size:.6g} apart"
            return f"{about}, values spread evenly between them" if self.shape == "uniform" else f"{about}, {self._as}"
        what = {"sd": "a standard deviation", "iqr": "an interquartile range", "density": "a density at the quantile"}
        return f"{what[self.kind]} of {self.size:.6g}, {self._as}"

    @property
    def _as(self) -> str:
        """Say of which shape."""
        return f"{self.shape} values" if self.named else f"values as of a {self.shape} distribution"


NO_GUESS = PublicGuess("none")


def read_guess(bounds: Any, sd: Any, iqr: Any, density: Any, shape: Any) -> PublicGuess:
    """Read the public guesses, of which one is enough and two may contradict each other.

    >>> read_guess((0, 120), None, None, None, None).words
    'bounds 120 apart, values spread evenly between them'
    >>> guess = read_guess(None, 15, None, None, None)
    >>> [round(each, 2) for each in guess.told(0.5, 0.45, 0.55)]
    [3.77, 2.32, 5.2]
    """
    if shape is not None and (not isinstance(shape, str) or shape not in SHAPES):
        raise unknown("shape", shape, SHAPES)
    spreads = {"density": density, "sd": sd, "iqr": iqr}
    given = [name for name, value in spreads.items() if value is not None]
    if len(given) > 1:
        raise BadInput(f"{given[0]} and {given[1]} are two guesses of one thing; give one of them.", parameter=given[1])
    named = shape is not None
    if given:
        size = number(spreads[given[0]], given[0])
        if not (moderate(size) and math.isfinite(size)):
            raise BadInput(f"{given[0]} must be positive and moderate, not {size:g}; give a rough public guess.")
        low, high = (-math.inf, math.inf) if bounds is None else _between(bounds)
        return PublicGuess(given[0], size, shape or "normal", named, high - low)
    if bounds is not None:
        low, high = _between(bounds)
        return PublicGuess("bounds", high - low, shape or "uniform", named, high - low)
    if named:
        raise BadInput(
            "shape needs a number that says how wide the values spread: give sd=, iqr=, density= or bounds= with it.",
            parameter=("sd", "iqr", "density", "bounds"),
        )
    return NO_GUESS


def _between(bounds: Any) -> tuple[float, float]:
    """Return public bounds of the values."""
    if (
        isinstance(bounds, str | bytes)
        or dimensions(bounds) != 1
        or not isinstance(bounds, Sequence)
        or len(bounds) != 2
    ):
        raise BadInput("bounds must be a pair (low, high); give two numbers.")
    low, high = (number(each, f"the {end} bound") for each, end in zip(bounds, ("lower", "upper"), strict=True))
    if not moderate(high - low):
        raise BadInput(f"bounds must be finite with low < high, not ({low:g}, {high:g}); give public limits.")
    return low, high
