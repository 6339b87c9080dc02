"""The people between two looks, kept as sums with the design that asked them, and what many such segments come to."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.step import AT_POINT, LOOKED, PRODUCTS, SPREAD, Sums, no_sums

INTERCEPT_WAYS = 2  # the first ways: the intercept alone, a little and twice as far


class LookSegment(NamedTuple):
    """The people between two looks: how many came before and up to them, their sums, and how they were asked."""

    first: int
    last: int
    sums: Sums
    pairs: Floats  # (pairs, 2, d)
    ranges: Floats  # (2 pairs, 2)
    ways: Floats  # (ways, levels, d)


class Tight(NamedTuple):
    """Sums over people asked at the point; points are counted from the start."""

    people: float
    looked: float
    vectors: Floats  # (2, levels, d): points and gradients
    squares: Floats  # (2, levels, d, d): gradient x gradient, point x point

    def moved(self, away: Floats) -> "Tight":
        """Return the sums as if the points of each level lay so much nearer."""
        vectors, squares = self.vectors.copy(), self.squares.copy()
        for level, off in enumerate(away):
            mean = self.vectors[0, level] / max(self.people, 1.0)
            about = np.outer(mean, off) + np.outer(off, mean) - np.outer(off, off)
            squares[SPREAD, level] -= np.tril(about) * self.looked
            vectors[0, level] -= self.people * off
        return self._replace(vectors=vectors, squares=squares)

    def plus(self, other: "Tight") -> "Tight":
        """Return the sums over both."""
        people, looked = self.people + other.people, self.looked + other.looked
        return Tight(people, looked, self.vectors + other.vectors, self.squares + other.squares)


class Beside(NamedTuple):
    """Sums over people asked beside the point; ``half`` is half the square of their way, in the covariates' unit."""

    people: float
    halves: Floats  # (2, levels): the sums of half and of half^2
    vectors: Floats  # (2, levels, d): points and gradients
    weighted: Floats  # (2, levels, d): the same, each times its half

    def moved(self, away: Floats) -> "Beside":
        """Return the sums as if the points of each level lay so much nearer."""
        vectors, weighted = self.vectors.copy(), self.weighted.copy()
        vectors[0] -= self.people * away
        weighted[0] -= self.halves[0][:, None] * away
        return self._replace(vectors=vectors, weighted=weighted)

    def plus(self, other: "Beside") -> "Beside":
        """Return the sums over both."""
        halves, vectors = self.halves + other.halves, self.vectors + other.vectors
        return Beside(self.people + other.people, halves, vectors, self.weighted + other.weighted)


def tight(segments: Sequence[LookSegment], levels: int, d: int) -> Tight:
    """Add the sums of people asked at the point."""
    counts = sum((each.sums.counts for each in segments), np.zeros(2))
    vectors = sum((each.sums.vectors for each in segments), np.zeros((2, levels, d)))
    squares = sum((each.sums.squares for each in segments), np.zeros((2, levels, d, d)))
    return Tight(float(counts[AT_POINT]), float(counts[LOOKED]), vectors, squares)


class Stacked(NamedTuple):
    """The segments' designs and sums side by side, a segment a row."""

    pairs: Floats  # (segments, pairs, 2, d)
    ranges: Floats  # (segments, 2 pairs, 2)
    bits: Floats  # (segments, 2, 2 pairs)
    products: Floats  # (2, d, d), added up
    ways: Floats  # (segments, ways, levels, d)
    people: Floats  # (segments, ways)
    besides: Floats  # (segments, 3, ways, levels, d)


def stacked(segments: Sequence[LookSegment], levels: int, d: int) -> Stacked:
    """Lay segments side by side."""
    if not segments:
        nobody = no_sums(levels, d, 0, INTERCEPT_WAYS)
        parts = (np.zeros((0, 2, d)), np.zeros((0, 2)), np.zeros((INTERCEPT_WAYS, levels, d)))
        segments = (LookSegment(0, 0, nobody, *parts),)
    sums = [each.sums for each in segments]
    return Stacked(
        np.array([each.pairs for each in segments]),
        np.array([each.ranges for each in segments]),
        np.array([each.pairs for each in sums]),
        np.array([each.products for each in sums]).sum(axis=0),
        np.array([each.ways for each in segments]),
        np.array([each.beside for each in sums]),
        np.array([each.besides for each in sums]),
    )


def beside(told: Stacked, moments: Floats) -> Beside:
    """Add the sums of people asked beside the point."""
    halves = 0.5 * ((told.ways @ moments) * told.ways).sum(axis=3)
    counted = told.people[:, :, None] * halves
    sums = np.stack([counted.sum(axis=(0, 1)), (counted * halves).sum(axis=(0, 1))])
    both = told.besides[:, :2]
    weighted = np.einsum("svwlj,swl->vlj", both, halves)
    return Beside(float(told.people.sum()), sums, both.sum(axis=(0, 2)), weighted)


def noise(sums: Tight) -> Floats:
    """Return the sums of gradient x gradient of each level, whole."""
    lower = sums.squares[PRODUCTS]
    return np.asarray(lower + np.transpose(np.tril(lower, -1), (0, 2, 1)))
