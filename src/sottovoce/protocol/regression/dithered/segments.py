"""The people between two looks, kept as sums with the design that asked them, and what many such segments come to."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.step import AT_POINT, LOOKED, PRODUCTS, SPREAD, Sums, no_sums

INTERCEPT_WAYS = 2  # the first ways of a level: about the side alone, a little off the point and farther


class LookSegment(NamedTuple):
    """The people between two looks: how many came before and up to them, their sums, and how they were asked."""

    first: int
    last: int
    sums: Sums
    pairs: Floats  # (pairs, 2, d)
    ranges: Floats  # (2 pairs, 2)
    ways: Floats  # (ways, 2, d)
    steps: Floats  # (ways, 3)


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


def tight(segments: Sequence[LookSegment], levels: int, d: int) -> Tight:
    """Add the sums of people asked at the point."""
    counts = sum((each.sums.counts for each in segments), np.zeros(2))
    vectors = sum((each.sums.vectors for each in segments), np.zeros((2, levels, d)))
    squares = sum((each.sums.squares for each in segments), np.zeros((2, levels, d, d)))
    return Tight(float(counts[AT_POINT]), float(counts[LOOKED]), vectors, squares)


class Stacked(NamedTuple):
    """The segments' designs and sums side by side, a segment a row."""

    counts: Floats  # (segments, 2): at the point; people whose spread was looked at
    vectors: Floats  # (segments, 2, levels, d): points and gradients of those at the point
    spreads: Floats  # (segments, levels, d, d): their points' products
    pairs: Floats  # (segments, pairs, 2, d)
    ranges: Floats  # (segments, 2 pairs, 2)
    bits: Floats  # (segments, 2, 2 pairs)
    products: Floats  # (2, d, d), added up
    overheard: Floats  # (2, d, d), added up
    ways: Floats  # (segments, levels, ways of a level, 2, d)
    steps: Floats  # (segments, levels, ways of a level, 3)
    beside: Floats  # (segments, 2, 2, levels, ways of a level): people and bits, below the point and above it


def stacked(segments: Sequence[LookSegment], levels: int, d: int) -> Stacked:
    """Lay segments side by side."""
    if not segments:
        nobody = no_sums(levels, d, 0, levels * INTERCEPT_WAYS)
        ways = levels * INTERCEPT_WAYS
        steps = np.tile([0.0, -1.0, 1.0], (ways, 1))
        parts = (np.zeros((0, 2, d)), np.zeros((0, 2)), np.zeros((ways, 2, d)), steps)
        segments = (LookSegment(0, 0, nobody, *parts),)
    sums = [each.sums for each in segments]
    lower = np.array([each.squares[SPREAD] for each in sums])
    return Stacked(
        np.array([each.counts for each in sums]),
        np.array([each.vectors for each in sums]),
        lower + np.swapaxes(np.tril(lower, -1), -1, -2),
        np.array([each.pairs for each in segments]),
        np.array([each.ranges for each in segments]),
        np.array([each.pairs for each in sums]),
        np.array([each.products for each in sums]).sum(axis=0),
        np.array([each.overheard for each in sums]).sum(axis=0),
        np.array([each.ways.reshape(levels, -1, 2, d) for each in segments]),
        np.array([each.steps.reshape(levels, -1, 3) for each in segments]),
        np.array([each.ways.reshape(2, 2, levels, -1) for each in sums]),
    )


def swings(told: Stacked, level: int, places: Floats, moments: Floats) -> Floats:
    """Return the mean square of x'(point - place) in each segment, each with a place, counted from the start."""
    mean = told.vectors[:, 0, level] / np.maximum(told.counts[:, AT_POINT], 1.0)[:, None]
    spread = told.spreads[:, level] / np.maximum(told.counts[:, LOOKED], 1.0)[:, None, None]
    off = mean - places
    about = spread - mean[:, :, None] * mean[:, None, :] + off[:, :, None] * off[:, None, :]
    return np.asarray(np.maximum((about * moments).sum(axis=(1, 2)), 0.0))


def noise(sums: Tight) -> Floats:
    """Return the sums of gradient x gradient of each level, whole."""
    lower = sums.squares[PRODUCTS]
    return np.asarray(lower + np.transpose(np.tril(lower, -1), (0, 2, 1)))
