"""The inflation of a tree: against every person's influence on every leaf, and against the simulated coverages."""

import numpy as np
import pytest

from sottovoce.inference.regression import higrad
from sottovoce.inference.regression.higrad import Tree
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.server.regression.liu_hu.fit import inflation, tree_coverage, warnings
from sottovoce.server.regression.liu_hu.step import chains_of
from sottovoce.server.regression.study import LiuHuStudy


def study(tree: tuple[int, ...], scale: float) -> LiuHuStudy:
    one = np.ones((1, 1, 1))
    return LiuHuStudy(open_channel(0.5, 0), one, np.zeros((1, 1)), scale, inference="higrad", tree=tree)


@pytest.mark.parametrize(("branching", "n", "scale"), [((4, 4), 2100, 60.0), ((2, 3), 3600, 20.0), ((3,), 2000, 30.0)])
def test_every_influence_written_out(branching: tuple[int, ...], n: int, scale: float) -> None:
    """The recursion is linear here, so each person's noise can be followed to each segment's average."""
    slope, one, tree = 0.3, study(branching, scale), Tree(branching, n)
    chains = chains_of(one, n)
    points, sums = np.zeros((tree.nodes, n)), np.zeros((tree.nodes, n))
    for person in range(n):
        span = chains.at(person)
        if person == span.first and person > 0:
            begun = slice(span.chain, span.chain + span.width)
            points[begun] = points[chains.parents[begun]]
        chain, time = chains.deal(person, 1)
        step = float(one.steps(time)[0])
        points[chain[0]] *= 1 - step * slope
        points[chain[0], person] -= step
        sums[chain[0]] += points[chain[0]]
    segments = sums / tree.sizes[:, None]
    leaves = higrad.leaf_estimates(tree, segments)
    apart = leaves - leaves.mean(axis=0)
    told = np.trace(tree.whitener @ apart @ apart.T) / (tree.leaves - 1) * tree.multiplier
    assert inflation(one, tree, slope) == pytest.approx(np.sum(leaves.mean(axis=0) ** 2) / told, rel=0.03)


def test_long_segments_are_independent() -> None:
    found = [inflation(study((4, 4), 2.5), Tree((4, 4), n), 0.2) for n in (10**4, 10**5, 10**6, 10**7, 10**9)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("tree", "simulated"), [((4, 4), 0.925), ((4, 8), 0.89), ((4, 4, 4), 0.87)])
def test_the_coverages_of_the_notes(tree: tuple[int, ...], simulated: float) -> None:
    """Slopes at tau .5, p 2, epsilon 2 and a million people, simulated with an error of .014."""
    one = LiuHuStudy(open_channel(0.5, 2), np.eye(3)[None], np.zeros((1, 3)), 2.539, inference="higrad", tree=tree)
    chains = chains_of(one, 10**6)
    assert tree_coverage(one, chains, 0) == pytest.approx(simulated, abs=0.03)
    assert any("segments this short" in text for text in warnings(one, chains, 10**6)) == (simulated < 0.93)


def test_other_inferences_have_no_segments() -> None:
    one = LiuHuStudy(open_channel(0.5, 0), np.ones((1, 1, 1)), np.zeros((1, 1)), 1.0, inference="groups")
    assert tree_coverage(one, chains_of(one), 0) == 0.95
