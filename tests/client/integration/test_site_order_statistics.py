"""A site that is not private: exact ranks, what its three numbers are, and nothing kept."""

import importlib
import math
import subprocess
import sys
import weakref
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sottovoce.client.integration.site import (
    RankSummary,
    Z,
    dithered,
    rank_interval,
    rank_summary,
    ranks,
)
from sottovoce.client.record import Records
from sottovoce.protocol.summaries import records_needed
from sottovoce.sim.randomness import dice

TAUS = ("0.001", "0.07", "0.1", "0.25", "0.5", "0.625", "0.8", "0.9", "0.99")
LEVELS = ("0.2", "0.5", "0.75", "0.8", "0.9", "0.9375", "0.95", "0.99", "0.9999")
pickled: Callable[[object], bytes] = importlib.import_module("pickle").dumps


def at_most(n: int, tau: Fraction) -> list[Fraction]:
    """Return the probabilities that at most 0, 1, ... n of n records lie at or below the quantile."""
    return list(accumulate(math.comb(n, k) * tau**k * (1 - tau) ** (n - k) for k in range(n + 1)))


@pytest.mark.parametrize("tau", TAUS)
def test_ranks_are_those_of_the_binomial_sums(tau: str) -> None:
    for n in range(1, 61):
        below = at_most(n, Fraction(tau))
        for level in LEVELS:
            share = (1 - Fraction(level)) / 2
            lower = max([rank for rank in range(1, n + 1) if below[rank - 1] <= share], default=0)
            upper = min([rank for rank in range(1, n + 1) if 1 - below[rank - 1] <= share], default=n + 1)
            assert ranks(n, float(tau), float(level)) == (lower, upper), (n, level)


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("level", LEVELS)
def test_the_coverage_of_the_ranks_is_at_least_the_level(tau: str, level: str) -> None:
    for n in (5, 20, 60):
        below = [Fraction(0), *at_most(n, Fraction(tau)), Fraction(1)]
        lower, upper = ranks(n, float(tau), float(level))
        assert below[upper] - below[lower] >= Fraction(level)


@pytest.mark.parametrize(("n", "tau"), [(10**4, 0.5), (10**6, 0.9), (10**6, 0.001)])
def test_ranks_of_many_records_cut_off_the_share_and_not_a_record_more(n: int, tau: float) -> None:
    def tail(start: int, step: int) -> float:
        wide = 30 * round(math.sqrt(n * tau * (1 - tau)))
        numbers = np.clip(np.arange(start, start + step * wide, step, dtype=np.float64), 0, n)
        logs = [
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(tau)
            for k in np.unique(numbers)
        ]
        return math.fsum(
            math.exp(log + (n - k) * math.log1p(-tau)) for log, k in zip(logs, np.unique(numbers), strict=True)
        )

    lower, upper = ranks(n, tau, 0.95)
    assert tail(lower - 1, -1) <= 0.025 < tail(lower, -1)
    assert tail(upper, 1) <= 0.025 < tail(upper - 1, 1)


