"""The public tree of HiGrad: who is in a segment, what it continues from, the covariance it implies (25, 26)."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.region import Array


@dataclass(frozen=True)
class Tree:
    """A public tree for `n` people; nodes are numbered level by level, from the root.

    Parameters
    ----------
    branching
        Children of each node, level by level.
    n
        Number of people.

    Examples
    --------
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
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of people of each segment; they differ by one at most."""
        share, rest = divmod(self.n, self.nodes)
        # The leaves, last in number and largest in weight, take what does not divide.
        return np.full(self.nodes, share) + (np.arange(self.nodes) >= self.nodes - rest)

    @property
    def parents(self) -> NDArray[np.int64]:
        """Return the parent of each node, from which it continues; -1 for the root."""
        parents, start = [np.array([-1])], 0
        for count, children in zip(self.node_counts, self.branching, strict=False):
            parents.append(start + np.repeat(np.arange(count), children))
            start += count
        return np.concatenate(parents)

    @cached_property
    def paths(self) -> NDArray[np.int64]:
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
    def template(self) -> Array:
        """Return the covariance of the leaves in units of one person's (25)."""
        shares: Array = np.square(np.array(self.weights)) / self.sizes[self.paths]
        same = self.paths[:, None, :] == self.paths[None, :, :]
        covariance: Array = np.einsum("rl,rsl->rs", shares, same)
        return covariance

    @property
    def multiplier(self) -> float:
        """Return the variance of the leaves' mean in units of one person's (26): 1/n for equal segments."""
        return float(self.template.mean())

    @cached_property
    def whitener(self) -> Array:
        """Return the inverse of the template among deviations from the mean."""
        centring = np.eye(self.leaves) - 1.0 / self.leaves
        inverse = np.linalg.pinv(centring @ self.template @ centring, rcond=1e-10, hermitian=True)
        return np.asarray(inverse, dtype=np.float64)
