import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration.kabaila_giri import (
    LAST,
    LEVELS,
    OWN,
    RATIOS,
    interval,
    interval_untrusted,
    shape,
)

every_level = pytest.mark.parametrize("level", LEVELS)


@every_level
def test_far_sources_change_nothing_bit_for_bit(level: float) -> None:
    target, own = SiteEstimate(0.1, 0.3), (-0.7, 0.6)
    for error in (0.0, 0.03, 0.3, 2.0, 100.0):
        away = 1.0000001 * LAST[level] * math.hypot(0.3, error)
        assert shape(level, (error / 0.3) ** 2, LAST[level]) == OWN
        for estimate in (0.1 + away, 0.1 - away):
            assert interval(target, own, SiteEstimate(estimate, error), level) == own
    assert interval_untrusted(target, own, 1e300, level) == own
    assert interval(target, own, SiteEstimate(0.2, 30.0), level) == own


def test_the_default_level_is_the_targets_own_from_five_standard_errors_on() -> None:
    assert LAST[0.95] == 5.0
    assert shape(0.95, 0.4, 5.0) == shape(0.95, 0.0, 5.0) == OWN
    assert shape(0.95, 0.4, 4.99).inflation > 1.0


@every_level
def test_the_interval_moves_towards_the_source_and_keeps_the_target_inside(level: float) -> None:
    own = SiteEstimate(0.0, 1.0).interval(level)
    for error in np.geomspace(0.01, 12.0, 25):
        edges = []
        for estimate in np.arange(-7.0, 7.0, 0.1) * math.hypot(1.0, error):
            low, high = interval(SiteEstimate(0.0, 1.0), own, SiteEstimate(estimate, error), level)
            assert low < 0.0 < high
            assert (low + high) * estimate >= 0.0
            # With the source held, both edges rise with the target: what is covered is an interval of targets.
            edges.append((low - estimate, high - estimate))
        assert all(later < earlier for one, two in pairwise(edges) for earlier, later in zip(one, two, strict=True))


def test_more_confidence_is_a_longer_interval_around_the_shorter() -> None:
    target = SiteEstimate(3.0, 2.0)
    for error in (0.01, 0.3, 1.0, 2.5, 6.0, 15.0):
        for estimate in np.arange(3.0, 20.0, 0.3):
            found = [interval(target, target.interval(level), SiteEstimate(estimate, error), level) for level in LEVELS]
            assert all(low < inner and outer < high for (inner, outer), (low, high) in pairwise(found))


@every_level
def test_continuous_in_distance_and_ratio(level: float) -> None:
    def parts(ratio: float, distance: float) -> NDArray[np.float64]:
        pull, stretch = shape(level, ratio, distance)
        return np.array([pull * distance, stretch])

    for ratio in (0.001, *RATIOS, 300.0):
        for knot in np.linspace(0.0, LAST[level], 21):
            for distance in (knot, knot + 0.1):
                here = parts(ratio, distance)
                np.testing.assert_allclose(parts(ratio, distance + 1e-9), here, atol=1e-8)
                np.testing.assert_allclose(parts(ratio * (1 + 1e-9), distance), here, atol=1e-8)
                np.testing.assert_allclose(parts(ratio * (1 - 1e-9), distance), here, atol=1e-8)
    assert shape(level, 0.7, 0.0).pull == shape(level, 0.7, 1e-12).pull
    assert shape(level, 0.0, 1.0) == shape(level, RATIOS[0], 1.0)


