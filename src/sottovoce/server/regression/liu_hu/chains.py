"""Who walks with whom: the chains of points that people are dealt to in turn, and what a chain continues from.

Self-normalised inference has one chain, groups have one each, and a HiGrad tree has one for each of its segments, dealt
out one level of the tree after another; point and step time continue from the parent.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.higrad import Tree
from sottovoce.server.regression.liu_hu.study import LiuHuTerms

ENDLESS = 1 << 62


class ChainSpan(NamedTuple):
    """People from ``first`` to before ``stop`` are dealt in turn to ``width`` chains from ``chain`` on."""

    first: int
    stop: int
    chain: int
    width: int
    turn: int  # which of them comes first: the last ones take what does not divide


class RegressionChains(NamedTuple):
    """Every span; for each chain, its parent (-1: none) and its step time before its first person."""

    spans: tuple[ChainSpan, ...]
    parents: Ints
    born: Ints
    tree: Tree | None = None

    def at(self, person: int) -> ChainSpan:
        """Return the span that a person belongs to, counted from 0."""
        return next(span for span in self.spans if person < span.stop)

    def deal(self, person: int, n: int) -> tuple[Ints, Ints]:
        """Return the chains and step times of ``n`` people of one span, from ``person`` on."""
        span = self.at(person)
        dealt = np.arange(person - span.first, person - span.first + n)
        if span.width == 1:
            return np.full(n, span.chain), int(self.born[span.chain]) + dealt + 1
        rounds, turns = np.divmod(dealt, span.width)
        chains = span.chain + (turns + span.turn) % span.width
        return chains, self.born[chains] + rounds + 1

    def counts(self, people: int) -> Ints:
        """Return how many of the first ``people`` each chain had."""
        found = np.zeros(len(self.parents), dtype=np.int64)
        for span in self.spans:
            dealt = min(max(people - span.first, 0), span.stop - span.first)
            waits = (np.arange(span.width) - span.turn) % span.width
            found[span.chain : span.chain + span.width] = (dealt - waits + span.width - 1) // span.width
        return found


def chains_of(study: LiuHuTerms, people: int | None = None) -> RegressionChains:
    """Return the chains of a study; a tree has to know how many people there will be.

    Examples
    --------
    >>> from sottovoce.protocol.regression.blocks import open_channel
    >>> from sottovoce.server.regression.liu_hu.study import LiuHuStudy
    >>> study = LiuHuStudy(open_channel(0.5, 1), np.eye(2)[None], np.zeros((1, 2)), 1.0, inference="higrad", tree=(2,))
    >>> [span[:4] for span in chains_of(study, 9).spans]
    [(0, 3, 0, 1), (3, 9, 1, 2)]
    """
    if study.inference != "higrad":
        count = study.chains if study.inference == "groups" else 1
        none = np.full(count, -1, dtype=np.int64)
        return RegressionChains((ChainSpan(0, ENDLESS, 0, count, 0),), none, np.zeros(count, dtype=np.int64))
    if people is None:
        raise BadInput(
            "higrad needs to know the number of people before the first is asked; use fit, or another inference."
        )
    tree = Tree(study.tree, people)
    born = np.zeros(tree.nodes, dtype=np.int64)
    born[1:] = tree.sizes[tree.parents[1:]]
    spans, chain, first = [], 0, 0
    for count in tree.node_counts:
        level = slice(chain, chain + count)
        if chain:
            born[level] += born[tree.parents[level]]
        dealt = int(tree.sizes[level].sum())
        spans.append(ChainSpan(first, first + dealt, chain, count, -dealt % count))
        first, chain = first + dealt, chain + count
    return RegressionChains(tuple(spans), tree.parents, born, tree)
