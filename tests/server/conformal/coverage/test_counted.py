"""Counts at one edge a site: exact distributions of sums, a promise that holds at the worst and is nearly reached."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.selection.geometric import difference_cdf, noisy_count
from sottovoce.server.conformal.coverage import counted
from sottovoce.server.conformal.coverage.counted import (
    Counters,
    EdgeSums,
    choose_counts,
    crowds_of,
    dealt,
    edges_for,
    sum_distribution,
)
from sottovoce.server.conformal.coverage.pooled import PooledChoice
from sottovoce.sim.randomness import dice


def exact(crowd: tuple[Counters, ...], tail: Fraction, threshold: int) -> float:
    """Return P(sum <= threshold) by adding up every count and every noise of an edge, in floats of exact terms."""
    chances: dict[int, float] = {0: 1.0}
    for number, size, votes, fall in crowd:
        one: Counter[int] = Counter()
        for count in range(size + 1):
            ways = math.comb(size, count) * float(tail) ** count * float(1 - tail) ** (size - count)
            for noise in range(-80, 81) if fall else (0,):
                one[votes * (count + noise)] += ways * ((1 - fall) / (1 + fall) * fall ** abs(noise) if fall else 1.0)  # type: ignore[assignment]
        for _ in range(number):
            grown: Counter[int] = Counter()
            for (a, p), (b, q) in itertools.product(chances.items(), one.items()):
                grown[a + b] += p * q  # type: ignore[assignment]
            chances = dict(grown)
    return sum(p for value, p in chances.items() if value <= threshold)


@pytest.mark.parametrize(
    "crowd",
    [
        (Counters(2, 5, 1, math.exp(-1.0)),),
        (Counters(1, 3, 1, 0.0), Counters(1, 6, 3, math.exp(-2.0))),
        (Counters(2, 1, 1, math.exp(-0.7)),),
    ],
)
def test_the_distribution_of_a_sum_is_exact(crowd: tuple[Counters, ...]) -> None:
    tails = (Fraction(0), Fraction(1, 10), Fraction(3, 7), Fraction(1))
    found = sum_distribution(crowd, np.array([float(tail) for tail in tails]))
    for row, tail in enumerate(tails):
        for threshold in (-9, -1, 0, 2, 5, 11):
            assert found.failure(threshold)[row] == pytest.approx(exact(crowd, tail, threshold), abs=1e-12)
    assert found.failure(found.first - 1).max() == 0
    assert found.failure(10**9).min() == pytest.approx(1.0, abs=1e-12)


def test_one_noisy_site_is_the_two_sided_geometric_distribution() -> None:
    noise = noisy_count(0.5)
    found = sum_distribution((Counters(1, 4, 1, noise.fall),), np.array([0.0]))
    for threshold in (-30, -3, 0, 7, 40):
        expected = float(difference_cdf(threshold, noise.numerator, noise.numerator))
        assert found.failure(threshold)[0] == pytest.approx(expected, abs=1e-13)


def coverage(choice: PooledChoice, sizes: list[int], levels: Floats) -> Floats:
    """Return the exact mean coverage at the levels of the edges, for many sets of levels."""
    passed = np.empty_like(levels)
    for edge, crowd in enumerate(crowds_of(sizes, choice)):
        passed[:, edge] = sum_distribution(crowd, 1 - levels[:, edge]).failure(choice.thresholds[edge])
    below = np.cumprod(passed[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(1 - np.sum(np.diff(levels, axis=1, append=1.0) * below, axis=1))


SITES = {
    "alike": ([20] * 24, [2.0] * 24, 6, 0.1),
    "more on some edges": ([20] * 20, [1.0] * 20, 6, 0.1),
    "sizes and budgets": ([3, 8, 20, 60, 20, 8, 3, 90, 20, 20], [0.5, 1, 2, 4, math.inf, 1, 3, 0.5, 2, 2], 4, 0.2),
    "single scores": ([1] * 300, [3.0] * 300, 5, 0.3),
    "one edge": ([200], [1.0], 1, 0.1),
}


@pytest.mark.parametrize("name", SITES)
def test_the_promise_holds_and_is_nearly_reached(name: str) -> None:
    sizes, epsilons, edges, alpha = SITES[name]
    choice = choose_counts(sizes, epsilons, edges, alpha)
    generator = dice(5).generator()
    tried = np.sort(generator.uniform(1 - 4 * alpha if alpha < 0.25 else 0.0, 1.0, (4_000, edges)), axis=1)
    found = coverage(choice, sizes, tried)
    worst, best = float(found.min()), tried[found.argmin()]
    # walk downhill from there: a bound that no distribution attains would be a loss
    for step in np.geomspace(0.1, 0.001, 40):
        tried = np.sort(np.clip(best + generator.normal(0.0, step, (200, edges)), 0.0, 1.0), axis=1)
        found = coverage(choice, sizes, tried)
        if found.min() < worst:
            worst, best = float(found.min()), tried[found.argmin()]
    assert choice.coverage >= 1 - alpha
    assert choice.coverage <= worst < choice.coverage + 0.004


@pytest.mark.parametrize("name", SITES)
def test_no_threshold_could_be_one_higher(name: str) -> None:
    sizes, epsilons, edges, alpha = SITES[name]
    choice = choose_counts(sizes, epsilons, edges, alpha)
    held = EdgeSums(crowds_of(sizes, choice), alpha)
    assert held.missed(choice.thresholds) <= alpha
    for edge in range(edges):
        higher = (*choice.thresholds[:edge], choice.thresholds[edge] + 1, *choice.thresholds[edge + 1 :])
        assert held.missed(higher) > alpha


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.3])
def test_a_conditional_promise_fails_no_more_often_than_allowed_at_any_edge(delta: float) -> None:
    sizes, epsilons = [20] * 30 + [45] * 10, [2.0] * 40
    choice = choose_counts(sizes, epsilons, 8, 0.1, "training-conditional", delta)
    failing = []
    for crowd, threshold in zip(crowds_of(sizes, choice), choice.thresholds, strict=True):
        at_alpha = sum_distribution(crowd, np.array([0.1]))
        failing.append(float(at_alpha.failure(threshold)[0]))
        assert float(at_alpha.failure(threshold + 1)[0]) > delta
    assert max(failing) <= delta
    assert choice.confidence == pytest.approx(1 - max(failing), abs=1e-12)
    # the worst for one calibration: one edge just below the level, all others at it or beyond the scores
    assert choice.infinite == pytest.approx(
        1 - float(sum_distribution(crowds_of(sizes, choice)[-1], np.array([0.0])).failure(choice.thresholds[-1])[0])
    )


def test_a_single_exact_site_is_split_conformal() -> None:
    # one site, one edge, no noise: the edge passes while at most as many lie above as a binomial allows
    choice = choose_counts([99], [math.inf], 1, 0.1)
    levels = np.linspace(0.0, 1.0, 100_001)
    missed = special.bdtr(choice.thresholds[0], 99, 1 - levels) * (1 - levels)
    assert missed.max() <= 0.1 < (special.bdtr(choice.thresholds[0] + 1, 99, 1 - levels) * (1 - levels)).max()
    assert choice.epsilons == (math.inf,)
    assert choice.numerators == (0,)


def test_votes_follow_what_a_count_tells() -> None:
    choice = choose_counts([20, 20, 20, 20], [0.2, 1.0, 4.0, math.inf], 1)
    assert choice.votes[0] < choice.votes[1] <= choice.votes[2] <= choice.votes[3]
    assert choose_counts([20, 20], [1.0, 1.0], 2).votes == (1, 1)
    # with noise that drowns its few scores, a count of a small site tells less than one of a large site
    small, large = choose_counts([5, 500], [0.5, 0.5], 1).votes
    assert small < large


def test_sites_are_dealt_evenly_and_by_the_study_alone() -> None:
    told = np.array([9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    one, two = dealt(told, 3, b"one"), dealt(told, 3, b"two")
    assert one == dealt(told, 3, b"one") != two
    for found in (one, two):
        heard = [sum(told[place] for place in range(9) if found[place] == edge) for edge in range(3)]
        assert sorted(heard) == [3.0, 3.0, 11.0]  # each edge has as many sites, so the large one's has more to go by
    # over many studies a site meets every edge equally often: chi-square, 1e-6
    meets = Counter(dealt(np.ones(10), 5, bytes([i, j]))[3] for i in range(60) for j in range(50))
    expected = 3_000 / 5
    assert sum((meets[edge] - expected) ** 2 / expected for edge in range(5)) < special.chdtri(4, 1e-6)


def test_as_many_edges_as_can_be_told_apart() -> None:
    assert edges_for([20] * 50, [2.0] * 50, 0.1) > edges_for([20] * 50, [1.0] * 50, 0.1) == counted.FEWEST
    assert edges_for([2_000] * 500, [1.0] * 500, 0.1) == counted.MOST
    assert edges_for([2_000] * 7, [1.0] * 7, 0.1) == 7


def test_noise_that_drowns_the_scores_is_refused() -> None:
    with pytest.raises(Infeasible, match=r"200 scores at 10 sites cannot give a finite set by counts"):
        choose_counts([20] * 10, [0.05] * 10, 8)


@pytest.mark.parametrize(("sizes", "epsilons", "edges"), [([20], [1.0], 2), ([], [], 1), ([20, 20], [1.0], 1)])
def test_no_study(sizes: list[int], epsilons: list[float], edges: int) -> None:
    with pytest.raises(BadInput, match="cannot count at"):
        choose_counts(sizes, epsilons, edges)
