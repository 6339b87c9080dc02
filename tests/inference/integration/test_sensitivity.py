"""The curve runs from the pooled interval to the target's own, and marks what is refuted and where the gain ends."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate, pool
from sottovoce.inference.integration.known_bound import caution_of, combine
from sottovoce.inference.integration.sensitivity import BEFOREHAND, curve
from sottovoce.sim.randomness import dice

TARGET = SiteEstimate(10.0, 1.0, 20.0)
SOURCES = [SiteEstimate(14.0, 0.3, 30.0), SiteEstimate(10.5, 0.8, math.inf)]
sites = st.builds(
    SiteEstimate, st.floats(-9, 9), st.floats(-2, 2).map(math.exp), st.sampled_from([4.0, 30.0, math.inf])
)


def test_both_ends() -> None:
    found = curve(TARGET, SOURCES, 0.95, common=False)
    assert found.bound[0] == 0.0
    careful = [site._replace(std_error=site.std_error * math.sqrt(caution_of(site.df))) for site in SOURCES]
    assert found.high[0] - found.low[0] <= float(np.diff(pool([TARGET, *careful]).interval(0.95))[0])
    assert 0.985 < found.length_ratio[-1] < 1
    endless = [site._replace(df=math.inf) for site in (TARGET, *SOURCES)]
    pooled = curve(endless[0], endless[1:], 0.95, common=False)
    assert (pooled.low[0], pooled.high[0]) == pytest.approx(pool(endless).interval(0.95))
    assert (found.at(math.inf).low, found.at(math.inf).high) == TARGET.interval(0.95)


@settings(max_examples=15, deadline=None)
@given(sites, st.lists(sites, max_size=4), st.booleans())
def test_the_curve_is_what_each_bound_gives(target: SiteEstimate, sources: list[SiteEstimate], common: bool) -> None:
    found = curve(target, sources, 0.95, common=common)
    for i in (0, len(found.bound) // 3, len(found.bound) - 1):
        one = combine(target, sources, [float(found.bound[i])] * len(sources), 0.95, common)
        assert (one.estimate, one.low, one.high) == pytest.approx(
            (found.estimate[i], found.low[i], found.high[i]), abs=1e-9 * (9 + target.std_error)
        )
        assert one == found.at(float(found.bound[i]))
    assert (np.diff(found.length_ratio) >= -1e-7).all()
    assert (found.length_ratio <= 1 + 1e-12).all()
    assert (np.diff(found.bound) > 0).all()


def test_the_marks_are_on_the_curve() -> None:
    found = curve(TARGET, SOURCES, 0.95)
    assert found.refuted in found.bound
    assert found.lost in found.bound
    assert found.length_ratio[np.searchsorted(found.bound, found.lost)] == pytest.approx(0.95, abs=1e-7)


@pytest.mark.parametrize("ratio", [0.05, 0.1, 0.3])
def test_where_the_gain_is_lost(ratio: float) -> None:
    # the closed form of the docstring, good to a few hundredths
    found = curve(SiteEstimate(0.0, 2.0), [SiteEstimate(0.0, 2 * math.sqrt(ratio))], 0.95, common=False)
    assert found.lost == pytest.approx(2 * math.sqrt(9 - ratio), rel=0.03)


def test_what_is_refuted() -> None:
    target, sources = SiteEstimate(0.0, 0.6), [SiteEstimate(5.0, 0.8), SiteEstimate(-3.0, 0.8), SiteEstimate(0.1, 0.8)]
    z = 2.3939797998185104  # 1 - .025/3
    assert curve(target, sources, 0.95, common=False).refuted == pytest.approx(5 - z)
    assert curve(target, sources, 0.95).refuted == pytest.approx(5 - z - 0.2)
    assert curve(target, sources, 0.95, scales=[10.0, 1.0, 1.0]).refuted == pytest.approx(3 - z - 0.2)
    assert curve(target, sources[2:], 0.95).refuted == 0.0
    assert math.isinf(curve(target, sources, 0.95, scales=[0.0, 1.0, 1.0]).refuted)


def test_a_true_bound_is_seldom_refuted() -> None:
    draw, refuted = dice(12).generator(), 0
    for row in draw.standard_normal((30, 4)).tolist():
        sources = [SiteEstimate(1.0 + e, 1.0) for e in row[1:]]
        refuted += curve(SiteEstimate(row[0], 1.0), sources, 0.95, [1.0], common=False).refuted > 1.0
    # a chance of 5 % at most: 12 of 30 have chance 1e-8
    assert refuted < 12


def test_no_sources() -> None:
    found = curve(TARGET, [], 0.95)
    assert found.lost == found.refuted == 0.0
    assert (found.length_ratio == 1).all()
    assert (found.low[0], found.high[0]) == TARGET.interval(0.95)


def test_a_source_that_cannot_shift_is_never_lost() -> None:
    found = curve(TARGET, SOURCES[1:], 0.95, scales=[0.0], common=False)
    assert math.isinf(found.lost)
    assert np.ptp(found.length_ratio) == 0.0
    assert np.isfinite(found.bound).all()


def test_bounds_and_scales_of_ones_own() -> None:
    found = curve(TARGET, SOURCES, 0.95, [2.0, 0.5, math.inf], [1.0, 3.0])
    assert found.bound.tolist() == [2.0, 0.5, math.inf]
    one = combine(TARGET, SOURCES, [0.5, 1.5], 0.95)
    assert (found.low[1], found.high[1]) == pytest.approx((one.low, one.high))
    assert found.length_ratio[2] == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_equivariant(scale: float) -> None:
    def moved(site: SiteEstimate) -> SiteEstimate:
        return SiteEstimate(scale * site.estimate, scale * site.std_error, site.df)

    plain, other = curve(TARGET, SOURCES, 0.95), curve(moved(TARGET), [moved(site) for site in SOURCES], 0.95)
    assert (other.refuted, other.lost) == pytest.approx((scale * plain.refuted, scale * plain.lost))
    assert other.low == pytest.approx(scale * plain.low)


def test_a_hundred_sources_take_no_time() -> None:
    sources = [SiteEstimate(0.1 * math.sin(k), 0.5 + 0.01 * k, 20.0 + k) for k in range(100)]
    began = time.perf_counter()
    curve(SiteEstimate(0.0, 1.0, 15.0), sources, 0.95)
    assert time.perf_counter() - began < 1.0  # .07 s on a quiet machine


def test_the_warning_is_one_sentence() -> None:
    assert "before" in BEFOREHAND
    assert BEFOREHAND.count(".") == 1


@pytest.mark.parametrize(
    ("bounds", "scales", "words"),
    [
        ([-1.0], None, "bound is -1"),
        ([math.nan], None, "bound is nan"),
        (None, [1.0], "2 sources but 1 scales"),
        (None, [1.0, math.inf], "scale is inf"),
    ],
)
def test_nonsense_is_refused(bounds: list[float] | None, scales: list[float] | None, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        curve(TARGET, SOURCES, 0.95, bounds, scales)
    with pytest.raises(BadInput, match="bound is -2"):
        curve(TARGET, SOURCES, 0.95).at(-2.0)