@pytest.mark.parametrize("tau", [0.02, 0.25, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_number_of_records_needed_is_the_smallest(tau: float, level: float) -> None:
    enough = records_needed(tau, level)
    for n in (enough, enough + 1, 2 * enough):
        lower, upper = ranks(n, tau, level)
        assert lower >= 1
        assert upper <= n
    lower, upper = ranks(enough - 1, tau, level)
    assert lower < 1 or upper > enough - 1


def test_the_interval_is_between_two_records_or_endless() -> None:
    values = dice(1).generator().standard_normal(500)
    ordered = np.sort(values)
    for tau, level in ((0.5, 0.95), (0.1, 0.9), (0.9, 0.5)):
        lower, upper = ranks(500, tau, level)
        assert rank_interval(Records(values), tau, level) == (ordered[lower - 1], ordered[upper - 1])
    assert rank_interval(Records(values[:20].copy()), 0.9, 0.95)[1] == math.inf
    assert rank_interval(Records(values[:20].copy()), 0.1, 0.95)[0] == -math.inf
    assert rank_interval(Records(values[:1].copy()), 0.5, 0.95) == (-math.inf, math.inf)
    assert rank_interval(Records(values), 0.9999, 0.95)[1] == math.inf


def test_the_estimate_has_rank_n_tau_rounded_up() -> None:
    records = Records(np.arange(1.0, 101.0))
    assert [rank_summary(records, tau).estimate for tau in (0.07, 0.071, 0.29, 0.5, 0.999)] == [7, 8, 29, 50, 100]


def test_a_flat_density_has_the_error_of_its_formula() -> None:
    found = rank_summary(Records(np.linspace(0, 1, 1_000_001)), 0.3)
    assert found.estimate == pytest.approx(0.3, abs=2e-6)
    assert found.error == pytest.approx(math.sqrt(0.3 * 0.7 / 1e6), rel=2e-3)
    assert found.df == pytest.approx(Z * math.sqrt(0.3 * 0.7 * 1e6), rel=2e-3)


def test_the_error_of_records_without_ties_is_half_the_interval_over_z() -> None:
    assert rank_interval(Records(np.arange(1.0, 101.0)), 0.5, 0.95) == (40, 61)
    assert rank_summary(Records(np.arange(1.0, 101.0)), 0.5) == RankSummary(50.0, 10.5 / Z, 10.5)
    stretched = np.where(np.arange(1.0, 101.0) > 50, 10 * np.arange(1.0, 101.0) - 450, np.arange(1.0, 101.0))
    assert rank_summary(Records(stretched), 0.5).error == pytest.approx(110 / (1 + 10.5**-0.5) / Z)


def test_records_without_spread_have_no_error_and_too_few_have_no_bound() -> None:
    assert rank_summary(Records(np.full(1000, 3.25)), 0.5) == RankSummary(3.25, 0.0, 31.5)
    few = rank_summary(Records(np.arange(35.0)), 0.9)
    assert (few.estimate, few.error) == (31.0, math.inf)
    assert few.df >= 1
    assert rank_summary(Records(np.arange(36.0)), 0.9).error < 20


def test_two_values_have_an_error() -> None:
    assert rank_summary(Records(np.repeat([0.0, 1.0], 50)), 0.25).error == pytest.approx(1 / math.sqrt(12))
    assert rank_summary(Records(np.repeat([0.0, 1.0], 50)), 0.75).error == pytest.approx(1 / math.sqrt(12))
    assert rank_summary(Records(np.repeat([0.0, 1.0], 50)), 0.5).error > 0.5


def test_the_coverage_of_the_exact_interval_is_the_one_of_its_ranks() -> None:
    n, times, generator = 50, 4000, dice(3).generator()
    lower, upper = ranks(n, 0.3, 0.9)
    below = [Fraction(0), *at_most(n, Fraction("0.3"))]
    promised = float(below[upper] - below[lower])
    hits = 0
    for _ in range(times):
        low, high = rank_interval(Records(generator.random(n)), 0.3, 0.9)
        hits += low <= 0.3 <= high
    assert abs(hits - promised * times) <= 4.9 * math.sqrt(times * promised * (1 - promised))


whole = st.lists(st.integers(-1000, 1000), min_size=2, max_size=120)
taus = st.sampled_from([0.125, 0.25, 0.5, 0.75, 0.875])


@given(whole, taus, st.integers(-(10**6), 10**6), st.integers(-20, 20))
@settings(max_examples=100, deadline=None)
def test_a_shift_and_a_scale_move_everything_with_them(values: list[int], tau: float, shift: int, power: int) -> None:
    plain = np.array(values, dtype=np.float64)
    scale = 2.0**power
    before, after = Records(plain), Records((plain + shift) * scale)
    one, two = rank_summary(before, tau), rank_summary(after, tau)
    assert two.estimate == (one.estimate + shift) * scale
    assert two.error == one.error * scale
    assert two.df == one.df
    assert rank_interval(after, tau, 0.9) == tuple((end + shift) * scale for end in rank_interval(before, tau, 0.9))


@given(whole, taus, st.integers(0, 119))
@settings(max_examples=100, deadline=None)
def test_the_order_of_the_records_does_not_matter(values: list[int], tau: float, turn: int) -> None:
    mixed = [*values[turn % len(values) :], *values[: turn % len(values)]][::-1]
    one, two = (Records(np.array(each, dtype=np.float64)) for each in (values, mixed))
    assert rank_summary(one, tau) == rank_summary(two, tau)
    assert rank_interval(one, tau, 0.95) == rank_interval(two, tau, 0.95)


@given(whole, taus)
@settings(max_examples=100, deadline=None)
def test_a_mirror_turns_the_interval_round(values: list[int], tau: float) -> None:
    plain = np.array(values, dtype=np.float64)
    low, high = rank_interval(Records(plain), tau, 0.9)
    assert rank_interval(Records(-plain), 1 - tau, 0.9) == (-high, -low)


@given(whole, taus, st.floats(0.01, 0.98), st.floats(0.01, 0.98))
@settings(max_examples=100, deadline=None)
def test_a_higher_level_holds_a_lower_one_and_all_hold_the_estimate(
    values: list[int], tau: float, one: float, two: float
) -> None:
    assume(one != two)
    records = Records(np.array(values, dtype=np.float64))
    inner, outer = rank_interval(records, tau, min(one, two)), rank_interval(records, tau, max(one, two))
    assert outer[0] <= inner[0] <= inner[1] <= outer[1]
    low, high = rank_interval(records, tau, 0.95)
    assert low <= rank_summary(records, tau).estimate <= high


def test_the_summary_shows_three_numbers_and_nothing_is_kept() -> None:
    values = dice(4).generator().standard_normal(300)
    values[::30] = 123456.789012
    gone = weakref.ref(values)
    records = Records(values)
    found = rank_summary(records, 0.5)
    spread = dithered(records, 0.25, dice(5))
    assert repr(found) == f"RankSummary(estimate={found.estimate!r}, error={found.error!r}, df={found.df!r})"
    assert len(pickled(found)) < 200
    assert repr(spread) == "Records(300 records, values hidden)"
    for holder in (records, spread):
        with pytest.raises(TypeError, match="do not leave the site"):
            pickled(holder)
    assert all(isinstance(each, float) for each in found)
    del values, records, holder
    assert gone() is None


def test_scipy_stats_is_not_imported() -> None:
    code = (
        "import sys, sottovoce.client.integration.site as o; "
        "assert 'scipy.special' not in sys.modules; o.ranks(9, .5, .9); assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
