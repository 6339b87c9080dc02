"""What is public of the covariates beside their bounds: columns of two values, categories, and moments that are known.

A column that takes its two bounds alone has E z^2 = 1; two columns of one category are never both at their upper bound,
so that 0 = 1 + E z_j + E z_k + E z_j z_k. What is left of the moments to learn is free: means, squares of numbers, and
by how much the product of two columns exceeds that of their means.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput

NUMBERS = 0  # the category of a column that may lie anywhere between its bounds
MEAN, SECOND = 0, 1  # columns of what is known of each covariate
CENTRES, SQUARES, CROSSES = 1, 0, 2  # groups of free entries, as the learner numbers them
NEARLY_ONE = 0.9  # second moment from which on a column is scaled as one of two values
RAREST = 1e-3  # part of the people at a level, at least
WIDE = 3.0  # standard deviations about its mean, beyond which a number hardly lies


class Declared(NamedTuple):
    """What is declared of each covariate."""

    categories: Ints  # (p,): 0 of numbers; columns of one category share a number, a column of two values is alone
    known: Ints  # (p, 2): 1 where the mean, and the second moment, are known
    values: Floats  # (p, 2): what they are, else 0

    @property
    def two_valued(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Tell which columns take their two bounds alone."""
        return np.asarray(self.categories != NUMBERS)


class Frame(NamedTuple):
    """The packed moments as ``fixed + free @ (what is free)``; which group each free entry is of, and its guess."""

    fixed: Floats  # (entries,)
    free: Floats  # (entries, free entries)
    groups: Ints
    guess: Floats


def declare(categories: Ints, means: Floats | None = None, seconds: Floats | None = None) -> Declared | None:
    """Return what is declared, NaN where nothing is known; None if nothing is declared at all.

    >>> declare(np.array([0, 0])) is None, declare(np.array([0, 1])).known.tolist()
    (True, [[0, 0], [0, 1]])
    """
    two, p = categories != NUMBERS, len(categories)
    values = np.full((p, 2), np.nan)
    if means is not None:
        values[:, MEAN] = means
    if seconds is not None:
        values[:, SECOND] = seconds
    values[two, SECOND] = 1.0
    known = np.isfinite(values)
    if not known.any():
        return None
    return Declared(np.asarray(categories, dtype=np.int64), known.astype(np.int64), np.where(known, values, 0.0))


def suspected(declared: Declared | None, moments: Floats) -> Declared | None:
    """Return what is declared, and as columns of two values those whose square is nearly one, for scaling alone.

    Nothing but a column of its two bounds has the square one. What is taken for one wrongly costs some people more.
    """
    d = len(moments)
    categories = np.zeros(d - 1, dtype=np.int64) if declared is None else declared.categories.copy()
    likely = (categories == NUMBERS) & (np.diag(moments)[1:] > NEARLY_ONE)
    if not likely.any():
        return declared
    categories[likely] = categories.max(initial=0) + 1 + np.arange(np.count_nonzero(likely))
    return declare(categories)


def check_declared(declared: Declared, p: int) -> None:
    """Refuse what nobody can have declared of ``p`` covariates, as it may come over a wire."""
    categories, known, values = declared
    shaped = categories.shape == (p,) and known.shape == values.shape == (p, 2)
    if not (shaped and np.all((known == 0) | (known == 1)) and np.all((categories >= 0) & (categories <= p))):
        raise BadInput("what is declared of the covariates does not fit the channel; correct the query.")
    if not np.all(np.abs(values) <= 1) or np.any(known[categories > 0, SECOND] == 0):
        raise BadInput("no covariate has the moments that are declared; correct the query.")


def guessed_means(declared: Declared) -> Floats:
    """Return the known means, and for the others those of categories whose levels are all alike frequent."""
    categories, known, values = declared
    sizes = np.array([np.count_nonzero(categories == each) for each in categories])
    even = np.where(categories == NUMBERS, 0.0, 2 / (sizes + 1) - 1)
    return np.where(known[:, MEAN] == 1, values[:, MEAN], even)


def guessed_moments(declared: Declared, seconds: Floats) -> Floats:
    """Return E x x' as it is guessed: ``seconds`` of numbers, and products of unlike columns those of the means."""
    means, d = guessed_means(declared), len(seconds) + 1
    squares = np.where(declared.known[:, SECOND] == 1, declared.values[:, SECOND], np.maximum(seconds, means**2 + 0.01))
    whole = np.outer(np.append(1.0, means), np.append(1.0, means))
    whole[np.arange(1, d), np.arange(1, d)] = squares
    for j, k in _together(declared):
        whole[j, k] = whole[k, j] = -1 - means[j - 1] - means[k - 1]
    return whole


