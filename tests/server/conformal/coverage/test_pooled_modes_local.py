"""One-record local privacy: the promised coverage holds at every distribution and is reached at the worst."""

import math

import numpy as np
import pytest
from scipy import special

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.conformal.coverage import pooled
from sottovoce.server.conformal.coverage.pooled import PooledChoice
from sottovoce.server.conformal.coverage.pooled_modes import choose_local
from sottovoce.sim.randomness import dice


@pytest.fixture(autouse=True)
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooled, "POINTS", 1 << 10)


def coverage(choice: PooledChoice, epsilon: float, levels: Floats) -> Floats:
    """The exact mean coverage of one crowd at the levels of the edges, for many sets of levels."""
    flip, number = binary(epsilon).distribution[0, 1], sum(choice.asked)
    chances = flip + rate_of(binary(epsilon)) * (1 - levels)
    fails = special.bdtr(choice.thresholds[0], number, chances)
    below = np.cumprod(fails[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(1 - np.sum(np.diff(levels, axis=1, append=1.0) * below, axis=1))


@pytest.mark.parametrize(("size", "epsilon"), [(400, 2.0), (4_000, 1.0), (4_000, 5.0), (100_000, 0.3)])
def test_the_promise_holds_and_is_nearly_reached(size: int, epsilon: float) -> None:
    choice = choose_local([size, size], [epsilon, epsilon], bins=6)
    generator = dice(5).generator()
    tried = np.sort(generator.uniform(0.6, 1.0, (20_000, 6)), axis=1)
    found = coverage(choice, epsilon, tried)
    worst, best = float(found.min()), tried[found.argmin()]
    # walk downhill from there: a bound that no distribution attains would be a loss
    for step in np.geomspace(0.05, 0.001, 40):
        tried = np.sort(np.clip(best + generator.normal(0.0, step, (200, 6)), 0.0, 1.0), axis=1)
        found = coverage(choice, epsilon, tried)
        if found.min() < worst:
            worst, best = float(found.min()), tried[found.argmin()]
    assert choice.coverage >= 0.9
    assert choice.coverage <= worst < choice.coverage + 0.003


def test_a_conditional_promise() -> None:
    choice = choose_local([5_000], [1.0], bins=4, guarantee="training-conditional", delta=0.05)
    flip = binary(1.0).distribution[0, 1]
    fails = special.bdtr(choice.thresholds[0], 1250, flip + (1 - 2 * flip) * 0.1)
    assert choice.confidence == pytest.approx(1 - fails, abs=1e-12)
    assert choice.confidence >= 0.95


def test_votes_follow_the_budgets() -> None:
    choice = choose_local([2_000, 2_000, 2_000, 7], [1.0, 4.0, math.inf, 8.0], bins=8)
    assert choice.asked == (250, 250, 250, 0)
    small, large, largest, none = choice.votes
    assert 0 < small < large < largest <= 32
    assert none == 0
    assert choice.epsilons == tuple(binary(epsilon).epsilon for epsilon in (1.0, 4.0, math.inf, 8.0))
    assert choose_local([2_000, 900], [1.0, 1.0], bins=8).votes == (1, 1)
    # a second site of a better budget may only help
    alone = choose_local([2_000], [1.0], bins=8)
    assert choice.infinite < alone.infinite


def test_bins_without_records() -> None:
    with pytest.raises(Infeasible, match="no site has 16 records"):
        choose_local([15, 3], [1.0, 1.0])


def test_too_much_noise_says_how_many_records() -> None:
    with pytest.raises(Infeasible, match=r"200 records cannot .* bring about [\d,]+ records"):
        choose_local([200], [0.1], bins=4)


@pytest.mark.parametrize(("sizes", "epsilons", "bins"), [([], [], 4), ([100], [1.0, 2.0], 4), ([100], [1.0], 0)])
def test_no_study(sizes: list[int], epsilons: list[float], bins: int) -> None:
    with pytest.raises(BadInput, match="make no study"):
        choose_local(sizes, epsilons, bins)
