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
    """Questions of one level: linear combinations of (H / density, moments), and what one answer tells of each."""

    combinations: Floats  # (questions, 2 entries)
    precisions: Floats  # of one answer


class Known(NamedTuple):
    """What is known of one level: the covariance of (H / density, moments), and what each doubt depends on."""

    covariance: Floats  # (2 entries, 2 entries)
    gradients: Floats  # (coefficients, entries): the doubt is gradient' covariance gradient


def shares_of(
    known: Sequence[Known], questions: Sequence[Questions], people: float, ahead: float, most: float
) -> list[Floats]:
    """Return for each level which part of the people ahead is asked each question, at most a part of them in all."""
    parcel = most / PARCELS
    count = parcel * ahead
    found = [np.zeros(len(each.precisions)) for each in questions]
    if not count > 0:
        return found
    carried = [each.combinations @ one.covariance for each, one in zip(questions, known, strict=True)]
    reached = [(line[:, : one.gradients.shape[1]] @ one.gradients.T) for line, one in zip(carried, known, strict=True)]
    own = [(line * each.combinations).sum(axis=1) for line, each in zip(carried, questions, strict=True)]
    doubts = [
        ((one.gradients @ one.covariance[: one.gradients.shape[1], : one.gradients.shape[1]]) * one.gradients).sum(
            axis=1
        )
        for one in known
    ]
    cost = sum(len(each) for each in doubts) * count / (2 * people)
    spread = [line @ each.combinations.T for line, each in zip(carried, questions, strict=True)]
    for _ in range(PARCELS):
        worth = []
        for part, variance, each, doubt in zip(reached, own, questions, doubts, strict=True):
            noise = 1 / np.maximum(count * each.precisions, 1e-300)
            weights = 1 / (1 + np.maximum(doubt, 0.0) / SURE**2)
            worth.append(FACTOR * (part**2 @ weights) / (noise + variance))
        level = int(np.argmax([each.max() for each in worth]))
        best = int(np.argmax(worth[level]))
        if worth[level][best] <= cost:
            break
        found[level][best] += parcel
        noise = 1 / (count * questions[level].precisions[best])
        factor = 1 / (noise + own[level][best])
        way, told = spread[level][best].copy(), reached[level][best].copy()
        doubts[level] = doubts[level] - told**2 * factor
        reached[level] = reached[level] - np.outer(way, told) * factor
        own[level] = own[level] - way**2 * factor
        spread[level] = spread[level] - np.outer(way, way) * factor
    return found
