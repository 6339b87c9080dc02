"""The estimators that the paper on data integration compares: each against another way to compute it."""

import math
import os

import numpy as np
import pytest

from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration import weighted
from sottovoce.inference.self_normalised import memory as self_normalised
from sottovoce.protocol.randomised_response import epsilon_of_rate
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.families import FAMILIES
from sottovoce_papers.simulation.integration.helped import helped, measured
from sottovoce_papers.simulation.integration.laplace_chains import replicate_laplace
from sottovoce_papers.simulation.integration.paper_chains import PaperSite, Replicated
from sottovoce_papers.simulation.integration.pools import Pool, SiteCell
from sottovoce_papers.simulation.integration.single_chain import replicate_alone
from sottovoce_papers.simulation.integration.weighing import METHODS, weigh
from sottovoce_papers.simulation.populations import population
from sottovoce_papers.simulation.regression.dice import roll

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
NAMES = dict(zip(METHODS, ("adaptive", "decay", "conservative-paper", "ivw"), strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_those_of_one_replication_at_a_time(method: str) -> None:
    draw = dice(3).generator()
    estimates, variances = draw.normal(size=(4, 6)), draw.uniform(0.1, 2.0, size=(4, 6))
    target, *sources = (Replicated(*pair) for pair in zip(estimates, variances, strict=True))
    found = weigh(method, target, sources, 5_000)
    for r in range(6):
        own, *others = (SiteEstimate(estimates[k, r], math.sqrt(variances[k, r]), 9) for k in range(4))
        for variance, half in (("printed", found.printed[r]), ("theorem", found.theorem[r])):
            one = weighted.paper(NAMES[method], own, others, 0.95, records=5_000, variance=variance)
            assert found.estimates[r] == pytest.approx(one.estimate)
            assert half == pytest.approx((one.high - one.low) / 2)


def test_one_chain_is_walked_and_self_normalised_as_written() -> None:
    site = PaperSite(60, 2, shift=0.4, rate=0.8, tau=0.3, start=-0.2)
    found = replicate_alone(site, 2, seed=8)
    [first] = dice(8).split(1)
    words = first._sequence.generate_state(8, np.uint64).astype(np.uint64).reshape(4, 2)
    below, next_word = FAMILIES["normal"][0], getattr(roll, "py_func", roll)
    for lane in range(2):
        state, point, memory = tuple(words[:, lane]), site.start, self_normalised.init()
        for t in range(1, site.n + 1):
            with np.errstate(over="ignore"):
                state, word = next_word(state)
            one = (int(word) >> 11) / 2**53 < 0.1 + 0.8 * float(below(point - site.shift))
            point -= t**-site.power * (float(one) - 0.1 - 0.8 * site.tau)
            memory = self_normalised.look(memory, point, 1.0)
        low, high = self_normalised.interval(memory, 0.95)
        assert found.estimates[lane] == pytest.approx(self_normalised.average(memory), abs=1e-5)
        assert found.halves[lane] == pytest.approx((high - low) / 2, rel=1e-4)


@compiled
def test_laplace_chains_arrive_with_the_spread_of_theory() -> None:
    site = PaperSite(20_000, 4, rate=0.5)
    runs = replicate_laplace(site, 200, 5)
    noise = 0.25 + 2 / epsilon_of_rate(0.5) ** 2
    expected = noise / float(FAMILIES["normal"][1](0.0)) ** 2 / site.n
    # 200 runs of variances with 3 degrees of freedom: 3 % of chance; chains this short add about a tenth
    assert 0.85 < runs.variances.mean() / expected < 1.4
    assert abs(runs.estimates.mean()) < 5 * math.sqrt(expected / 200)


def test_without_privacy_no_noise_is_added() -> None:
    quiet, noisy = (replicate_laplace(PaperSite(400, 4, rate=rate), 30, 5).variances.mean() for rate in (1.0, 0.2))
    assert noisy > 5 * quiet


def test_sources_that_agree_pull_the_default_and_strange_ones_do_not() -> None:
    n = 40
    target = Pool(np.full(n, 1.0), np.ones(n), np.full(n, 99.0), np.full(n, -1.0), np.full(n, 3.0))
    source = Pool(np.zeros(n), np.full(n, 0.1), np.full(n, 99.0), np.full(n, -0.2), np.full(n, 0.2))
    errors, intervals = helped(target, source, (0.0, 0.0))
    far, same = helped(target, source, (50.0, 50.0))
    assert np.all(errors < 0.8)
    assert np.all(np.abs(far - 1) < 0.3)
    assert np.allclose(same, [-1.0, 3.0])
    assert np.all(intervals[:, 1] - intervals[:, 0] < 4.0)


def test_a_lost_target_is_lost_and_an_open_site_is_read() -> None:
    pool = measured(SiteCell(population("normal"), 0.5, 1.0, 400), 8, seed=2)
    hole = pool._replace(estimate=np.where(np.arange(8) == 3, np.nan, pool.estimate))
    errors, intervals = helped(hole, pool, (0.0,))
    assert np.isnan(errors[3])
    assert np.isnan(intervals[3]).all()
    assert np.isfinite(np.delete(errors, 3)).all()
