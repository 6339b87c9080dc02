"""Private thresholds at the worst laws that can be found: every count of every site weighed, nothing simulated.

The scores enter a selection through the levels q_1 <= ... <= q_B of the edges alone: ties, atoms on edges and a grid
that does not cover them are all of this kind. For each the exact chance of every answer gives the exact mean coverage,
the chance that one calibration covers enough, and the chance of an infinite set. A search then looks for levels at
which a promise breaks.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.protocol.selection import selection
from sottovoce.server.conformal.coverage.choose import infinite, survival
from sottovoce.server.conformal.plan import ConformalPlan, SiteFacts, plan
from sottovoce.server.conformal.settings import ConformalSettings, check_settings
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
SLACK = 1e-9


def settings_of(alpha: float, mechanism: str, conditional: bool = False, rule: str = "closest") -> ConformalSettings:
    guarantee = "training-conditional" if conditional else "marginal"
    return check_settings(alpha, guarantee, 0.2, rule, 1, False, mechanism, True)


def shares(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to put scores into cells."""
    if cells == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in shares(total - first, cells - 1):
            yield (first, *rest)


@functools.lru_cache(maxsize=64)
def every_law(mechanism: str, size: int, order: int, cells: int, epsilon: float) -> tuple[Floats, Floats, Floats]:
    """Return all counts, in how many ways each comes about, and the law of the answer at each."""
    counts = np.array(list(shares(size, cells)))
    ways = np.array([math.factorial(size) / math.prod(map(math.factorial, row)) for row in counts.tolist()])
    if math.isinf(epsilon):
        last = np.cumsum(counts, axis=1) >= order
        return counts, ways, np.diff(last.astype(float), axis=1, prepend=0.0)
    made = selection(mechanism, size, order, cells, epsilon)
    return counts, ways, np.array([made.distribution(row) for row in counts])


def answers(facts: list[SiteFacts], made: ConformalPlan, mechanism: str, levels: Floats) -> Floats:
    """Return the chance of every cell to be the threshold."""
    cells = len(levels) + 1
    mass = np.diff(np.concatenate([[0.0], levels, [1.0]]))
    total = sum(made.votes)
    # votes at or below each cell, site after site: law[cell, votes]
    distribution = np.zeros((cells, total + 1))
    distribution[:, 0] = 1.0
    for fact, (order,), votes in zip(facts, made.orders, made.votes, strict=True):
        counts, ways, distributions = every_law(mechanism, fact.size, order, cells, fact.epsilon)
        chance = (ways * np.prod(mass**counts, axis=1)) @ distributions
        reached = np.cumsum(chance)[:, None]
        shifted = np.zeros_like(distribution)
        shifted[:, votes:] = distribution[:, : total + 1 - votes]
        distribution = (1 - reached) * distribution + reached * shifted
    at_most = distribution[:, made.choice.rank :].sum(axis=1)  # as many votes as the rank at or below the cell
    return np.diff(at_most, prepend=0.0)


def worst_found(judge: Callable[[Floats], float], bins: int, seed: int, tries: int) -> float:
    """Return the smallest value of a promise over levels: random ones, each followed downhill."""
    source, least = dice(seed).generator(), math.inf
    for attempt in range(tries):
        levels = np.sort(source.random(bins) ** source.choice([0.2, 1.0, 3.0]))
        if attempt % 3 == 0:
            levels[source.integers(bins) :] = 1.0  # the grid covers all scores
        value, step = judge(levels), 0.2
        for _ in range(40):
            moved = np.sort(np.clip(levels + step * source.normal(size=bins) * (source.random(bins) < 0.6), 0.0, 1.0))
            found = judge(moved)
            if found < value:
                levels, value = moved, found
            else:
                step *= 0.93
        least = min(least, value)
    return least


