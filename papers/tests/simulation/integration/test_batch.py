"""Many replications at once give what the methods themselves give one by one."""

import math

import numpy as np
import pytest

from sottovoce.inference.common.measured import SiteEstimate, t_value
from sottovoce.inference.integration import valid, weighted
from sottovoce.sim import dice
from sottovoce_papers.simulation.integration.batch import Sites, cautious_intervals, limited_moves, valid_intervals


@pytest.mark.parametrize("sources", [1, 3, 10])
@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_the_batch_equals_the_methods(sources: int, spread: float) -> None:
    g, n = dice(sources).generator(), 200
    estimate, error = g.normal(size=n), np.exp(g.normal(0, 0.3, n))
    low, high = estimate - error * g.uniform(1.5, 2.5, n), estimate + error * g.uniform(1.5, 2.5, n)
    others = Sites(g.normal(0, spread, (n, sources)), np.exp(g.normal(-0.5, 1.2, (n, sources))))
    others.errors[::7, 0] = np.inf
    edges = valid_intervals(estimate, error, low, high, others, 0.95)
    points = limited_moves(estimate, error, others)
    df = 12.0
    half = t_value(0.95, df) * error
    cautious = cautious_intervals(estimate, error, estimate - half, estimate + half, others)
    for i in range(n):
        target = SiteEstimate(float(estimate[i]), float(error[i]), df)
        own = (float(low[i]), float(high[i]))
        used = [
            SiteEstimate(float(y), float(e))
            for y, e in zip(others.estimates[i], others.errors[i], strict=True)
            if math.isfinite(e)
        ]
        one = valid.combine(target, own, used, 0.95)
        assert edges[i] == pytest.approx([one.low, one.high], abs=1e-9)
        assert points[i] == pytest.approx(one.estimate, abs=1e-9)
        careful = weighted.cautious(target, used, 0.95)
        assert cautious[i] == pytest.approx([careful.low, careful.high], abs=1e-9)
