"""Limited translation solves its equation, keeps its limit, and its mean squared error keeps the promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.inference.common.measured import SiteEstimate, pool
from sottovoce.inference.integration.limited_translation import MOST, REACH, move
from sottovoce.sim.randomness import dice

numbers = st.floats(-20, 20)
errors = st.floats(-3, 3).map(math.exp)
sites = st.builds(SiteEstimate, numbers, errors)
crowds = st.lists(sites, max_size=8)


def estimate(target: SiteEstimate, sources: list[SiteEstimate], most: float = MOST) -> float:
    """Move the target's estimate towards the sources."""
    return target.estimate + move(target, sources, most)[0]


def test_a_near_source_counts_and_a_stray_one_is_limited_or_outvoted() -> None:
    target, near, stray = SiteEstimate(10.0, 1.0), SiteEstimate(9.9, 0.4), SiteEstimate(99.0, 0.4)
    assert estimate(target, [SiteEstimate(10.2, 0.5)]) == pytest.approx(10.16)
    assert (estimate(target, [SiteEstimate(99.0, 0.1)]), estimate(target, [])) == (10.25, 10.0)
    assert round(estimate(target, [near, near, stray]), 3) == 10.156


def bisected(target: SiteEstimate, sources: list[SiteEstimate], most: float) -> float:
    """Solve the defining equation the slow way."""
    low, high = target.estimate - most * target.std_error, target.estimate + most * target.std_error
    for _ in range(200):
        middle = (low + high) / 2
        pull = sum(
            min(max(site.estimate - middle, -REACH * site.std_error), REACH * site.std_error) / site.variance
            for site in sources
        )
        low, high = (middle, high) if middle < target.estimate + target.variance * pull else (low, middle)
    return (low + high) / 2


@given(sites, crowds, st.floats(0.05, 3))
def test_solves_its_equation(target: SiteEstimate, sources: list[SiteEstimate], most: float) -> None:
    expected = bisected(target, sources, most) if sources else target.estimate
    assert estimate(target, sources, most) == pytest.approx(expected, abs=1e-11 * (30 + target.std_error))


@given(sites, crowds, st.floats(0, 3))
def test_never_moves_farther_than_it_may(target: SiteEstimate, sources: list[SiteEstimate], most: float) -> None:
    assert abs(estimate(target, sources, most) - target.estimate) <= most * target.std_error * (1 + 1e-12) + 1e-14


@given(sites, crowds, st.floats(0, 5))
def test_rises_with_the_target_but_pulls_less(target: SiteEstimate, sources: list[SiteEstimate], by: float) -> None:
    # this is what the guarantee rests on
    before = estimate(target, sources)
    after = estimate(target._replace(estimate=target.estimate + by), sources)
    assert -1e-11 <= after - before <= by + 1e-11


@given(sites, st.lists(sites, min_size=1, max_size=8), st.integers(0, 7), st.floats(0, 5))
def test_rises_with_every_source(target: SiteEstimate, sources: list[SiteEstimate], which: int, by: float) -> None:
    which %= len(sources)
    raised = [site._replace(estimate=site.estimate + by * (i == which)) for i, site in enumerate(sources)]
    assert estimate(target, raised) >= estimate(target, sources) - 1e-11


@given(sites, crowds, st.integers(0, 7))
def test_the_order_of_the_sources_does_not_matter(target: SiteEstimate, sources: list[SiteEstimate], turn: int) -> None:
    other = [*sources[turn:], *sources[:turn]][::-1]
    assert estimate(target, other) == pytest.approx(estimate(target, sources), abs=1e-11 * (30 + target.std_error))


@pytest.mark.parametrize(("location", "scale"), [(1e8, 1.0), (-1e8, 1e3), (0.0, 1e-8), (0.0, 1e8)])
def test_equivariant(location: float, scale: float) -> None:
    def moved(site: SiteEstimate) -> SiteEstimate:
        return SiteEstimate(location + scale * site.estimate, scale * site.std_error)

    target, sources = (
        SiteEstimate(0.25, 1.0),
        [SiteEstimate(0.375, 0.5), SiteEstimate(-0.125, 2.0), SiteEstimate(7.0, 1.0)],
    )
    expected = location + scale * estimate(target, sources, 0.6)
    assert estimate(target, sources, 0.6) not in (0.25, 0.85, -0.35)
    spare = 1e-12 * scale + 4 * float(np.spacing(abs(location)))
    assert estimate(moved(target), [moved(site) for site in sources], 0.6) == pytest.approx(expected, abs=spare)


def test_no_source_and_no_move() -> None:
    target = SiteEstimate(3.0, 1.0)
    assert estimate(target, []) == 3.0
    assert estimate(target, [SiteEstimate(4.0, 1.0)], 0.0) == 3.0
    assert estimate(target, [SiteEstimate(3.0, 1.0)] * 3) == 3.0


def test_sources_that_agree_are_pooled() -> None:
    target, sources = SiteEstimate(0.0, 1.0), [SiteEstimate(0.2, 0.5), SiteEstimate(0.1, 0.8)]
    assert estimate(target, sources, 9.0) == pytest.approx(pool([target, *sources]).estimate, rel=1e-12)


def test_one_stray_source_is_outvoted() -> None:
    target, fair = SiteEstimate(0.3, 1.0), [SiteEstimate(0.05 * k, 0.3) for k in range(-4, 5)]
    with_stray = [estimate(target, [*fair, SiteEstimate(stray, 0.3)], 9.0) for stray in (2.0, 1e9)]
    assert with_stray[0] == pytest.approx(with_stray[1], abs=1e-12)
    assert abs(with_stray[1] - estimate(target, fair, 9.0)) < 0.06


@pytest.mark.parametrize("error", [1e-12, 1e-6, 1e6, 1e12])
def test_extreme_errors(error: float) -> None:
    found = estimate(SiteEstimate(0.0, 1.0), [SiteEstimate(0.1, error), SiteEstimate(5.0, 1e3 * error)])
    assert found == pytest.approx(0.1 if error < 1 else 0.0, abs=1e-5)


def simulated(beta: float, shift: float, sources: int, error: float, alike: bool) -> tuple[float, float]:
    """Return the mean squared error in target variances, and its Monte-Carlo error, of a target with a bias."""
    source = dice(hash((beta, shift, sources, error, alike)) % 2**32).generator()
    n = 4000
    noise, others = source.standard_normal(n), source.standard_normal((n, sources)) * error
    if not alike:  # dependent, of the wrong size
        others = 3.0 * others[:, :1] + np.zeros((n, sources))
    found = [
        estimate(SiteEstimate(beta + e, 1.0), [SiteEstimate(shift + x, error) for x in row])
        for e, row in zip(noise, others.tolist(), strict=True)
    ]
    squares = np.square(found)
    return float(squares.mean()), float(squares.std() / math.sqrt(n))


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("sources", [1, 5])
@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5, 8.0])
def test_the_guarantee(shift: float, sources: int, alike: bool) -> None:
    # 5.2 standard errors, one side: a false alarm has chance 1e-7 in each of 16 cases
    mean, spread = simulated(0.0, shift, sources, 0.3, alike)
    assert mean <= 1 + 0.25**2 + 5.2 * spread


def test_sources_without_a_shift_help() -> None:
    mean, spread = simulated(0.0, 0.0, 5, 0.3, True)
    assert mean + 5.2 * spread < 0.9
    assert mean == pytest.approx(0.67, abs=5.2 * spread + 0.01)
