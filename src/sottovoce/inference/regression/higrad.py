"""HiGrad trees (Su and Zhu 2018): estimates that share public prefixes, studentised by the covariance of the tree.

arXiv:1802.04876; equations 24 to 31 of the paper on online quantile regression.

A tree with branching `(b_1, ..., b_L)` has `1, b_1, b_1 b_2, ...` nodes on its levels. Each node is a segment of the
stream with an equal share of the people, and its estimate is the average over its own segment; state and step time
continue from the parent. A leaf's estimate is the sum over its path, each level weighted by its share of the people, so
the mean of the leaves is the mean over all people. Leaves that share a node share its noise: in units of one person's
covariance their template is `sum_l w_l^2 / n_l 1{same node at level l}` (25). Whitened by it, deviations of the leaves
from their mean estimate that covariance with `R - 1` degrees of freedom.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.inference.common.groups import hotelling_value, student_p_value, student_value
from sottovoce.inference.regression.region import (
    Contrast,
    Ellipsoid,
    confident,
    contrast_matrix,
    nonsingular,
    variance_along,
    vector,
)


@dataclass(frozen=True)
class Tree:
    """A public tree for `n` people; nodes are numbered level by level, from the root.

    ``branching`` are the children of each node, level by level.

    >>> tree = Tree((4, 4), 2100)
    >>> tree.node_counts, tree.leaves
    ((1, 4, 16), 16)
    >>> [round(weight, 4) for weight in tree.weights]
    [0.0476, 0.1905, 0.7619]
    >>> tree.spans
    ((0, 100), (100, 200), (200, 300))
    """

    branching: tuple[int, ...]
    n: int

    def __post_init__(self) -> None:
        if not self.branching or any(b != int(b) or b < 1 for b in self.branching) or self.leaves < 2:
            raise BadInput(f"branching is {self.branching}, but a tree needs whole numbers and at least two leaves.")
        if self.n < self.nodes:
            raise BadInput(
                f"a tree of {self.nodes} segments needs at least {self.nodes} people, but there are {self.n}."
            )

    @property
    def node_counts(self) -> tuple[int, ...]:
        """Return the number of nodes on each level, the root's included."""
        return tuple(math.prod(self.branching[:level]) for level in range(len(self.branching) + 1))

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return sum(self.node_counts)

    @property
    def leaves(self) -> int:
        """Return the number of leaves."""
        return math.prod(self.branching)

    @property
    def weights(self) -> tuple[float, ...]:
        """Return each level's share of the people, the weight of its estimate."""
        return tuple(count / self.nodes for count in self.node_counts)

    @cached_property
    def sizes(self) -> Ints:
        """Return the number of people of each segment; they differ by one at most."""
        share, rest = divmod(self.n, self.nodes)
        # The leaves, last in number and largest in weight, take what does not divide.
        return np.full(self.nodes, share) + (np.arange(self.nodes) >= self.nodes - rest)

    @property
    def parents(self) -> Ints:
        """Return the parent of each node, from which it continues; -1 for the root."""
        parents, start = [np.array([-1])], 0
        for count, children in zip(self.node_counts, self.branching, strict=False):
            parents.append(start + np.repeat(np.arange(count), children))
            start += count
        return np.concatenate(parents)

    @cached_property
    def paths(self) -> Ints:
        """Return the nodes on the way to each leaf, one leaf a row, from the root."""
        steps = [np.arange(self.nodes - self.leaves, self.nodes)]
        while steps[-1][0] > 0:
            steps.append(self.parents[steps[-1]])
        return np.stack(steps[::-1], axis=1)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the step times before and after each level's segment on the way to the first leaf."""
        ends = np.concatenate([[0], np.cumsum(self.sizes[self.paths[0]])])
        return tuple((int(start), int(stop)) for start, stop in pairwise(ends))

    @cached_property
    def template(self) -> Floats:
        """Return the covariance of the leaves in units of one person's (25)."""
        shares: Floats = np.square(np.array(self.weights)) / self.sizes[self.paths]
        same = self.paths[:, None, :] == self.paths[None, :, :]
        covariance: Floats = np.einsum("rl,rsl->rs", shares, same)
        return covariance

    @property
    def multiplier(self) -> float:
        """Return the variance of the leaves' mean in units of one person's (26): 1/n for equal segments."""
        return float(self.template.mean())

    @cached_property
    def whitener(self) -> Floats:
        """Return the inverse of the template among deviations from the mean."""
        centring = np.eye(self.leaves) - 1.0 / self.leaves
        inverse = np.linalg.pinv(centring @ self.template @ centring, rcond=1e-10, hermitian=True)
        return np.asarray(inverse, dtype=np.float64)


