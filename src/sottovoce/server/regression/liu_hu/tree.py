r"""What it costs a HiGrad tree that children continue from their parent's point: leaves share more than it says.

Linearised, a person asked at step time t of a path moves every later point of it, so a leaf by ``influence_t = eta_t
sum_{s >= t} weight_s exp(-h (S_s - S_t))`` times their noise, with ``S`` the sum of the steps and ``weight_s`` that of
a point in the leaf's estimate. Deep in a segment this is ``weight / h``, the template (25); but the last people of a
segment live on in all of its children. Leaves then have covariance ``sum_l V_l 1{same node at level l}``, ``V_l`` the
sum of squared influences over level l, and the mean of the leaves a larger variance than their spread tells. At a
million people this is most of what the slopes' intervals lack: simulated coverages .925, .89 and .87 (tau
.5, trees 4-4, 4-8 and 4-4-4) are .92, .88 and .86 by it, and .85, .72 and .70 (tau .75) are .86, .74 and .71.
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.regression.higrad import Tree
from sottovoce.server.regression.liu_hu.study import LiuHuStudy

CELLS = 300  # of a segment


def inflation(study: LiuHuStudy, tree: Tree, slope: float) -> float:
    """Return the variance of the leaves' mean relative to what the tree's interval expects of it.

    Parameters
    ----------
    study
        Its steps are the recursion's.
    tree
        The tree.
    slope
        Slope of the mean score along a coefficient.

    Examples
    --------
    >>> from sottovoce.protocol.regression.blocks import open_channel
    >>> study = LiuHuStudy(open_channel(0.5, 0), np.ones((1, 1, 1)), np.zeros((1, 1)), 2.5)
    >>> [round(inflation(study, Tree((4, 4), n), 0.2), 1) for n in (10**5, 10**6, 10**8)]
    [2.0, 1.2, 1.0]
    """
    variances = _variances(study, tree, slope)
    same = tree.paths[:, None, :] == tree.paths[None, :, :]
    leaves = np.einsum("l,rsl->rs", variances, same)
    told = float(np.sum(tree.whitener * leaves)) / (tree.leaves - 1)
    return float(leaves.mean()) / (told * tree.multiplier)


def _variances(study: LiuHuStudy, tree: Tree, slope: float) -> Floats:
    """Return V_l of each level, for noise of variance 1."""
    found = np.zeros(len(tree.weights))
    after = 0.0  # what a unit of the point at the end of a cell still moves of the leaf
    for level in range(len(found) - 1, -1, -1):
        (start, stop), share = tree.spans[level], tree.weights[level]
        cell = (stop - start) / CELLS
        for k in range(CELLS - 1, -1, -1):
            step = study.scale / ((start + (k + 0.5) * cell) ** study.power + study.offset)
            fading = math.exp(-slope * step * cell)
            after = share / (stop - start) * (1 - fading) / (slope * step) + fading * after
            found[level] += cell * (step * after) ** 2
    return found
