"""The pilot: a private search for location and scale among the first people, and the guesses made of it.

The search (`server.quantile.search`) asks people on which side of a point their response lies, through one bit. It
finds a centre and a half-width that holds half of the responses; density and size follow as for a normal distribution
of which the covariates explain a third of the variance. Wrong guesses cost people; far out in a tail, where few
people correct them, coverage too (docs/limits.md). Its state is the log of answers: replaying them gives the next
question, or what was found.
"""

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile
from sottovoce.server.quantile.search import HUGE, Found, find

SEARCH = 6000  # answers without noise that the search may use
TYPICAL = 400  # and those it takes: 690 people at epsilon 2, 1,900 at epsilon 1 (decision 0022)
CARE = 0.8  # more people a cut than the staged design asks: a search that fails costs all people after it
QUARTILE = 0.6745  # of the standard normal distribution
UNEXPLAINED = 0.8  # of the standard deviation: covariates explain a third of the variance (decision 0022)
LENGTH = 1.3  # of the coefficients, in standard deviations of the response (decision 0022)
FLOOR, ROOM = (1e-13, 1e-12), 4.0  # scales that doubles resolve: in the location, and at all; and so many of them
USED_UP = "the search for location and scale used up its people; give density and size, public guesses."


class Guess(NamedTuple):
    """Density of the response at each level, length of the coefficients about the start, and the start itself."""

    density: Floats  # (levels,)
    size: float
    start: Floats  # (levels, d)


def search(rate: float, tau: float = 0.5) -> Generator[Ask, Ints, Found]:
    """Return the search; ``rate`` is the response rate of one bit, ``tau`` says on which side of an atom to look."""
    people = np.array([math.ceil(SEARCH / rate**2)])
    allocator = QueryAllocator(SiteProfile(np.array([1.0]), np.array([rate]), people))
    return find(allocator, None, None, care=CARE, rough=False, tau=tau)


def replay(epsilon: float, taus: Sequence[float], answers: Sequence[Ints]) -> Ask | Found:
    """Return what is asked after some answers (ones at each point), or what was found."""
    procedure = search(rate_of(binary(epsilon)), float(np.mean(taus)))
    asked = next(procedure)
    for ones in answers:
        try:
            asked = procedure.send(ones[None])
        except StopIteration as stop:
            found: Found = stop.value
            return found
    return asked


def searchers(rate: float) -> int:
    """Return about how many people the search asks; ``rate`` is the response rate of one bit."""
    return math.ceil(TYPICAL / rate**2)


def out_of_reach(found: Found) -> str | None:
    """Say why no regression can follow what was found: it is farther or finer than the search, or doubles, can tell."""
    away, scale = abs(found.centre), found.scale
    if away >= HUGE * (1 - 1e-9) or scale >= HUGE:
        return (
            f"the first people show responses about {HUGE:g} or more from zero, or apart, which is farther than is "
            "looked; give the response in another unit, or less a public number."
        )
    least = ROOM * max(FLOOR[0] * away, FLOOR[1])
    if scale < least:
        return (
            f"the first people show responses that lie closer together than {least:.2g}, at about {found.centre:.3g}: "
            "finer than is looked, or half of them are tied; give the response in another unit, or less a public "
            "number, and spread ties."
        )
    return None


def guess_of(found: Found, taus: tuple[float, ...], p: int) -> Guess:
    """Turn a centre and a half-width into guesses.

    >>> guess = guess_of(Found(10.0, 0.6745, ()), (0.5,), 1)
    >>> guess.density.round(3).tolist(), guess.size, guess.start.tolist()
    ([0.499], 1.3, [[10.0, 0.0]])
    """
    deviation = found.scale / QUARTILE
    away = ndtri(np.array(taus))
    density = np.exp(-(away**2) / 2) / math.sqrt(2 * math.pi) / (UNEXPLAINED * deviation)
    start = np.zeros((len(taus), p + 1))
    start[:, 0] = found.centre + UNEXPLAINED * deviation * away
    return Guess(np.asarray(density), LENGTH * deviation, start)