def leaf_estimates(tree: Tree, segments: ArrayLike) -> Floats:
    """Return each leaf's estimate, one per row (24), from those of the segments."""
    rows = np.asarray(segments, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != tree.nodes or rows.shape[1] == 0 or not np.isfinite(rows).all():
        raise BadInput(f"segments must be {tree.nodes} rows of finite coefficients, one per node, not {rows.shape}.")
    # As distances from the first segment: the weights sum to one up to rounding only.
    leaves: Floats = rows[0] + np.einsum("l,rlj->rj", np.array(tree.weights), (rows - rows[0])[tree.paths])
    return leaves


def mean(tree: Tree, segments: ArrayLike) -> Floats:
    """Return the mean of the leaves, the estimate."""
    leaves = leaf_estimates(tree, segments)
    average: Floats = leaves[0] + (leaves - leaves[0]).mean(0)
    return average


def covariance(tree: Tree, segments: ArrayLike) -> Floats:
    """Return the covariance of one person's contribution, from the whitened leaves (29)."""
    leaves = leaf_estimates(tree, segments)
    apart = leaves - leaves[0]
    apart = apart - apart.mean(0)
    spread: Floats = apart.T @ tree.whitener @ apart / (tree.leaves - 1)
    return (spread + spread.T) / 2.0


def interval(tree: Tree, segments: ArrayLike, contrast: Contrast, level: float) -> tuple[float, float]:
    """Return the ends of the confidence interval of a contrast (28).

    ``segments`` holds the estimate of each segment, one per row, in the order of the nodes.

    >>> tree = Tree((2,), 300)
    >>> low, high = interval(tree, [[0.0], [1.0], [2.0]], [1.0], 0.5)
    >>> round(low, 3), round(high, 3)
    (0.592, 1.408)
    """
    middle, error = _studentised(tree, segments, contrast)
    half = student_value(confident(level), tree.leaves - 1) * error
    return middle - half, middle + half


def p_value(tree: Tree, segments: ArrayLike, contrast: Contrast, value: float) -> float:
    """Return the two-sided p-value of a value of the contrast."""
    middle, error = _studentised(tree, segments, contrast)
    return student_p_value((value - middle) / error, tree.leaves - 1)


def ellipsoid(tree: Tree, segments: ArrayLike, level: float, contrasts: ArrayLike | None = None) -> Ellipsoid:
    """Return the confidence ellipsoid of all coefficients, or of several contrasts (30), with Hotelling's value (31).

    Segments are as in `interval`; ``contrasts`` has one contrast per row.

    >>> tree = Tree((4,), 500)
    >>> segments = [[0.0, 0.0], [1.0, 2.0], [-1.0, 1.0], [0.0, -2.0], [2.0, 0.0]]
    >>> ellipsoid(tree, segments, 0.95).contains([0.2, 0.1])
    True
    """
    estimate = mean(tree, segments)
    targets = contrast_matrix(contrasts, estimate.size)
    bound = hotelling_value(len(targets), tree.leaves, level)
    spread = targets @ covariance(tree, segments) @ targets.T
    shape = nonsingular(spread, len(targets), "the covariance of the tree's leaves")
    return Ellipsoid(targets @ estimate, tree.multiplier * shape, bound)


def _studentised(tree: Tree, segments: ArrayLike, contrast: Contrast) -> tuple[float, float]:
    estimate = mean(tree, segments)
    a = vector(contrast, estimate.size, "contrast")
    variance = variance_along(a, covariance(tree, segments))
    return float(a @ estimate), math.sqrt(variance * tree.multiplier)
