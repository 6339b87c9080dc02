"""The cautious interval follows its formula, covers 94.5 % at every shift, and leaves poor sources out."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration.weighted import CAUTION, cautious

TARGET = SiteEstimate(1.0, 1.0, 12.0)


def test_by_hand() -> None:
    found = cautious(TARGET, [SiteEstimate(2.0, 1.0)] * 4, 0.95)
    shift = 1.0 + CAUTION * math.sqrt(1.25)
    share = 1 / (0.25 + shift**2) / (1 + 1 / (0.25 + shift**2))
    assert found.weights == pytest.approx((1 - share, *[share / 4] * 4))
    assert found.estimate == pytest.approx(1 + share)
    assert found.std_error == pytest.approx(math.sqrt(1 - share + share * 0.25))
    assert found.df == 12.0
    assert found.high - found.low == pytest.approx(2 * 2.178813 * found.std_error, rel=1e-6)


@pytest.mark.parametrize("sources", [[], [SiteEstimate(1.0, 1.01)], [SiteEstimate(0.0, 1e12)] * 3])
def test_poor_sources_are_left_out(sources: list[SiteEstimate]) -> None:
    found = cautious(TARGET, sources, 0.95)
    assert (found.low, found.high) == TARGET.interval(0.95)
    assert found.weights == (1.0, *[0.0] * len(sources))


@pytest.mark.parametrize("error", [1e-12, 1e-3, 0.3, 1.0])
@pytest.mark.parametrize("shift", [0.0, 0.7, 4.0, 1e9])
def test_never_longer_than_the_target(error: float, shift: float) -> None:
    found = cautious(TARGET, [SiteEstimate(1.0 + shift, error), SiteEstimate(1.0, 2.0)], 0.95)
    low, high = TARGET.interval(0.95)
    assert high - low >= found.high - found.low
    assert sum(found.weights) == pytest.approx(1.0)


def test_equivariant_far_from_zero() -> None:
    plain = cautious(TARGET, [SiteEstimate(1.5, 0.5), SiteEstimate(1.25, 0.25)], 0.95)
    far = cautious(TARGET._replace(estimate=1e8), [SiteEstimate(1e8 + 0.5, 0.5), SiteEstimate(1e8 + 0.25, 0.25)], 0.95)
    assert np.array(far[:3]) - 1e8 == pytest.approx(np.array(plain[:3]) - 1, abs=1e-7)
    assert far.weights == pytest.approx(plain.weights)


@pytest.mark.parametrize("ratio", [0.01, 0.3, 1.0])
def test_covers_at_every_shift(ratio: float) -> None:
    # The difference of the sources, in its own errors, decides; given it, the target's estimate is normal.
    scale, source = math.sqrt(1 + ratio), SiteEstimate(0.0, math.sqrt(ratio))
    apart = np.linspace(-30, 30, 1201)
    found = [cautious(SiteEstimate(0.0, 1.0), [source._replace(estimate=x)], 0.95) for x in apart]
    move, half = np.array([each.estimate for each in found]), np.array([each.high - each.low for each in found]) / 2
    for shift in (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0):
        density = np.exp(-(((apart - shift) / scale) ** 2) / 2)
        middle, spread = move - (apart - shift) / scale**2, math.sqrt(ratio) / scale
        inside = ndtr((half - middle) / spread) - ndtr((-half - middle) / spread)
        assert (density * inside).sum() / density.sum() >= 0.945
