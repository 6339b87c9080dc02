"""How many people are asked what, one bit each: those questions first that shorten intervals most, while they pay.

An interval's length goes as exp((z^2 - 1) / 2 r^2) / sqrt(people at the point), r^2 its doubt. An answer about a
combination of the slope or of the moments takes a known part of every doubt, and its person is not at the point: so
questions are bought a few people at a time, each time the one that takes most, until none is worth its people.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

FACTOR = 1.42  # (z^2 - 1) / 2 at level .95
PARCELS = 12  # in which the people of a segment are dealt out
SURE = 1.0  # doubt, as a standard deviation, from which on what is taken of it counts less


class Questions(NamedTuple):
    """Questions of one level: combinations of (H / density, bend, moments), and what one answer tells of each."""

    combinations: Floats  # (questions, entries)
    precisions: Floats  # of one answer


class Known(NamedTuple):
    """What is known of one level: the covariance of (H / density, bend, moments), and what each doubt depends on."""

    covariance: Floats
    gradients: Floats  # (coefficients, entries of H): the doubt is gradient' covariance gradient


class Remaining(NamedTuple):
    """What the answers so far leave of one level, as far as the questions touch it."""

    doubts: Floats  # (coefficients,)
    reached: Floats  # (questions, coefficients): covariance of a question with what a doubt depends on
    spread: Floats  # (questions, questions): covariance of the questions

    def worth(self, count: float, precisions: Floats) -> Floats:
        """Return by how much so many answers to each question shorten the intervals, in logarithms."""
        noise = 1 / np.maximum(count * precisions, 1e-300)
        weights = 1 / (1 + np.maximum(self.doubts, 0.0) / SURE**2)
        return np.asarray(FACTOR * (self.reached**2 @ weights) / (noise + np.diag(self.spread)))

    def after(self, question: int, count: float, precision: float) -> "Remaining":
        """Return what is left after so many answers to a question."""
        factor = 1 / (1 / (count * precision) + self.spread[question, question])
        way, told = self.spread[question], self.reached[question]
        return Remaining(
            self.doubts - told**2 * factor,
            self.reached - np.outer(way, told) * factor,
            self.spread - np.outer(way, way) * factor,
        )


def shares_of(
    known: Sequence[Known], questions: Sequence[Questions], people: float, ahead: float, most: float
) -> list[Floats]:
    """Return for each level which part of the people ahead is asked each question, at most a part of them in all.

    >>> known = Known(np.diag([0.2, 0.1]), np.array([[1.0, 0.0]]))
    >>> about = Questions(np.eye(2), np.array([0.01, 0.01]))
    >>> [shares] = shares_of([known], [about], people=10_000, ahead=3_000, most=0.1)
    >>> bool(0 < shares[0] < 0.1), float(shares[1])
    (True, 0.0)
    """
    parcel = most / PARCELS
    count = parcel * ahead
    found, left = [np.zeros(len(each.precisions)) for each in questions], list(map(_told, known, questions))
    cost = sum(len(each.doubts) for each in left) * count / (2 * max(people, 1.0))
    for _ in range(PARCELS if count > 0 else 0):
        worth = [one.worth(count, each.precisions) for one, each in zip(left, questions, strict=True)]
        level = int(np.argmax([each.max() for each in worth]))
        best = int(np.argmax(worth[level]))
        if worth[level][best] <= cost:
            break
        found[level][best] += parcel
        left[level] = left[level].after(best, count, float(questions[level].precisions[best]))
    return found


def _told(known: Known, questions: Questions) -> Remaining:
    """Return what is known before any of the questions is bought."""
    entries, gradients = known.gradients.shape[1], known.gradients
    doubts = ((gradients @ known.covariance[:entries, :entries]) * gradients).sum(axis=1)
    carried = questions.combinations @ known.covariance
    return Remaining(doubts, carried[:, :entries] @ gradients.T, carried @ questions.combinations.T)
