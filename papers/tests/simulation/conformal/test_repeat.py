"""Many calibrations at once: the exact moments of the design, and the distribution of the path that ships."""

import math

import numpy as np
import pytest
from scipy.special import chdtri

from sottovoce.client.conformal.site import CalibrationSite
from sottovoce.client.door import Door
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.local.runner import run
from sottovoce.server.conformal.coverage.choose import survival
from sottovoce.server.conformal.plan import Participants
from sottovoce.server.conformal.votes import VotesMethod, weighted_rank
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.agreement import against_each_other
from sottovoce_papers.simulation.conformal.repeat import (
    Setting,
    covered,
    federated,
    order_levels,
    repeat,
    weighted_ranks,
)
from sottovoce_papers.simulation.conformal.score_distributions import ScoreDistribution, score_distribution

FALSE_ALARM, ERRORS = 1e-6, 4.9


@pytest.mark.parametrize(
    "setting",
    [
        Setting((30,) * 6),
        Setting((30,) * 6, rule="paper"),
        Setting((30,) * 6, statistics=3),
        Setting((5, 5, 20, 80, 80)),
        Setting((30,) * 6, delta=0.2),
    ],
)
def test_coverage_has_the_distribution_of_the_design(setting: Setting) -> None:
    found, choice = repeat(setting, 20_000, seed=3), setting.plan.choice
    assert abs(found.mean - choice.mean) < ERRORS * found.error
    assert abs(found.spread / choice.sd - 1) < ERRORS * 1.5 / math.sqrt(2 * 20_000)
    level = 0.9
    chance = float(survival(setting.plan.kinds, setting.plan.number, choice, np.array([level]))[0])
    assert abs(found.part(level) - chance) < ERRORS * math.sqrt(chance * (1 - chance) / 20_000)


def test_randomised_ranks_cover_exactly() -> None:
    plain, exact = (repeat(Setting((20,) * 5, exact=each), 40_000, seed=4) for each in (False, True))
    assert abs(exact.mean - 0.9) < ERRORS * exact.error
    assert plain.mean > 0.9 + ERRORS * plain.error


def shipped(
    setting: Setting, distribution: ScoreDistribution, edges: Floats, replications: int, seed: int
) -> list[float]:
    """Calibrate one by one through the sites and the server that ship."""
    scores, source = dice(seed).generator(), dice(seed + 1)
    who = Participants(tuple(f"site {i}" for i in range(len(setting.facts))), setting.facts)
    method = VotesMethod(setting.plan, who, () if setting.mechanism is None else tuple(edges.tolist()))
    found = []
    for _ in range(replications):
        sites = [
            CalibrationSite(Records(distribution.quantile(scores.random(fact.size))), fact.epsilon, own)
            for fact, own in zip(setting.facts, source.split(len(setting.facts)), strict=True)
        ]
        found.append(run(method, [Door(site, b"") for site in sites]).value)
    return found


@pytest.mark.parametrize("mechanism", ["sparse-vector", "exponential", "paper"])
def test_thresholds_have_the_distribution_of_the_path_that_ships(mechanism: str) -> None:
    distribution = score_distribution("rounded exponential")
    edges = distribution.edges(12, end=4.0)
    sizes, epsilons = ((60, 40, 60), (3.0, 2.0, 1.5)) if mechanism != "paper" else ((60,) * 3, (8.0,) * 3)
    setting = Setting(sizes, epsilons, mechanism, bins=12)
    fast = repeat(setting, 20_000, 5, distribution, edges).thresholds
    slow = shipped(setting, distribution, edges, 800, seed=6)
    statistic, freedom = against_each_other(*_counts(fast, slow))
    assert freedom >= 2
    assert statistic < chdtri(freedom, FALSE_ALARM)
    other = repeat(setting, 20_000, 5, score_distribution("half-normal"), edges).thresholds
    statistic, freedom = against_each_other(*_counts(other, slow))
    assert statistic > chdtri(freedom, FALSE_ALARM)


def test_open_sites_beside_private_ones() -> None:
    distribution = score_distribution("ten values")
    edges = distribution.edges(20, end=1.0)
    setting = Setting((30, 60, 60), (math.inf, 2.0, 2.0), "sparse-vector", bins=20)
    fast = repeat(setting, 20_000, 7, distribution, edges).thresholds
    slow = shipped(setting, distribution, edges, 700, seed=8)
    statistic, freedom = against_each_other(*_counts(fast, slow))
    assert freedom >= 1
    assert statistic < chdtri(freedom, FALSE_ALARM)


def _counts(fast: Floats, slow: list[float]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    """Count how often each threshold was found by either path."""
    both = np.concatenate([fast, slow]).round(9)
    places = np.unique(both, return_inverse=True)[1]
    size = int(places.max()) + 1
    return np.bincount(places[: len(fast)], minlength=size), np.bincount(places[len(fast) :], minlength=size)


def test_ranks_equal_those_of_the_server() -> None:
    source = dice(9).generator()
    values, votes, ranks = source.integers(0, 6, (300, 7)) / 2, source.integers(1, 5, 7), source.integers(1, 8, 300)
    values[::9, 2] = np.inf
    found = weighted_ranks(values, votes, ranks)
    assert found.tolist() == [weighted_rank(row, votes, int(rank)) for row, rank in zip(values, ranks, strict=True)]


def test_given_scores_give_the_thresholds_of_the_plan() -> None:
    setting = Setting((30,) * 4, statistics=2)
    scores = dice(10).generator().random((50, 4, 30))
    choice = setting.plan.choice
    for threshold, sites in zip(federated(setting, scores), scores, strict=True):
        values = np.sort(sites, axis=1)[:, np.array(choice.orders[0]) - 1].ravel()
        assert threshold == np.sort(values)[choice.rank - 1]


def test_orders_beyond_a_site_are_infinite_and_cover_everything() -> None:
    levels = order_levels(4, (2, 5), 9, dice(1).generator())
    assert np.isfinite(levels[:, 0]).all()
    assert np.isinf(levels[:, 1]).all()
    assert covered(score_distribution("t3"), np.array([np.inf, -np.inf])).tolist() == [1.0, 0.0]
