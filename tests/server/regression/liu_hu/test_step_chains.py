"""Chains: everybody is dealt once, sizes are those of the groups or of the tree, and step time continues."""

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.higrad import Tree
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.server.regression.liu_hu.step import RegressionChains, chains_of
from sottovoce.server.regression.study import LiuHuStudy


def chains(
    inference: str, people: int | None = None, groups: int = 0, tree: tuple[int, ...] = (4, 4)
) -> RegressionChains:
    study = LiuHuStudy(
        open_channel(0.5, 1), np.eye(2)[None], np.zeros((1, 2)), 1.0, inference=inference, groups=groups, tree=tree
    )
    return chains_of(study, people)


def dealt(found: RegressionChains, n: int) -> tuple[list[int], list[int]]:
    pairs = [found.deal(person, 1) for person in range(n)]
    return [int(chain[0]) for chain, _ in pairs], [int(time[0]) for _, time in pairs]


def test_one_chain_takes_everybody() -> None:
    assert dealt(chains("self-normalised"), 4) == ([0, 0, 0, 0], [1, 2, 3, 4])


def test_groups_take_turns_each_in_its_own_time() -> None:
    found = chains("groups", groups=3)
    assert dealt(found, 7) == ([0, 1, 2, 0, 1, 2, 0], [1, 1, 1, 2, 2, 2, 3])
    assert [found.counts(n).tolist() for n in (0, 2, 7)] == [[0, 0, 0], [1, 1, 0], [3, 2, 2]]


@pytest.mark.parametrize("tree", [(2,), (4, 4), (2, 1, 3)])
@pytest.mark.parametrize("people", [100, 101, 117, 118, 120])
def test_a_tree_deals_its_segments_and_continues_their_parents(tree: tuple[int, ...], people: int) -> None:
    plan, found = Tree(tree, people), chains("higrad", people, tree=tree)
    order, times = dealt(found, people)
    assert np.bincount(order, minlength=plan.nodes).tolist() == plan.sizes.tolist() == found.counts(people).tolist()
    for node, parent in enumerate(plan.parents):
        own = [time for chain, time in zip(order, times, strict=True) if chain == node]
        before = [time for chain, time in zip(order, times, strict=True) if chain == parent]
        first = max(before, default=0) + 1
        assert own == list(range(first, first + len(own)))
        if parent >= 0:
            assert max(i for i, c in enumerate(order) if c == parent) < order.index(node)
    assert [found.counts(n).sum() for n in range(people)] == list(range(people))


@pytest.mark.parametrize("inference", ["self-normalised", "groups", "higrad"])
def test_dealing_many_is_dealing_one_by_one(inference: str) -> None:
    found = chains(inference, 100, groups=7)
    for span in found.spans:
        n = min(span.stop, 100) - span.first
        for skip in (0, 1, 5):
            many = found.deal(span.first + skip, n - skip) if skip < n else None
            for i in range(n - skip if many is not None else 0):
                one = found.deal(span.first + skip + i, 1)
                assert many is not None
                assert (int(many[0][i]), int(many[1][i])) == (int(one[0][0]), int(one[1][0]))


def test_a_tree_must_know_its_people() -> None:
    with pytest.raises(BadInput, match="higrad needs to know the number of people"):
        chains("higrad")
    with pytest.raises(BadInput, match="at least 21 people"):
        chains("higrad", 20)