@every_level
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("location", [0.0, -3.5, 1e8])
@pytest.mark.parametrize("trusted", [True, False])
def test_equivariant_under_shift_and_scale(level: float, location: float, scale: float, trusted: bool) -> None:
    if location == 1e8 and scale < 1:
        location *= scale  # a double holds no 1e-8 beside 1e8

    def found(location: float, scale: float) -> tuple[float, float]:
        target, source = (
            SiteEstimate(location + 0.3 * scale, 0.7 * scale),
            SiteEstimate(location - 0.1 * scale, 0.5 * scale),
        )
        own = (location - 1.2 * scale, location + 1.5 * scale)
        if trusted:
            return interval(target, own, source, level)
        return interval_untrusted(target, own, source.estimate, level)

    low, high = found(0.0, 1.0)
    assert high - low < 0.96 * 2.7
    # an ulp of the location is all that may be lost
    allowed = (high - low) * scale * 1e-9 + 32 * np.spacing(abs(location) + scale)
    assert np.abs(np.array(found(location, scale)) - (location + scale * np.array([low, high]))).max() <= allowed


def test_a_mirror_image_is_the_mirror_image() -> None:
    low, high = interval(SiteEstimate(0.3, 0.7), (-1.2, 1.5), SiteEstimate(2.0, 0.5), 0.95)
    assert interval(SiteEstimate(-0.3, 0.7), (-1.5, 1.2), SiteEstimate(-2.0, 0.5), 0.95) == pytest.approx((-high, -low))


def test_both_half_lengths_of_a_lopsided_interval_are_stretched() -> None:
    target, source = SiteEstimate(1.0, 0.5), SiteEstimate(1.4, 0.5)
    found = shape(0.95, 1.0, 0.4 / math.sqrt(0.5))
    low, high = interval(target, (-1.0, 2.0), source, 0.95)
    centre = 1.0 + found.pull * 0.2
    assert (low, high) == pytest.approx((centre - found.inflation * 2.0, centre + found.inflation * 1.0))


def test_edges_without_end_pass_through() -> None:
    target, source = SiteEstimate(1.0, 0.5), SiteEstimate(1.4, 0.5)
    low, high = interval(target, (-math.inf, 2.0), source, 0.95)
    assert low == -math.inf
    assert high == interval(target, (0.0, 2.0), source, 0.95)[1]
    assert interval_untrusted(target, (0.0, math.inf), 1.4, 0.95)[1] == math.inf


@pytest.mark.parametrize("error", [0.0, math.inf, math.nan])
def test_a_target_without_a_proper_error_keeps_its_own_interval(error: float) -> None:
    assert interval(SiteEstimate(1.0, error), (0.0, 2.0), SiteEstimate(1.4, 0.5), 0.95) == (0.0, 2.0)


def test_sources_at_the_ends_of_the_floats() -> None:
    target, own = SiteEstimate(1.0, 0.5), (0.0, 2.0)
    for estimate, error in [(1.4, math.inf), (math.inf, 1.0), (math.nan, 1.0), (1.4, 1e200)]:
        assert interval(target, own, SiteEstimate(estimate, error), 0.95) == own
    assert interval(target, own, SiteEstimate(1.4, 0.0), 0.95) == interval_untrusted(target, own, 1.4, 0.95)
    tiny = interval(SiteEstimate(1.0, 5e-200), (1.0, 1.0), SiteEstimate(1.0, 5e-200), 0.95)
    assert tiny == (1.0, 1.0)


@pytest.mark.parametrize("level", [0.5, 0.949, 95, math.nan])
def test_a_level_without_a_table_is_refused_and_the_levels_named(level: float) -> None:
    target = SiteEstimate(1.0, 0.5)
    asks: list[Callable[[], object]] = [
        lambda: shape(level, 1.0, 1.0),
        lambda: interval(target, (0.0, 2.0), target, level),
        lambda: interval_untrusted(SiteEstimate(1.0, 0.0), (0.0, 2.0), 1.4, level),
    ]
    for ask in asks:
        with pytest.raises(BadInput, match=r"0\.8, 0\.9, 0\.95, 0\.99"):
            ask()


@pytest.mark.parametrize("wrong", [-0.1, math.nan])
def test_a_ratio_or_a_distance_below_zero_is_refused(wrong: float) -> None:
    with pytest.raises(BadInput, match="ratio is"):
        shape(0.95, wrong, 1.0)
    with pytest.raises(BadInput, match="distance is"):
        shape(0.95, 1.0, wrong)
