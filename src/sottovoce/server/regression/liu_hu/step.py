"""The paper's recursion message by message: what a person is asked, and what their report does (Algorithm 1).

People are dealt in turn to chains of points. Self-normalised inference has one chain, groups have one each, and a
HiGrad tree has one for each of its segments, dealt out one level of the tree after another; point and step time
continue from the parent.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit
from sottovoce.inference.regression import vector_normalised
from sottovoce.inference.regression.higrad import Tree
from sottovoce.inference.regression.vector_normalised import VectorMemory
from sottovoce.protocol.regression.decode import decode
from sottovoce.protocol.regression.questions import choose
from sottovoce.server.regression.study import LiuHuStudy, LiuHuTerms

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

    >>> from sottovoce.protocol.regression.blocks import open_channel
    >>> from sottovoce.server.regression.study import LiuHuStudy
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


class LiuHuState(NamedTuple):
    """People so far, each chain's point, and its sum of points less the start or what self-normalisation remembers."""

    people: int
    points: Floats  # (chains, levels, d)
    totals: Floats  # (chains, levels, d): zero where there is a memory
    memories: tuple[VectorMemory, ...]  # one a level; none for several chains


class ChainQuery(NamedTuple):
    """What one person is asked: a block of slopes at a chain's points; the step is the server's own."""

    chain: int
    points: Floats
    block: int
    chosen: Ints
    step: float


def init(study: LiuHuStudy, chains: RegressionChains) -> LiuHuState:
    """Return the state before the first person."""
    points = np.repeat(study.start[None].astype(np.float64), len(chains.parents), axis=0)
    count = study.levels if study.inference == "self-normalised" else 0
    memories = tuple(vector_normalised.init(study.d) for _ in range(count))
    return LiuHuState(0, points, np.zeros_like(points), memories)


def query(study: LiuHuStudy, chains: RegressionChains, state: LiuHuState, word: np.uint64) -> ChainQuery:
    """Return what the next person is asked, given their public word."""
    chain, times = chains.deal(state.people, 1)
    chosen = np.zeros(max(study.channel.p, 1), dtype=np.int64)
    with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
        block = choose(study.tables.upto, study.tables.plan, study.channel.p, word, chosen)
    at = int(chain[0])
    point = inherited(chains, state.people, state.points)[at]
    return ChainQuery(at, point.copy(), int(block), chosen, float(study.steps(times)[0]))


def step(
    study: LiuHuStudy, chains: RegressionChains, state: LiuHuState, asked: ChainQuery, report: int | Floats
) -> LiuHuState:
    """Return the state after a report: a letter or, without a channel, the exact score (levels, d)."""
    index, values = np.arange(study.d), np.zeros((study.levels, study.d))
    if isinstance(report, np.ndarray):
        found, values = study.d, report
    else:
        tables = study.tables
        found = decode(
            tables.plan, tables.score, tables.read, tables.matrix, tables.radius,
            asked.block, asked.chosen, report, index, values,
        )  # fmt: skip
    points, totals = inherited(chains, state.people, state.points).copy(), state.totals.copy()
    low, high = study.bounds
    move(points, asked.chain, asked.step, found, index, values, low, high)
    if not state.memories:
        totals[asked.chain] += points[asked.chain] - study.start
    seen = (vector_normalised.look(m, p) for m, p in zip(state.memories, points[asked.chain], strict=False))
    return LiuHuState(state.people + 1, points, totals, tuple(seen))


def inherited(chains: RegressionChains, people: int, points: Floats) -> Floats:
    """Return the points of all chains before a person, those that begin there having taken their parents'."""
    dealt = chains.at(people)
    if people != dealt.first or people == 0:
        return points
    begun = slice(dealt.chain, dealt.chain + dealt.width)
    after = points.copy()
    after[begun] = points[chains.parents[begun]]
    return after


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def move(
    points: Floats, at: int, step: float, found: int, index: Ints, values: Floats, low: Floats, high: Floats
) -> None:
    """Take one step of a chain against the decoded gradient, and project it, in place."""
    # (5) of Algorithm 1: only the coordinates that the letter spoke of move, each back into its interval
    for level in range(points.shape[1]):
        for a in range(found):
            j = index[a]
            here = points[at, level, j] - step * values[level, a]
            points[at, level, j] = min(max(here, low[level, j]), high[level, j])
