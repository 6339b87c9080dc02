import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.core.errors import BadInput
from sottovoce.inference.common import groups
from sottovoce.inference.regression.higrad import Tree, covariance, ellipsoid, interval, leaf_estimates, mean, p_value
from sottovoce.sim import dice

Array = NDArray[np.float64]
TREE = Tree((2, 3), 900)
SEGMENTS = np.array(
    [[0.1, 2.0], [0.3, 1.5], [-0.2, 2.2], [0.0, 1.0], [0.5, 2.5], [0.2, 1.8], [-0.4, 2.1], [0.6, 3.0], [0.1, 1.2]]
)


def test_leaves_are_weighted_paths_and_their_mean_is_everybodys() -> None:
    leaves = leaf_estimates(TREE, SEGMENTS)
    assert leaves[4] == pytest.approx((1 * SEGMENTS[0] + 2 * SEGMENTS[2] + 6 * SEGMENTS[7]) / 9)
    assert mean(TREE, SEGMENTS) == pytest.approx(SEGMENTS.mean(0))


def test_interval_is_equations_27_and_28() -> None:
    a = np.array([1.0, 0.5])
    chi = leaf_estimates(TREE, SEGMENTS) @ a
    apart = chi - chi.mean()
    centring = np.eye(6) - 1 / 6
    variance = apart @ np.linalg.pinv(centring @ TREE.template @ centring) @ apart / 5
    low, high = interval(TREE, SEGMENTS, a, 0.95)
    # t with 5 degrees of freedom: 2.570582.
    assert high - low == pytest.approx(2 * 2.5705818356 * math.sqrt(variance / 900), rel=1e-9)
    assert p_value(TREE, SEGMENTS, a, low) == pytest.approx(0.05)


def test_ellipsoid_is_equations_29_to_31() -> None:
    region = ellipsoid(TREE, SEGMENTS, 0.95)
    gap = np.array([0.2, -0.1])
    statistic = 900 * gap @ np.linalg.solve(covariance(TREE, SEGMENTS), gap)
    assert region.statistic(SEGMENTS.mean(0) + gap) == pytest.approx(statistic)
    assert region.radius2 == groups.hotelling_value(2, 6, 0.95)
    assert ellipsoid(TREE, SEGMENTS, 0.95, [[1.0, 0.5]]).interval([1.0]) == pytest.approx(
        interval(TREE, SEGMENTS, [1.0, 0.5], 0.95)
    )


def test_leaves_that_share_nothing_are_groups() -> None:
    # A root whose estimate is the groups' own mean says nothing new: the deviations are those of independent groups.
    tree = Tree((5,), 600)
    own = np.array([[1.0], [2.0], [4.0], [3.0], [7.0]])
    spread = covariance(tree, np.concatenate([[own.mean(0)], own]))
    assert spread / 100 == pytest.approx(groups.covariance(own))


@pytest.mark.parametrize("branching", [(4, 4), (2, 2, 2)])
def test_coverage_when_segments_are_independent(branching: tuple[int, ...]) -> None:
    # 1500 trees with the correlated noise of n people: 4.9 standard errors are a false alarm in 1e6.
    tree, runs, generator = Tree(branching, 1000), 1500, dice(31).generator()
    root = np.array([[2.0, 0.0], [1.5, 0.3]])
    held = [0, 0]
    for _ in range(runs):
        noise = generator.standard_normal((tree.nodes, 2)) @ root.T / np.sqrt(tree.sizes)[:, None]
        low, high = interval(tree, 1e6 + noise, [1.0, -1.0], 0.9)
        held[0] += low <= 0.0 <= high
        held[1] += ellipsoid(tree, 1e6 + noise, 0.9).contains([1e6, 1e6])
    for count in held:
        assert abs(count / runs - 0.9) < 4.9 * math.sqrt(0.9 * 0.1 / runs)


def test_location_costs_no_digits() -> None:
    assert covariance(TREE, SEGMENTS + 1e8) == pytest.approx(covariance(TREE, SEGMENTS), rel=1e-6)


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(BadInput, match="rank 1 of 2"):
        ellipsoid(TREE, SEGMENTS[:, [0, 0]], 0.95)
    with pytest.raises(BadInput, match="no variance"):
        interval(TREE, SEGMENTS, [0.0, 0.0], 0.95)
    with pytest.raises(BadInput, match="more than 2 groups, but there are 2"):
        ellipsoid(Tree((2,), 90), SEGMENTS[:3], 0.95)
    with pytest.raises(BadInput, match="9 rows"):
        mean(TREE, SEGMENTS[:8])
    with pytest.raises(BadInput, match="strictly between"):
        interval(TREE, SEGMENTS, [1.0, 0.0], 2.0)