def _together(declared: Declared) -> list[tuple[int, int]]:
    """Return the pairs of columns of one category, counted from 1."""
    categories = declared.categories
    return [
        (1 + int(j), 1 + int(k))
        for each in np.unique(categories[categories != NUMBERS])
        for at, j in enumerate(np.flatnonzero(categories == each))
        for k in np.flatnonzero(categories == each)[at + 1 :]
    ]


def frame_of(declared: Declared, guess: Floats, about: Floats) -> Frame:
    """Return the frame in which products of two columns are counted from the means ``about`` (linear there)."""
    d, known, values = len(guess), declared.known, declared.values
    together, at = frozenset(_together(declared)), _numbers(d)
    entries = d * (d + 1) // 2
    fixed, rows = np.zeros(entries), np.zeros((entries, entries))
    groups: list[int] = []
    guesses: list[float] = []

    def opened(entry: int, group: int, value: float) -> None:
        rows[entry, len(groups)] = 1.0
        groups.append(group)
        guesses.append(value)

    fixed[0] = 1.0
    for j in range(1, d):
        for column, entry, group in ((MEAN, at[0, j], CENTRES), (SECOND, at[j, j], SQUARES)):
            if known[j - 1, column]:
                fixed[entry] = values[j - 1, column]
            else:
                opened(entry, group, guess[0, j] if column == MEAN else guess[j, j])
    for j in range(1, d):
        for k in range(j + 1, d):
            entry, first, second = at[j, k], at[0, j], at[0, k]
            if (j, k) in together:
                fixed[entry] = -1 - fixed[first] - fixed[second]
                rows[entry] = -rows[first] - rows[second]
            else:
                mine, other = about[j - 1], about[k - 1]
                fixed[entry] = other * fixed[first] + mine * fixed[second] - mine * other
                rows[entry] = other * rows[first] + mine * rows[second]
                opened(entry, CROSSES, guess[j, k] - guess[0, j] * guess[0, k])
    kept = len(groups)
    return Frame(fixed, rows[:, :kept], np.array(groups, dtype=np.int64), np.array(guesses))


@lru_cache(maxsize=32)
def _numbers(d: int) -> Ints:
    """Return the place of each entry of the upper triangle among the packed ones."""
    found = np.zeros((d, d), dtype=np.int64)
    found[np.triu_indices(d)] = np.arange(d * (d + 1) // 2)
    return found


def reaches(declared: Declared, combinations: Floats, moments: Floats | None = None) -> Floats:
    """Return how far combinations of (1, z) reach: over all that is possible, or over nearly all, by the moments.

    Columns of two values reach as far as they can in any case; numbers, with moments, three standard deviations.
    """
    numbers = np.flatnonzero(~declared.two_valued)
    low, high = combinations[:, 0].copy(), combinations[:, 0].copy()
    for each in np.unique(declared.categories[declared.two_valued]):
        own = combinations[:, 1 + np.flatnonzero(declared.categories == each)]
        up = np.concatenate([np.zeros((len(own), 1)), 2 * own], axis=1)
        low, high = low - own.sum(axis=1) + up.min(axis=1), high - own.sum(axis=1) + up.max(axis=1)
    rest = combinations[:, 1 + numbers]
    whole = np.abs(rest).sum(axis=1)
    if moments is None or not len(numbers):
        return np.asarray(np.maximum(np.abs(low - whole), np.abs(high + whole)))
    means = moments[0, 1 + numbers]
    spread = moments[np.ix_(1 + numbers, 1 + numbers)] - np.outer(means, means)
    off = WIDE * np.sqrt(np.maximum(np.einsum("kj,ji,ki->k", rest, spread, rest), 0.0))
    centre = rest @ means
    return np.asarray(
        np.maximum(
            np.abs(low + np.maximum(centre - off, -whole)),
            np.abs(high + np.minimum(centre + off, whole)),
        )
    )


def cut(declared: Declared, pairs: Floats, moments: Floats, most: float) -> Floats:
    """Return about what part of each pair's mean lies beyond ``most``, at levels of columns of two values.

    People at a level are taken to be as they are there on average.
    """
    found = np.zeros(len(pairs))
    for column in 1 + np.flatnonzero(declared.two_valued):
        for sign in (-1.0, 1.0):
            often = max((1 + sign * float(moments[0, column])) / 2, RAREST)
            people = (moments[0] + sign * moments[column]) / (2 * often)
            told = (pairs[:, 0] @ people) * (pairs[:, 1] @ people)
            found += often * np.maximum(told - most, 0.0)
    return found
