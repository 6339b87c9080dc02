"""A quantile regression forest (Meinshausen 2006) on scikit-learn's trees.

A tree gives the training records of its bag weights at x: equal ones within the leaf of x, none outside. The forest's
weights are their averages, and a quantile at x is that of the training responses so weighted. Records outside of a bag
are new to its tree, so a training record is predicted fairly by the trees that have not seen it; the levels of a
band are tuned on such predictions (Romano, Patterson and Candès 2019 hold out a twentieth of the records instead).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats

BLOCK = 1 << 21  # weights held at once
ROUNDING = 1e-9
INWARD = 0.30  # how far the levels may be moved, and in how many steps
STEPS = 10


class Forest(NamedTuple):
    """Trees, the training responses in order, and the weight that each has in every leaf of every tree."""

    trees: Any
    responses: Floats
    weights: Any  # sparse, (responses, leaves)
    first: npt.NDArray[np.int64]  # of each tree's leaves
    unseen: Any  # sparse, (responses, leaves): where a record lies in the trees that have not seen it


def grow(features: Floats, responses: Floats, seed: int, trees: int = 100, leaf: int = 1) -> Forest:
    """Grow a forest on bootstrap samples of the records, on one thread.

    Parameters
    ----------
    features, responses
        The training records.
    seed
        Where the bags come from.
    trees
        How many.
    leaf
        How many records a leaf has at least.

    Examples
    --------
    >>> x = np.arange(200.0)
    >>> forest = grow(x[:, None], x, seed=1, trees=20)
    >>> quantiles(forest, np.array([[50.0]]), (0.5,)).round(-1).tolist()
    [[50.0]]
    """
    from scipy.sparse import csr_array
    from sklearn.ensemble import RandomForestRegressor

    order = np.argsort(responses, kind="stable")
    features, responses, n = features[order], responses[order], len(responses)
    model = RandomForestRegressor(trees, min_samples_leaf=leaf, random_state=seed, n_jobs=1).fit(features, responses)
    first = np.cumsum([0, *(tree.tree_.node_count for tree in model.estimators_)])
    leaves = model.apply(features) + first[:-1]
    often = np.stack([np.bincount(bag, minlength=n) for bag in model.estimators_samples_], axis=1).astype(np.float64)
    held = np.bincount(leaves.ravel(), often.ravel(), minlength=first[-1])
    rows = np.repeat(np.arange(n), trees)
    shape = (n, int(first[-1]))
    weights = csr_array(((often / np.maximum(held[leaves], 1.0)).ravel(), (rows, leaves.ravel())), shape=shape)
    unseen = csr_array(((often == 0).astype(np.float64).ravel(), (rows, leaves.ravel())), shape=shape)
    weights.eliminate_zeros()
    unseen.eliminate_zeros()
    return Forest(model, responses, weights, first, unseen)


def quantiles(forest: Forest, features: Floats, levels: tuple[float, ...]) -> Floats:
    """Return the conditional quantiles of new records, (records, levels)."""
    from scipy.sparse import csr_array

    leaves = forest.trees.apply(features) + forest.first[:-1]
    n, trees = leaves.shape
    rows = np.repeat(np.arange(n), trees)
    places = csr_array((np.ones(leaves.size), (rows, leaves.ravel())), shape=(n, int(forest.first[-1])))
    return _weighted(forest, places, levels)


def out_of_bag(forest: Forest, levels: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return responses of the training records and their quantiles by the trees that have not seen them."""
    some = np.flatnonzero(forest.unseen.sum(axis=1))
    return forest.responses[some], _weighted(forest, forest.unseen[some], levels)


def tuned_levels(forest: Forest, alpha: float, factor: float = 0.85) -> tuple[float, float]:
    """Move alpha / 2 and 1 - alpha / 2 inwards as long as the band covers a factor of 1 - alpha and gets shorter.

    Examples
    --------
    >>> from sottovoce.sim import dice
    >>> x = dice(1).generator().normal(size=(300, 2))
    >>> low, high = tuned_levels(grow(x[:, :1], x[:, 1], seed=1, leaf=20), 0.1)
    >>> low > 0.05, round(low + high, 9)
    (True, 1.0)
    """
    low = alpha / 2 + np.linspace(0.0, INWARD, STEPS)
    responses, found = out_of_bag(forest, (*low, *(1 - low)))
    covered = np.mean((found[:, :STEPS] <= responses[:, None]) & (responses[:, None] <= found[:, STEPS:]), axis=0)
    lengths = np.mean(found[:, STEPS:] - found[:, :STEPS], axis=0)
    best = 0
    while best + 1 < STEPS and covered[best + 1] >= factor * (1 - alpha) and lengths[best + 1] < lengths[best]:
        best += 1
    return float(low[best]), float(1 - low[best])


def _weighted(forest: Forest, places: Any, levels: tuple[float, ...]) -> Floats:
    """Return quantiles of the training responses, weighted as in the leaves where the records lie."""
    n, size = places.shape[0], len(forest.responses)
    found = np.empty((n, len(levels)))
    transposed = forest.weights.T.tocsr()
    step = max(BLOCK // size, 1)
    for start in range(0, n, step):
        below = np.cumsum((places[start : start + step] @ transposed).toarray(), axis=1)
        below /= below[:, -1:]
        for i, level in enumerate(levels):
            place = np.argmax(below >= level - ROUNDING, axis=1)
            found[start : start + step, i] = forest.responses[place]
    return found
