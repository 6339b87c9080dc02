"""Conformity scores of a model and the prediction sets that go with them (Lei et al.; Romano et al.; Sadinle et al.).

A prediction set is {y : score(x, y) <= threshold}. For a response and its predicted ends low <= high the score is
max(low - y, y - high) (conformalized quantile regression), which is the absolute residual when low = high; its set is
the interval [low - threshold, high + threshold]. For a label y of predicted probability p_y it is 1 - p_y ("lac", least
ambiguous sets), the sum of all p_k > p_y ("aps", adaptive sets: labels cumulated from the most probable down to y,
without it) or the sum of all p_k >= p_y ("aps-inclusive": down to y itself). The last two are the randomised score of
Romano, Sesia and Candès (2020) with u = 1 and u = 0. Labels of equal probability are cumulated together, so that no
order of the labels matters.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Bools, Floats

LabelScores = Callable[[Floats], Floats]

# Sums of probabilities are equal up to rounding only. A label whose score exceeds the threshold by less than this is
# kept: a larger set is never less valid. MAPIE has 1e-8, which more than doubles the sets of models that are very sure.
ROUNDING = 1e-12


def absolute_residuals(predicted: Floats, y: Floats) -> Floats:
    """Return how far each response is from its prediction."""
    return np.abs(y - predicted)


def quantile_scores(low: Floats, high: Floats, y: Floats) -> Floats:
    """Return how far each response is outside its predicted ends; negative inside."""
    return np.maximum(low - y, y - high)


def interval(low: Floats, high: Floats, threshold: float | Floats) -> Floats:
    """Return the interval of all responses that score at most the threshold, or that of their row, (n, 2).

    No response does where low - threshold > high + threshold. That empty set is given as the single point in the
    middle, so that no interval has a negative length.
    """
    ends = np.stack([low - threshold, high + threshold], axis=1)
    empty = ends[:, 0] > ends[:, 1]
    ends[empty] = middle(low, high)[empty, None]
    return ends


def middle(low: Floats, high: Floats) -> Floats:
    """Return the middle of two ends, which may be far apart."""
    return low / 2 + high / 2


def lac_scores(probabilities: Floats) -> Floats:
    """Return the score of every label, (n, classes): what its probability lacks to one."""
    return np.clip(1.0 - probabilities, 0.0, 1.0)


def aps_scores(probabilities: Floats) -> Floats:
    """Return the score of every label, (n, classes): the sum of the probabilities not below its own.

    >>> aps_scores(np.array([[0.25, 0.5, 0.25], [0.125, 0.25, 0.625]])).tolist()
    [[1.0, 0.5, 1.0], [1.0, 0.875, 0.625]]
    """
    order, falling, sums = _cumulated(probabilities)
    # at the end of a run of equal probabilities: the smallest sum at an end that is not before the label
    ends = np.ones(sums.shape, dtype=np.bool_)
    ends[:, :-1] = falling[:, :-1] > falling[:, 1:]
    shared = np.minimum.accumulate(np.where(ends, sums, np.inf)[:, ::-1], axis=1)[:, ::-1]
    return _in_place(shared, order)


def before_scores(probabilities: Floats) -> Floats:
    """Return the score of every label, (n, classes): the sum of the probabilities above its own.

    >>> before_scores(np.array([[0.25, 0.5, 0.25], [0.125, 0.25, 0.625]])).tolist()
    [[0.5, 0.0, 0.5], [0.875, 0.625, 0.0]]
    """
    order, falling, sums = _cumulated(probabilities)
    # at the start of a run of equal probabilities: the largest sum at a start that is not after the label
    starts = np.zeros(sums.shape)
    starts[:, 1:] = np.where(falling[:, :-1] > falling[:, 1:], sums[:, :-1], 0.0)
    return _in_place(np.maximum.accumulate(starts, axis=1), order)


def _cumulated(probabilities: Floats) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the order of falling probabilities, the probabilities in it, and their sums so far."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    falling = np.take_along_axis(probabilities, order, axis=1)
    return order, falling, np.cumsum(falling, axis=1)


def _in_place(sums: Floats, order: npt.NDArray[np.int64]) -> Floats:
    """Put sums back to their labels; what rounding adds to one is cut off, so that a grid up to one covers them."""
    scores = np.empty_like(sums)
    np.put_along_axis(scores, order, np.clip(sums, 0.0, 1.0), axis=1)
    return scores


def label_set(scores: Floats, threshold: float | Floats) -> Bools:
    """Tell which labels score at most the threshold, or that of their row, (n, 1): (n, classes)."""
    return scores <= threshold + ROUNDING


def with_likeliest(sets: Bools, probabilities: Floats) -> Bools:
    """Add the most probable labels of a row to its set."""
    likeliest: Bools = probabilities == probabilities.max(axis=1, keepdims=True)
    return sets | likeliest
