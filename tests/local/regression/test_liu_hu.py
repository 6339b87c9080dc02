"""The loop of the paper's recursion: batches, refusals, and the asymptotic covariance that the paper proves."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import bdtr, chdtri

from sottovoce.client.regression.rows import Rows
from sottovoce.core.errors import BadInput
from sottovoce.local.regression.liu_hu import LiuHuRun
from sottovoce.protocol.regression.blocks import RegressionChannel, open_channel
from sottovoce.protocol.regression.box import cq
from sottovoce.server.regression.design import parse
from sottovoce.server.regression.liu_hu.fit import LiuHuFit
from sottovoce.server.regression.omega import omega
from sottovoce.server.regression.study import LiuHuStudy, paper_scale
from sottovoce.sim.randomness import SeededSource, dice
from sottovoce_papers.simulation.regression.designs import paper

Floats = npt.NDArray[np.float64]
FALSE_ALARM = 1e-6
compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")


def study(channel: RegressionChannel, inference: str = "self-normalised", start: Floats | None = None) -> LiuHuStudy:
    levels, d = len(channel.taus), channel.p + 1
    noise = np.array([omega(channel, level=level) for level in range(levels)])
    begin = np.zeros((levels, d)) if start is None else np.tile(start, (levels, 1))
    return LiuHuStudy(channel, noise, begin, paper_scale(channel), limit=10.0, inference=inference, tree=(2, 2))


def rows(n: int, seed: int, p: int = 2, tau: float = 0.5) -> Rows:
    return Rows(*paper(p).sample(dice(seed).generator(), n, tau))


def part(whole: Rows, first: int, last: int) -> Rows:
    return Rows(whole.features()[first:last].copy(), whole.response()[first:last].copy())


@pytest.mark.parametrize("inference", ["self-normalised", "groups"])
def test_two_batches_are_one(inference: str) -> None:
    whole, one = rows(600, 3), study(cq(0.5, 2, 2.0, q=3, s=2), inference)
    once, twice = LiuHuRun(one), LiuHuRun(one)
    once.ask(whole, dice(5), shuffle=False)
    same = dice(5)
    told: list[int] = []
    for first, last in ((0, 253), (253, 600)):
        twice.ask(part(whole, first, last), same, shuffle=False, progress=told.append)
    assert once.people == twice.people == sum(told) == 600
    assert once.estimate().point.tobytes() == twice.estimate().point.tobytes()
    contrast = np.array([1.0, 0.0, 1.0])
    assert once.estimate().interval(0, contrast, 0.95) == twice.estimate().interval(0, contrast, 0.95)
    assert np.array_equal(once.estimate().ellipsoid(0, 0.95).shape, twice.estimate().ellipsoid(0, 0.95).shape)


def test_an_estimate_does_not_change_afterwards() -> None:
    for inference in ("self-normalised", "groups"):
        run = LiuHuRun(study(cq(0.5, 2, 2.0, q=2, s=1), inference))
        run.ask(rows(100, 1), dice(1))
        fit = run.estimate()
        before = fit.interval(0, np.array([1.0, 0.0, 0.0]), 0.95)
        run.ask(rows(100, 2), dice(2))
        assert fit.people == 100
        assert fit.interval(0, np.array([1.0, 0.0, 0.0]), 0.95) == before
        assert fit.point.tobytes() != run.estimate().point.tobytes()


def test_a_sorted_file_is_shuffled() -> None:
    whole = rows(2000, 4)
    order = np.argsort(whole.response())
    sorted_ = Rows(whole.features()[order].copy(), whole.response()[order].copy())
    one = study(open_channel(0.5, 2))
    ends = []
    for given, shuffle in ((sorted_, True), (sorted_, False)):
        run = LiuHuRun(one)
        run.ask(given, dice(2), shuffle=shuffle)
        ends.append(run.state.points[0, 0, 0])
    truth = paper(2).beta[0]
    assert abs(ends[0] - truth) < 0.4 < abs(ends[1] - truth)


def test_higrad_takes_all_of_its_people_at_once() -> None:
    one = study(cq(0.5, 2, 2.0, q=2, s=1), "higrad")
    with pytest.raises(BadInput, match="higrad needs to know the number of people"):
        LiuHuRun(one)
    run = LiuHuRun(one, people=100)
    with pytest.raises(BadInput, match="higrad needs all of its 100 people at once, but 0 were asked before and 99"):
        run.ask(rows(99, 1), dice(1))
    assert run.people == 0
    run.ask(rows(100, 1), dice(1))
    assert run.estimate().chains.counts(100).sum() == run.people == 100
    with pytest.raises(BadInput, match="but 100 were asked before and 100 are given now; use fit"):
        run.ask(rows(100, 1), dice(1))


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(BadInput, match="the rows have 3 covariates, but the study has 2"):
        LiuHuRun(study(cq(0.5, 2, 2.0, q=2, s=1))).ask(rows(10, 1, p=3), dice(1))


def test_no_covariates_at_all() -> None:
    run = LiuHuRun(study(cq(0.5, 0, 4.0, q=2, s=1)))
    run.ask(rows(500, 1, p=0), dice(1))
    low, high = run.estimate().interval(0, np.ones(1), 0.95)
    assert low < run.estimate().point[0, 0] < high


def replicate(one: LiuHuStudy, n: int, tau: float, replications: int, seed: int) -> list[LiuHuFit]:
    def once(seeded: SeededSource) -> LiuHuFit:
        run = LiuHuRun(one, n)
        run.ask(Rows(*paper(one.channel.p).sample(seeded.generator(), n, tau)), seeded, shuffle=False)
        return run.estimate()

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(once, dice(seed).split(replications)))


def asymptotic(channel: RegressionChannel, tau: float) -> Floats:
    """H^-1 Omega H^-1: n x the covariance of the estimate (Theorem 2)."""
    inverse = np.linalg.inv(paper(channel.p).hessian(tau))
    return np.asarray(inverse @ omega(channel) @ inverse)


@compiled
@pytest.mark.parametrize(("name", "epsilon"), [("cq:3,1", 2.0), ("lp", 2.0), ("box", 4.0)])
def test_errors_have_the_papers_covariance(name: str, epsilon: float) -> None:
    """From the truth, so that no start is to be forgotten: the errors' quadratic form is chi-square."""
    n, replications = 100_000, 30
    channel = parse(name, 0.5, 2, epsilon).channel
    fits = replicate(study(channel, start=paper(2).beta), n, 0.5, replications, seed=11)
    errors = np.array([fit.point[0] for fit in fits]) - paper(2).beta
    form = n * np.einsum("ri,ij,rj->", errors, np.linalg.inv(asymptotic(channel, 0.5)), errors)
    freedom = errors.size
    # The start at the truth takes off about 2 % here; the formula is first order in 1/n.
    assert 0.9 * chdtri(freedom, 1 - FALSE_ALARM / 2) < form < 1.1 * chdtri(freedom, FALSE_ALARM / 2)


