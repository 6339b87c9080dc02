"""Entries are pulled towards their guess by as much as they themselves suggest."""

import numpy as np
import pytest

from sottovoce.protocol.regression.dithered.moments import LEAST, spread_about
from sottovoce.sim.randomness import dice


def test_without_evidence_the_prior_is_believed() -> None:
    assert spread_about(np.zeros(0), np.zeros(0), 0.1) == pytest.approx(0.01)
    assert spread_about(np.zeros(0), np.zeros(0), 0.1, trust=0.4) == pytest.approx(0.01)
    assert spread_about(np.array([5.0, -7.0]), np.full(2, 1e12), 0.1) == pytest.approx(0.01, rel=1e-6)


def test_much_evidence_shows_the_spread() -> None:
    n, spread, noise = 20_000, 0.3, 0.2
    draws = dice(1).generator().standard_normal((2, n))
    found = spread_about(spread * draws[0] + noise * draws[1], np.full(n, noise**2), 0.05)
    # standard deviation of the mean of squares: sqrt(2 / n) x the total variance; false alarm 1e-6
    assert abs(found - spread**2) < 4.9 * np.sqrt(2 / n) * (spread**2 + noise**2) + 1e-3


def test_variance_that_is_known_of_is_not_found_twice() -> None:
    away = np.full(50, 0.5)
    plain = spread_about(away, np.full(50, 0.01), 1.0)
    assert spread_about(away, np.full(50, 0.01), 1.0, 0.04) < plain - 0.03


def test_no_guess_is_believed_without_limit() -> None:
    assert spread_about(np.zeros(1000), np.full(1000, 1e-3), 0.1) == pytest.approx(LEAST * 0.1**2)


def test_a_prior_trusted_less_gives_way_sooner() -> None:
    away, exact = np.full(2, 1.0), np.full(2, 1e-9)
    found = [spread_about(away, exact, 0.1, trust=trust) for trust in (4.0, 1.0, 0.25)]
    assert found == pytest.approx([(t * 0.01 + 2) / (t + 2) for t in (4.0, 1.0, 0.25)], rel=1e-4)


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_wild_entries_widen_the_spread(scale: float) -> None:
    assert spread_about(np.full(3, scale), np.full(3, 1e-8), 0.1) == pytest.approx((0.01 + 3 * scale**2) / 4, rel=1e-5)
