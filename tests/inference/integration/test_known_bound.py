"""The interval under bounds is the shortest there is, covers at its level, and never beats its own assumptions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate, pool, t_value, welch
from sottovoce.inference.common.normal import below, two_sided
from sottovoce.inference.integration.known_bound import ALLOWANCE, caution_of, combine, folded_value
from sottovoce.sim.randomness import dice

sites = st.builds(
    SiteEstimate, st.floats(-9, 9), st.floats(-2, 2).map(math.exp), st.sampled_from([4.0, 30.0, math.inf])
)
limits = st.one_of(st.sampled_from([0.0, math.inf]), st.floats(0, 9))
problems = st.lists(st.tuples(sites, limits), max_size=5)


def careful(site: SiteEstimate) -> SiteEstimate:
    """Return a source with the error that its estimated weight deserves."""
    return site._replace(std_error=site.std_error * math.sqrt(caution_of(site.df)))


def half_length(weights: list[float], target: SiteEstimate, sources: list[SiteEstimate], bounds: list[float]) -> float:
    """Return half the interval of any weights, from the definition."""
    every = [target, *map(careful, sources)]
    error = math.sqrt(sum(w**2 * site.variance for w, site in zip(weights, every, strict=True)))
    bias = sum(w * bound for w, bound in zip(weights[1:], bounds, strict=True))
    student = t_value(0.95, welch(weights, every)) / two_sided(0.95)
    return float(folded_value(bias / error, 0.95)) * error * student


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sources", [1, 2, 3])
def test_no_weights_are_better(seed: int, sources: int) -> None:
    draw = dice(100 * sources + seed).generator()
    target = SiteEstimate(0.0, 1.0)
    others = [SiteEstimate(0.0, float(np.exp(draw.normal(-0.5)))) for _ in range(sources)]
    bounds = [float(b) for b in draw.exponential(1.0, sources)]
    bounds[0] *= seed % 2  # a source that cannot shift, beside others that can
    found = combine(target, others, bounds, 0.95, common=False)

    def objective(free: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        raw = np.exp([0.0, *free])
        return half_length((raw / raw.sum()).tolist(), target, others, bounds)

    # the length has one valley; the simplex search cannot switch a source off altogether
    starts = [[start] * sources for start in (-2.0, 1.0)]
    best = min(minimize(objective, np.array(start), method="Nelder-Mead").fun for start in starts)
    assert (found.high - found.low) / 2 <= best * (1 + 1e-7)
    assert (found.high - found.low) / 2 >= best * (1 - 1e-4)


@given(sites, problems, st.booleans())
def test_what_is_returned_fits_together(
    target: SiteEstimate, pairs: list[tuple[SiteEstimate, float]], common: bool
) -> None:
    sources, bounds = [site for site, _ in pairs], [bound for _, bound in pairs]
    found = combine(target, sources, bounds, 0.95, common)
    allowed = [bound + ALLOWANCE * site.std_error * common for site, bound in pairs]
    used = [w > 0 for w in found.weights[1:]]
    assert sum(found.weights) == pytest.approx(1.0)
    assert min(found.weights) >= 0
    assert not any(w and math.isinf(bound) for w, bound in zip(used, bounds, strict=True))
    finite = [bound if w else 0.0 for w, bound in zip(used, allowed, strict=True)]
    assert found.bias == pytest.approx(sum(w * b for w, b in zip(found.weights[1:], finite, strict=True)), abs=1e-9)
    assert (found.high - found.low) / 2 == pytest.approx(half_length([*found.weights], target, sources, finite))
    centre = sum(w * site.estimate for w, site in zip(found.weights, [target, *sources], strict=True))
    assert found.estimate == pytest.approx(centre, abs=1e-9)
    assert (found.low + found.high) / 2 == pytest.approx(centre, abs=1e-9)
    low, high = target.interval(0.95)
    assert found.high - found.low <= (high - low) * (1 + 1e-12)


@given(sites, st.lists(sites, min_size=1, max_size=4), st.floats(0, 5), st.floats(0, 2))
def test_more_caution_is_a_longer_interval(
    target: SiteEstimate, sources: list[SiteEstimate], bound: float, by: float
) -> None:
    lengths = [
        found.high - found.low
        for found in (combine(target, sources, [each] * len(sources), 0.95) for each in (bound, bound + by))
    ]
    assert lengths[0] <= lengths[1] * (1 + 1e-6)


def test_the_ends() -> None:
    target, sources = SiteEstimate(1.0, 1.0), [SiteEstimate(2.0, 0.5), SiteEstimate(0.0, 2.0)]
    pooled = pool([target, *sources])
    nothing = combine(target, sources, [0.0, 0.0], 0.95, common=False)
    assert (nothing.low, nothing.high) == pytest.approx(pooled.interval(0.95))
    everything = combine(target, sources, [math.inf, math.inf], 0.95)
    assert (everything.low, everything.high) == target.interval(0.95)
    assert combine(target, [], [], 0.95)[:4] == (1.0, *target.interval(0.95), (1.0,))
    mixed = combine(target, sources, [0.0, math.inf], 0.95, common=False)
    assert (mixed.low, mixed.high) == pytest.approx(pool([target, sources[0]]).interval(0.95))
    assert mixed.weights[2] == 0.0


@pytest.mark.parametrize(("df", "runs"), [(4.0, 200), (6.0, 500)])
def test_weights_of_estimated_errors_still_cover(df: float, runs: int) -> None:
    # without caution ten such sources cover .74 and .83; false alarm 1e-6 for a true coverage of .93
    draw, sources, covered = dice(17).generator(), 10, 0
    spread = np.array([2.0, *[1.0] * sources])
    for _ in range(runs):
        errors, values = spread * np.sqrt(draw.chisquare(df, sources + 1) / df), spread * draw.normal(size=sources + 1)
        sites = [SiteEstimate(float(y), float(e), df) for y, e in zip(values, errors, strict=True)]
        found = combine(sites[0], sites[1:], [0.0] * sources, 0.95, common=False)
        covered += found.low <= 0 <= found.high
    assert covered / runs > 0.93 - 4.75 * math.sqrt(0.93 * 0.07 / runs)


def test_precision_is_given_up_for_degrees_of_freedom() -> None:
    target, sources = SiteEstimate(1.0, 1.0, 200.0), [SiteEstimate(1.0, 0.5, 3.0)]
    found, pooled = combine(target, sources, [0.0], 0.95, common=False), pool([target, *map(careful, sources)])
    assert found.df > pooled.df
    assert found.high < pooled.interval(0.95)[1]


def test_only_sites_of_the_same_design_need_the_allowance() -> None:
    target, sources = SiteEstimate(0.0, 1.0), [SiteEstimate(0.0, 0.5), SiteEstimate(0.0, 0.5)]
    lengths = [
        found.high
        for found in (combine(target, sources, [0.3, 0.3], 0.95, common) for common in (False, [True, False], True))
    ]
    assert lengths[0] < lengths[1] < lengths[2]
    by_hand = combine(target, sources, [0.3 + 0.125, 0.3 + 0.125], 0.95, common=False)
    assert lengths[2] == pytest.approx(by_hand.high)


@pytest.mark.parametrize("ratio", [0.03, 0.33, 1.0, 3.0])
def test_lengths_of_one_source(ratio: float) -> None:
    # measured before by another program, two decimals
    known = {0.03: (0.17, 0.61, 0.89), 0.33: (0.50, 0.74, 0.90), 1.0: (0.71, 0.81, 0.91), 3.0: (0.87, 0.89, 0.94)}
    source = [SiteEstimate(0.0, math.sqrt(ratio))]
    found = [combine(SiteEstimate(0.0, 1.0), source, [bound], 0.95, common=False).high for bound in (0.0, 1.0, 2.0)]
    assert np.array(found) / two_sided(0.95) == pytest.approx(known[ratio], abs=0.006)


@pytest.mark.parametrize("shifts", [(1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (0.0, 0.3)])
def test_covers_within_the_bounds_exactly(shifts: tuple[float, float]) -> None:
    target, sources, bounds = SiteEstimate(0.0, 1.0), [SiteEstimate(0.0, 0.4), SiteEstimate(0.0, 0.9)], [0.7, 1.5]
    found = combine(target, sources, bounds, 0.95, common=False)
    half = (found.high - found.low) / 2 / found.std_error
    bias = sum(w * s * b for w, s, b in zip(found.weights[1:], shifts, bounds, strict=True)) / found.std_error
    coverage = below(half - bias) - below(-half - bias)
    assert coverage >= 0.95 - 1e-9
    if abs(sum(shifts)) == 2:
        assert coverage == pytest.approx(0.95, abs=1e-9)


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("bound", [0.0, 1e-12, 1.0, 1e12, math.inf])
def test_extremes(ratio: float, bound: float) -> None:
    target = SiteEstimate(0.0, 1.0)
    found = combine(target, [SiteEstimate(0.1, ratio), SiteEstimate(0.2, 1.0)], [bound, 1e6], 0.95)
    assert all(map(math.isfinite, (*found[:3], *found.weights, found.bias, found.std_error)))
    assert found.high - found.low <= 2 * two_sided(0.95) * (1 + 1e-12)
    if ratio < 1 and bound < 1e-6:
        assert found.high - found.low < 1e-4


def test_equivariant_far_from_zero() -> None:
    def at(location: float, scale: float) -> tuple[float, float, float]:
        sources = [SiteEstimate(location + scale * y, scale * e) for y, e in ((0.5, 0.4), (-0.25, 0.9))]
        return combine(SiteEstimate(location, scale), sources, [0.5 * scale, scale], 0.95)[:3]

    plain = np.array(at(0.0, 1.0))
    assert np.array(at(1e8, 1.0)) - 1e8 == pytest.approx(plain, abs=1e-7)
    assert np.array(at(0.0, 1e8)) / 1e8 == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [([-1.0, 1.0], "source 1 is -1"), ([1.0, math.nan], "source 2 is nan"), ([1.0], "2 sources but 1 bounds")],
)
def test_nonsense_is_refused(bounds: list[float], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        combine(SiteEstimate(0.0, 1.0), [SiteEstimate(0.0, 1.0)] * 2, bounds, 0.95)