@compiled
@pytest.mark.parametrize("inference", ["self-normalised", "groups", "higrad"])
def test_intervals_cover(inference: str) -> None:
    """80 intervals at 95 %, taken to cover 93 % at this n; those of a third of the width miss the bound."""
    n, replications = 50_000, 80
    wanted = max(k for k in range(replications) if bdtr(k - 1, replications, 0.93) < FALSE_ALARM)
    channel = cq(0.5, 2, 4.0, q=4, s=3)
    fits = replicate(study(channel, inference, start=paper(2).beta), n, 0.5, replications, seed=12)
    contrast = np.array([1.0, 0.5, -0.5])
    truth = contrast @ paper(2).beta
    ends = np.array([fit.interval(0, contrast, 0.95) for fit in fits])
    middle, half = ends.mean(axis=1), np.diff(ends)[:, 0] / 2
    assert np.sum(abs(middle - truth) <= half) >= wanted > np.sum(abs(middle - truth) <= half / 3)
    assert np.mean([fit.ellipsoid(0, 0.95).contains(paper(2).beta) for fit in fits]) >= wanted / replications


@pytest.mark.slow
@compiled
@pytest.mark.parametrize(
    ("name", "tau", "epsilon"), [("lp", 0.75, 1.0), ("box", 0.5, 4.0), ("cq:3,1", 0.5, 2.0)], ids=str
)
def test_a_million_people_reach_the_asymptotic_error(name: str, tau: float, epsilon: float) -> None:
    """n x MSE from the paper's start; the start still adds up to a tenth where the budget is small."""
    n, replications = 1_000_000, 60
    channel = parse(name, tau, 2, epsilon).channel
    fits = replicate(study(channel), n, tau, replications, seed=1)
    errors = np.array([fit.point[0] for fit in fits]) - paper(2).beta
    squares = n * np.sum(errors**2, axis=1) / np.trace(asymptotic(channel, tau))
    ratio, error = squares.mean(), squares.std(ddof=1) / np.sqrt(replications)
    assert ratio == pytest.approx(1.0, abs=4.9 * error + 0.1)
    assert ratio < 1.6
