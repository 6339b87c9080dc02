import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.higrad import Tree

TREES = [(4, 4), (4, 8), (4, 4, 4)]


@pytest.mark.parametrize(
    ("branching", "counts", "weights"),
    [
        ((4, 4), (1, 4, 16), (0.0476, 0.1905, 0.7619)),
        ((4, 8), (1, 4, 32), (0.0270, 0.1081, 0.8649)),
        ((4, 4, 4), (1, 4, 16, 64), (0.0118, 0.0471, 0.1882, 0.7529)),
    ],
)
def test_trees_of_table_11(branching: tuple[int, ...], counts: tuple[int, ...], weights: tuple[float, ...]) -> None:
    tree = Tree(branching, 3 * 10**8)
    assert tree.node_counts == counts
    assert tree.weights == pytest.approx(weights, abs=5e-5)
    assert sum(tree.weights) == pytest.approx(1.0)


def test_nodes_and_their_parents() -> None:
    tree = Tree((2, 3), 90)
    assert tree.parents.tolist() == [-1, 0, 0, 1, 1, 1, 2, 2, 2]
    assert tree.paths.tolist() == [[0, 1, 3], [0, 1, 4], [0, 1, 5], [0, 2, 6], [0, 2, 7], [0, 2, 8]]


@pytest.mark.parametrize("n", [21, 2100, 2101, 2115])
def test_everybody_has_one_segment(n: int) -> None:
    tree = Tree((4, 4), n)
    assert tree.sizes.sum() == n
    assert np.ptp(tree.sizes) <= 1
    assert tree.spans[0][0] == 0
    assert tree.spans[-1][1] == tree.sizes[tree.paths[0]].sum()


@pytest.mark.parametrize("branching", TREES)
def test_the_mean_of_equal_segments_has_the_variance_of_everybody(branching: tuple[int, ...]) -> None:
    tree = Tree(branching, 85 * 37 * 21 * 10)
    assert tree.multiplier == pytest.approx(1 / tree.n)
    assert tree.template.sum(1) == pytest.approx(np.full(tree.leaves, tree.template[0].sum()))


@pytest.mark.parametrize("branching", TREES)
def test_the_template_is_the_covariance_of_weighted_segments(branching: tuple[int, ...]) -> None:
    tree = Tree(branching, 5000)
    mixing = np.zeros((tree.leaves, tree.nodes))
    for level, weight in enumerate(tree.weights):
        mixing[np.arange(tree.leaves), tree.paths[:, level]] = weight
    assert tree.template == pytest.approx(mixing @ np.diag(1.0 / tree.sizes) @ mixing.T)


@pytest.mark.parametrize("branching", TREES)
def test_the_whitener_inverts_the_template_among_deviations(branching: tuple[int, ...]) -> None:
    tree = Tree(branching, 5000)
    centring = np.eye(tree.leaves) - 1.0 / tree.leaves
    assert tree.whitener @ centring @ tree.template @ centring == pytest.approx(centring, abs=1e-9)
    assert tree.whitener @ np.ones(tree.leaves) == pytest.approx(np.zeros(tree.leaves), abs=1e-6)


@pytest.mark.parametrize("branching", [(), (0,), (1,), (1, 1), (2, -2), (2.5,)])
def test_trees_without_two_leaves_are_refused(branching: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="at least two leaves"):
        Tree(branching, 1000)


def test_too_few_people_are_refused() -> None:
    with pytest.raises(BadInput, match="21 segments"):
        Tree((4, 4), 20)
