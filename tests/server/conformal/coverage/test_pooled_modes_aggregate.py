"""A secure sum: the promised coverage holds at every distribution, with all dependence written out."""

import math

import numpy as np
import pytest
from scipy import special

from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.server.conformal.coverage import pooled
from sottovoce.server.conformal.coverage.pooled import PooledChoice
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate

REACH = 120


@pytest.fixture(autouse=True)
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooled, "POINTS", 1 << 10)


def coverage(choice: PooledChoice, total: int, low: float, high: float) -> float:
    """The exact mean coverage with two edges at levels ``low <= high``."""
    assert choice.noise is not None
    ratio = float(choice.noise.ratio)
    noise = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-REACH, REACH + 1.0))
    below = np.cumsum(noise)
    outer = np.arange(total + 1)
    upper_mass = special.binom(total, outer) * (1 - high) ** outer * high ** (total - outer)
    both_fail = upper_fails = 0.0
    for above, mass in zip(outer, upper_mass, strict=True):
        left = np.arange(total - above + 1)
        inside = (high - low) / high if high > 0 else 0.0
        chances = special.binom(total - above, left) * inside**left * (1 - inside) ** (total - above - left)
        cut = choice.thresholds[1] - above
        drawn = np.arange(-REACH, REACH + 1)
        allowed = drawn <= cut
        upper_fails += mass * noise[allowed].sum()
        room = choice.thresholds[0] - above - left[:, None] - drawn[allowed][None, :]
        second = np.where(room >= -REACH, below[np.clip(room, -REACH, REACH) + REACH], 0.0)
        both_fail += mass * float(chances @ second @ noise[allowed])
    return 1 - (high - low) * both_fail - (1 - high) * upper_fails


@pytest.mark.parametrize("epsilon", [1.0, 4.0, math.inf])
def test_the_promise_holds_at_every_pair_of_levels(epsilon: float) -> None:
    choice = choose_aggregate(40, 3, epsilon, bins=2, alpha=0.2)
    grid = np.linspace(0.4, 0.98, 13)
    found = [coverage(choice, 40, low, high) for low in grid for high in grid if low <= high]
    assert choice.coverage >= 0.8
    # the bound knows the comparisons one by one only, so it may be missed by a little, never passed
    assert choice.coverage <= min(found) < choice.coverage + 0.02


def test_every_tail_has_the_noise_of_its_cells() -> None:
    total, bins, delta = 60, 5, 0.1
    choice = choose_aggregate(total, 4, 1.0, bins, guarantee="training-conditional", delta=delta)
    ratio = math.exp(-0.5)  # two units of noise cost epsilon
    counts = np.arange(total + 1)
    mass = special.binom(total, counts) * 0.1**counts * 0.9 ** (total - counts)
    single = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-REACH, REACH + 1.0))
    noise = np.ones(1)
    for threshold in reversed(choice.thresholds):  # the highest edge has one cell above it, the next one two
        noise = np.convolve(noise, single)
        below = np.cumsum(noise)[threshold - counts + len(noise) // 2]
        above = np.cumsum(noise)[threshold + 1 - counts + len(noise) // 2]
        assert mass @ below <= delta < mass @ above


def test_a_conditional_promise() -> None:
    choice = choose_aggregate(500, 5, 1.0, bins=8, guarantee="training-conditional", delta=0.1)
    assert 0.9 <= choice.confidence < 0.91
    assert choice.coverage > 0.9


def test_what_is_said_about_the_sites() -> None:
    choice = choose_aggregate(500, 5, 1.0, bins=8)
    assert choice.noise is not None
    assert choice.noise.sites == 5
    assert choice.epsilons == (choice.noise.epsilon,) * 5
    assert 1 - 1e-8 < choice.noise.epsilon <= 1
    assert len(choice.thresholds) == choice.cells == 8
    assert choice.votes == (1,) * 5


def test_noise_does_not_grow_with_the_sites() -> None:
    few, many = choose_aggregate(500, 5, 1.0, bins=8), choose_aggregate(500, 100, 1.0, bins=8)
    assert few.thresholds == many.thresholds


def test_too_few_records_say_how_many() -> None:
    with pytest.raises(Infeasible, match=r"5 records cannot .* bring about \d+ records"):
        choose_aggregate(5, 1, 2.0, bins=4)


@pytest.mark.parametrize(("total", "epsilon"), [(1_000, 0.01), (1_000, 1e-6), (10**6, 1e-5)])
def test_noise_that_drowns_everything_is_refused_at_once(total: int, epsilon: float) -> None:
    with pytest.raises(Infeasible, match=r"noise would drown the few that may be missed; bring about [\d,]+ records"):
        choose_aggregate(total, 3, epsilon)


def test_a_law_that_would_take_minutes_is_refused() -> None:
    with pytest.raises(BadInput, match="adds too much noise to 32 cells for its distribution to be computed"):
        choose_aggregate(10**8, 3, 1e-4)


@pytest.mark.parametrize(("total", "bins"), [(0, 4), (1 << 30, 4), (100, 0)])
def test_no_sum(total: int, bins: int) -> None:
    with pytest.raises(BadInput, match="make no sum"):
        choose_aggregate(total, 1, 1.0, bins)
