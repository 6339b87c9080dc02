"""Many calibrations of one setting at once, seeded: their thresholds, and what each truly covers.

What is asked of the sites is decided by the code that ships (`server.conformal.plan`); only the answers are drawn here
for all calibrations together. A site that is not private draws uniform numbers, sorts out the orders it was asked for
and reads the distribution of the scores at them; a private one draws how many of its scores lie in each cell of the
public grid (multinomial counts) and selects a cell (`selections`).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.selection import Mechanism, selection
from sottovoce.server.conformal.coverage.choose import lower_neighbour
from sottovoce.server.conformal.plan import ConformalPlan, SiteFacts, plan
from sottovoce.server.conformal.settings import ConformalSettings
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.conformal.score_distributions import ScoreDistribution, score_distribution
from sottovoce_papers.simulation.conformal.selections import draw_cells
from sottovoce_papers.simulation.families import Generator

BLOCK = 1 << 22  # numbers held at once


@dataclass(frozen=True)
class Setting:
    """Sites and what is promised: sizes, budgets (infinite for none), the mechanism of the private ones, the rule."""

    sizes: tuple[int, ...]
    epsilons: tuple[float, ...] = ()
    mechanism: str | None = None
    bins: int = 100
    alpha: float = 0.1
    delta: float | None = None
    rule: str = "closest"
    statistics: int = 1
    exact: bool = False

    @property
    def facts(self) -> tuple[SiteFacts, ...]:
        """Return what is public of each site."""
        epsilons = self.epsilons or (math.inf,) * len(self.sizes)
        return tuple(SiteFacts(*fact) for fact in zip(self.sizes, epsilons, strict=True))

    @cached_property
    def plan(self) -> ConformalPlan:
        """Return what the shipped design asks of the sites."""
        guarantee = "marginal" if self.delta is None else "training-conditional"
        delta = 0.1 if self.delta is None else self.delta
        promised = self.alpha, guarantee, delta, self.rule
        settings = ConformalSettings(*promised, self.statistics, self.exact, self.mechanism)
        return plan(self.facts, settings, 0 if self.mechanism is None else self.bins + 1)


class Repeated(NamedTuple):
    """Thresholds and their true coverages, one a calibration."""

    thresholds: Floats
    coverages: Floats

    @property
    def mean(self) -> float:
        """Return the mean coverage."""
        return float(self.coverages.mean())

    @property
    def error(self) -> float:
        """Return the Monte-Carlo error of the mean coverage."""
        return self.spread / math.sqrt(len(self.coverages))

    @property
    def spread(self) -> float:
        """Return the standard deviation of the coverage over calibrations."""
        return float(self.coverages.std(ddof=1))

    @property
    def infinite(self) -> float:
        """Return the part of infinite thresholds."""
        return float(np.isinf(self.thresholds).mean())

    def part(self, level: float) -> float:
        """Return the part of the calibrations that cover at least a level."""
        return float(np.mean(self.coverages >= level))


def repeat(
    setting: Setting,
    replications: int,
    seed: int,
    distribution: ScoreDistribution | None = None,
    edges: Floats | None = None,
) -> Repeated:
    """Calibrate again and again.

    Parameters
    ----------
    setting
        The sites and the promise.
    replications
        How many calibrations.
    seed
        Where everything comes from.
    distribution
        The distribution of all scores; uniform unless given, which without privacy loses nothing.
    edges
        The public grid of private sites; the distribution's own unless given.

    Examples
    --------
    >>> found = repeat(Setting((100,) * 10), 2000, seed=1)
    >>> abs(found.mean - 0.902278) < 5 * found.error
    True
    """
    scores = score_distribution("uniform") if distribution is None else distribution
    line = scores.edges(setting.bins) if edges is None else edges
    generator, choice = dice(seed).generator(), setting.plan.choice
    ranks = np.full(replications, choice.rank)
    if setting.exact:
        lower = lower_neighbour(setting.plan.kinds, setting.plan.number, choice)
        chance = (1 - setting.alpha - lower.mean) / (choice.mean - lower.mean)
        ranks[generator.random(replications) >= chance] = lower.rank
    values: list[Floats] = []
    for fact, number, orders in zip(sorted(set(setting.facts)), setting.plan.number, choice.orders, strict=True):
        n = replications * number
        if setting.mechanism is None or math.isinf(fact.epsilon):
            said = _scores_of(scores, order_levels(fact.size, orders, n, generator))
        else:
            mechanism = selection(setting.mechanism, fact.size, orders[0], len(line) + 1, fact.epsilon)
            said = np.append(line, np.inf)[selected(mechanism, scores, line, n, generator)]
        values.append(said.reshape(replications, -1))
    votes = np.repeat(choice.votes, [said.shape[1] for said in values])
    thresholds = weighted_ranks(np.concatenate(values, axis=1), votes, ranks)
    return Repeated(thresholds, covered(scores, thresholds))


def federated(setting: Setting, scores: Floats) -> Floats:
    """Return the threshold of each calibration from its scores, (calibrations, sites, scores), without privacy.

    >>> federated(Setting((9, 9)), np.arange(36.0).reshape(2, 2, 9)).tolist()
    [17.0, 35.0]
    """
    choice = setting.plan.choice
    places = np.array(choice.orders[0]) - 1
    values = np.partition(scores, places)[..., places].reshape(len(scores), -1)
    votes = np.full(values.shape[1], choice.votes[0])
    return weighted_ranks(values, votes, np.full(len(scores), choice.rank))


def covered(distribution: ScoreDistribution, thresholds: Floats) -> Floats:
    """Return what thresholds cover, infinite ones too.

    >>> covered(score_distribution("uniform"), np.array([-np.inf, 0.25, np.inf])).tolist()
    [0.0, 0.25, 1.0]
    """
    finite = np.isfinite(thresholds)
    return np.where(finite, distribution.cdf(np.where(finite, thresholds, 0.0)), thresholds > 0)


def selected(
    mechanism: Mechanism, distribution: ScoreDistribution, edges: Floats, n: int, generator: Generator
) -> Ints:
    """Return the cells that n sites name, each with scores of its own."""
    chances = np.diff(distribution.cdf(edges), prepend=0.0, append=1.0)
    cells = [
        draw_cells(mechanism, generator.multinomial(mechanism.size, chances, count), generator)
        for count in _blocks(n, len(chances))
    ]
    return np.concatenate(cells)


def order_levels(size: int, orders: tuple[int, ...], n: int, generator: Generator) -> Floats:
    """Return order statistics of n sets of uniform scores, (n, orders); infinite beyond the size.

    >>> from sottovoce.sim import dice
    >>> order_levels(3, (3, 4), 1, dice(1).generator())[0].tolist()[1]
    inf
    """
    held = np.array(orders) <= size
    found = np.full((n, len(orders)), np.inf)
    places = np.array(orders)[held] - 1
    if len(places):
        parts = [np.partition(generator.random((count, size)), places)[:, places] for count in _blocks(n, size)]
        found[:, held] = np.concatenate(parts)
    return found


def weighted_ranks(values: Floats, votes: Ints, ranks: Ints) -> Floats:
    """Return the smallest value of each row with at least as many votes at or below it as its rank.

    >>> weighted_ranks(np.array([[3.0, 1.0, 2.0]] * 2), np.array([1, 1, 5]), np.array([6, 0])).tolist()
    [2.0, -inf]
    """
    order = np.argsort(values, axis=1, kind="stable")
    place = np.argmax(np.cumsum(votes[order], axis=1) >= ranks[:, None], axis=1)
    rows = np.arange(len(values))
    return np.where(ranks < 1, -np.inf, values[rows, order[rows, place]])


def _scores_of(distribution: ScoreDistribution, levels: Floats) -> Floats:
    """Return the scores of some levels, infinite where these are."""
    return np.where(np.isinf(levels), np.inf, distribution.quantile(np.minimum(levels, 1.0)))


def _blocks(n: int, width: int) -> list[int]:
    """Cut n rows into blocks that fit in memory."""
    most = max(BLOCK // width, 1)
    return [min(most, n - start) for start in range(0, n, most)]
