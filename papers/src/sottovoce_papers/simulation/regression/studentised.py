"""Coverage and size of the paper's intervals and ellipsoids over many replications at once (sections 3.2 and 4.4)."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.groups import hotelling_value, student_value
from sottovoce.inference.regression.higrad import Tree

Hits = npt.NDArray[np.bool_]

LEVEL = 0.95
SCALAR = 6.7134  # the paper's own critical values of the self-normalised statistics, simulated by it,
VECTOR = {2: 103.584, 3: 174.998, 6: 464.956, 9: 864.991}  # by dimension
TREES = ((4, 4), (4, 8), (4, 4, 4))


class Covered(NamedTuple):
    """Whether the truth was held, and how large what held it is: one row per replication."""

    coordinates: Hits  # (replications, d)
    lengths: Floats
    dense: Hits
    dense_length: Floats
    ellipsoid: Hits
    volume: Floats
    deviations: Floats


def judged(deviations: Floats, covariances: Floats, scalar: float, vector: float) -> Covered:
    """Hold intervals and ellipsoids of many replications against the truth.

    Parameters
    ----------
    deviations
        Estimates less the truth, (replications, d).
    covariances
        Their estimated covariances, (replications, d, d).
    scalar, vector
        Critical values of the studentised statistic and of the quadratic form.

    Examples
    --------
    >>> found = judged(np.array([[1.0, 0.0]]), np.eye(2)[None], 2.0, 9.0)
    >>> found.coordinates.tolist(), found.lengths.tolist(), round(float(found.volume[0]) / math.pi, 9)
    ([[True, True]], [[4.0, 4.0]], 9.0)
    """
    d = deviations.shape[1]
    half = scalar * np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    along = scalar * np.sqrt(covariances.sum(axis=(1, 2)) / d)
    form = np.einsum("ri,ri->r", deviations, np.linalg.solve(covariances, deviations[:, :, None])[:, :, 0])
    ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
    size = np.exp(ball + 0.5 * (d * math.log(vector) + np.linalg.slogdet(covariances)[1]))
    return Covered(
        np.abs(deviations) <= half,
        2 * half,
        np.abs(deviations.sum(1)) / math.sqrt(d) <= along,
        2 * along,
        form <= vector,
        size,
        deviations,
    )


def self_normalised(deviations: Floats, normalisers: Floats, n: int) -> Covered:
    """Judge self-normalised inference from the averages and their self-normalisers (16)."""
    return judged(deviations, normalisers / n, SCALAR, VECTOR[deviations.shape[1]])


def groups(centres: Floats) -> Covered:
    """Judge divide-and-conquer from the groups' averages less the truth, (replications, groups, d)."""
    count, d = centres.shape[1:]
    middle = centres.mean(1)
    apart = centres - middle[:, None, :]
    spread = np.einsum("rgi,rgj->rij", apart, apart) / (count - 1)
    return judged(middle, spread / count, student_value(LEVEL, count - 1), hotelling_value(d, count, LEVEL))


def tree(plan: Tree, segments: Floats) -> Covered:
    """Judge a HiGrad tree from its segments' averages less the truth, (replications, nodes, d)."""
    d, count = segments.shape[2], plan.leaves
    leaves = np.einsum("l,rklj->rkj", np.array(plan.weights), segments[:, plan.paths, :])
    middle = leaves.mean(1)
    apart = leaves - middle[:, None, :]
    spread = np.einsum("rki,kl,rlj->rij", apart, plan.whitener, apart, optimize=True) / (count - 1)
    scalar, vector = student_value(LEVEL, count - 1), hotelling_value(d, count, LEVEL)
    return judged(middle, plan.multiplier * spread, scalar, vector)


def method_name(branching: tuple[int, ...]) -> str:
    """Return the paper's name of a tree.

    >>> method_name((4, 8))
    'HiGrad [4, 8]'
    """
    return f"HiGrad {list(branching)}"
