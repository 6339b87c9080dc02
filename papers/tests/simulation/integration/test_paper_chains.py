"""The simulated chains: reproducible, the distribution of one answer exact, and like the chains that ship."""

import math
import os
from typing import Any

import numpy as np
import pytest
from scipy import special

from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.local.integration import run_chains
from sottovoce.protocol.messages import Study
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.integration.chains import ChainStudy
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.families import FAMILIES
from sottovoce_papers.simulation.integration import paper_chains
from sottovoce_papers.simulation.integration.paper_chains import PaperSite, below_table, replicate, walk

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
FAR = 5.3  # standard deviations: a false alarm in a million among eight comparisons


def test_the_seed_decides_and_the_threads_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_chains, "LANES", 6)
    site = PaperSite(60, 3)
    one, two, other = (replicate(site, 5, seed, threads) for seed, threads in ((1, 1), (1, 3), (2, 1)))
    assert one.estimates.tolist() == two.estimates.tolist()
    assert one.variances.tolist() == two.variances.tolist()
    assert len({*one.estimates.tolist(), *other.estimates.tolist()}) == 10


def test_a_shift_moves_start_and_records_together() -> None:
    near, far = (replicate(PaperSite(90, 3, shift=shift, start=shift + 0.5), 4, 3) for shift in (0.0, 8.0))
    assert far.estimates - 8.0 == pytest.approx(near.estimates)
    assert far.variances == pytest.approx(near.variances)
    assert replicate(PaperSite(90, 3, shift=8.0), 4, 3).estimates.max() < far.estimates.min()  # from 0, never there


@compiled
@pytest.mark.parametrize("family", ["normal", "cauchy"])
@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_one_answer_has_the_distribution_of_the_channel(family: str, rate: float) -> None:
    lanes, tau = 400_000, 0.3
    table = below_table(family)
    for seed, place in enumerate((-1.7003, 0.0, 0.6511)):
        words = dice(seed).words(4 * lanes).reshape(4, lanes)
        points, totals = np.full(lanes, place), np.zeros(lanes)
        walk(words, table, np.ones(1), rate, tau, points, totals)
        chance = (1 - rate) / 2 + rate * float(FAMILIES[family][0](place))
        below = np.count_nonzero(points < place)
        assert abs(below - lanes * chance) < FAR * math.sqrt(lanes * chance * (1 - chance))
        assert points.tobytes() == totals.tobytes()
        bracket = (1 + rate - 2 * rate * tau) / 2, -(1 - rate + 2 * rate * tau) / 2  # of (3.6)
        np.testing.assert_allclose(np.unique(np.round(place - points, 9)), sorted(bracket))


@compiled
@pytest.mark.parametrize(("family", "tau", "power"), [("normal", 0.5, 0.6), ("cauchy", 0.25, 0.7)])
def test_the_chains_are_those_of_the_engine(family: str, tau: float, power: float) -> None:
    site = PaperSite(3_000, 5, shift=0.4, family=family, rate=0.7, tau=tau, power=power, constant=2.0, start=-5.0)
    simulated = replicate(site, 20_000, seed=6)
    channel, runs = binary(epsilon_of_rate(0.7)), 300
    study = ChainStudy(tau, channel, 5, constant=2.0, power=power, start=-5.0, unit=1.0)
    found = np.empty((runs, 2))
    for i, die in enumerate(dice(7).split(runs)):
        values = 0.4 + FAMILIES[family][3](die.generator(), 3_000)
        measured = run_chains(Site(Records(values), Study(tau, channel.epsilon), die, channel), study).measured
        found[i] = measured.estimate, measured.variance
    expected, spread = simulated.estimates.mean(), simulated.estimates.std()
    error = math.sqrt(1 / runs + 1 / 20_000)
    assert abs(found[:, 0].mean() - expected) < FAR * spread * error
    assert abs(expected - site.truth) > FAR * spread * error  # burn-in and slope: the comparison sees them
    mean = simulated.variances.mean()
    assert abs(found[:, 1].mean() - mean) < FAR * simulated.variances.std() * error
    # nearly normal estimates: their spread is chi-square with runs - 1 degrees, the simulated one all but exact
    low, high = (special.chdtri(runs - 1, chance) / (runs - 1) for chance in (1 - 1e-7, 1e-7))
    assert 0.95 * low < found[:, 0].var(ddof=1) / spread**2 < 1.05 * high


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"family": "uniform"}, "normal or cauchy"), ({"chains": 1}, "1 chains"), ({"chains": 11}, "11 chains")],
    ids=str,
)
def test_impossible_sites_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        PaperSite(**{"n": 10, "chains": 2, **options})
