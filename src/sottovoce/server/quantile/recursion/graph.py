"""Averaging without a server: each site mixes its point with its neighbours' (section C of Cai, Hu and Wu).

The paper prints the mixing weight of neighbour ``j`` as ``w_kj p_j`` with a doubly stochastic ``w``. Its rows then sum
to ``1 / K`` instead of one, so every round divides all points by ``K`` and the estimate is 0 whatever the data. What
is needed is a matrix ``W`` whose rows sum to one and which keeps the weighted average, ``p' W = p'``: the weights of
Metropolis and Hastings (1970) with target ``p``.
"""

from typing import cast

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput


def ring(n: int) -> npt.NDArray[np.bool_]:
    """Return the neighbours on a circle of sites.

    Examples
    --------
    >>> ring(4).astype(int).tolist()
    [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    """
    if n < 2:
        raise BadInput(f"a ring needs at least two sites, not {n!r}; use averaging by the server.")
    place = np.arange(n)
    adjacency = np.zeros((n, n), dtype=np.bool_)
    adjacency[place, (place + 1) % n] = adjacency[(place + 1) % n, place] = True
    return adjacency


def metropolis(adjacency: npt.ArrayLike, shares: npt.ArrayLike) -> Floats:
    """Return the mixing matrix of a graph that keeps the average weighted by the shares.

    Parameters
    ----------
    adjacency
        Who talks to whom: symmetric, connected, (sites, sites).
    shares
        The sites' weights in the estimand.

    Examples
    --------
    >>> mixing = metropolis(ring(4), [0.1, 0.2, 0.3, 0.4])
    >>> mixing.sum(axis=1).round(12).tolist(), (np.array([0.1, 0.2, 0.3, 0.4]) @ mixing).round(12).tolist()
    ([1.0, 1.0, 1.0, 1.0], [0.1, 0.2, 0.3, 0.4])
    """
    links = _checked(adjacency)
    weights = np.asarray(shares, dtype=np.float64)
    if weights.shape != (len(links),) or not np.all(weights > 0):
        raise BadInput(f"shares must be {len(links)} positive numbers, one a site; correct them.")
    degree = links.sum(axis=1)
    # propose a neighbour (or oneself) evenly, accept with the ratio of target times proposal
    flow = weights / (degree + 1)
    mixing = np.where(links, np.minimum(flow[:, None], flow[None, :]) / weights[:, None], 0.0)
    mixing[np.diag_indices(len(links))] = 1 - mixing.sum(axis=1)
    return cast(Floats, mixing)


def _checked(adjacency: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Refuse what is not a connected graph."""
    links = np.array(adjacency, dtype=np.bool_)
    if links.ndim != 2 or links.shape[0] != links.shape[1]:
        raise BadInput(f"the graph must be a square matrix, not of shape {links.shape}; give one row a site.")
    np.fill_diagonal(links, False)
    if not np.array_equal(links, links.T):
        raise BadInput("the graph is not symmetric: each site must hear the sites that hear it; add the missing links.")
    reached = np.zeros(len(links), dtype=np.bool_)
    reached[0] = True
    while True:
        wider = reached | links[reached].any(axis=0)
        if np.array_equal(wider, reached):
            break
        reached = wider
    if not reached.all():
        raise BadInput(f"{int((~reached).sum())} sites of the graph cannot be reached from the first; link them.")
    return links