CASES: dict[str, tuple[list[SiteFacts], str, float]] = {
    "one site": ([SiteFacts(25, 3.0)], "sparse-vector", 0.2),
    "tiny sites": ([SiteFacts(3, 2.0)] * 5, "sparse-vector", 0.3),
    "half": ([SiteFacts(12, 1.0)] * 3, "sparse-vector", 0.5),
    "unequal": ([SiteFacts(4, 1.0), SiteFacts(20, 1.0), SiteFacts(9, 1.0)], "sparse-vector", 0.2),
    "budgets": ([SiteFacts(12, 0.3), SiteFacts(12, 6.0), SiteFacts(12, 1.0)], "sparse-vector", 0.2),
    "mixed": ([SiteFacts(10, 1.0), SiteFacts(16, math.inf), SiteFacts(5, math.inf)], "sparse-vector", 0.2),
    "large budget": ([SiteFacts(20, 60.0)] * 2, "sparse-vector", 0.1),
    "exponential": ([SiteFacts(20, 4.0)] * 2, "exponential", 0.3),
    "exponential, unequal": ([SiteFacts(8, 5.0), SiteFacts(24, 2.0)], "exponential", 0.3),
    "exponential, one site": ([SiteFacts(22, 2.0)], "exponential", 0.4),
    "paper": ([SiteFacts(30, 12.0)] * 2, "paper", 0.2),
    "small alpha": ([SiteFacts(24, 4.0)] * 4, "sparse-vector", 0.03),
}


@pytest.mark.parametrize("bins", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_no_law_of_the_scores_is_covered_less_than_promised(name: str, bins: int) -> None:
    facts, mechanism, alpha = CASES[name]
    made = plan(facts, settings_of(alpha, mechanism), bins + 1)

    def coverage(levels: Floats) -> float:
        return float(answers(facts, made, mechanism, levels) @ np.append(levels, 1.0))

    assert worst_found(coverage, bins, seed=bins, tries=4) >= max(1 - alpha, made.choice.mean) - SLACK


@pytest.mark.parametrize("name", ["one site", "unequal", "mixed", "exponential", "budgets"])
def test_no_law_fails_more_calibrations_than_promised(name: str) -> None:
    facts, mechanism, alpha = CASES[name]
    made = plan(facts, settings_of(alpha, mechanism, conditional=True), 3)
    promised = float(survival(made.kinds, made.number, made.choice, np.array([1 - alpha]))[0])
    assert promised >= 0.8 - 1e-12

    def chance(levels: Floats) -> float:
        return float(answers(facts, made, mechanism, levels) @ (np.append(levels, 1.0) >= 1 - alpha))

    assert worst_found(chance, 2, seed=7, tries=6) >= promised - SLACK
    # the worst that a comparison can do: an edge just below the level, and the next one at infinity
    assert chance(np.array([0.0, 1 - alpha - 1e-12])) >= promised - SLACK


@pytest.mark.parametrize("name", CASES)
def test_infinite_sets_are_no_more_frequent_than_said(name: str) -> None:
    facts, mechanism, alpha = CASES[name]
    made = plan(facts, settings_of(alpha, mechanism), 4)
    said = infinite(made.kinds, made.number, made.choice)

    def finite(levels: Floats) -> float:
        return 1 - float(answers(facts, made, mechanism, np.append(levels[:-1], 1.0))[-1])

    assert worst_found(finite, 3, seed=3, tries=3) >= 1 - said - SLACK
    if mechanism == "sparse-vector":
        assert finite(np.array([0.3, 0.8, 1.0])) == pytest.approx(1 - said, abs=1e-9)


def test_the_search_finds_what_is_not_promised() -> None:
    """A rank one lower, or budgets other than those the design was told, and the search says so."""
    facts, mechanism, alpha, bins = [SiteFacts(6, 4.0)] * 3, "sparse-vector", 0.4, 6
    made = plan(facts, settings_of(alpha, mechanism), bins + 1)
    lower = replace(made, choice=made.choice._replace(rank=made.choice.rank - 1))
    noisier = [SiteFacts(fact.size, fact.epsilon / 8) for fact in facts]

    def worst(told: ConformalPlan, asked: list[SiteFacts]) -> float:
        return worst_found(lambda q: float(answers(asked, told, mechanism, q) @ np.append(q, 1.0)), bins, 1, 6)

    assert worst(made, facts) >= 1 - alpha - SLACK
    assert worst(lower, facts) < 1 - alpha - 0.01
    assert worst(made, noisier) < 1 - alpha - 0.01
