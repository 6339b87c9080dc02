"""The estimate of a dithered run and its intervals: refusals, nesting, units, and coverage in a small cell."""

import math
import os
import re
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from sottovoce.client.regression.rows import Rows
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.design import parse
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.omega import omega
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression.default import Setting, replicate
from sottovoce_papers.simulation.regression.designs import paper

Floats = npt.NDArray[np.float64]
compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
PEOPLE = 30_000
BETA = paper(2).beta


def study(channel: RegressionChannel, a: float = 1.0, b: float = 0.0) -> DitheredStudy:
    """The study of responses in another unit: a y + b."""
    levels, d = len(channel.taus), channel.p + 1
    noise = np.array([omega(channel, level=level) for level in range(levels)])
    start = np.zeros((levels, d))
    start[:, 0] = b
    moments = np.diag([1.0, *[1 / 3] * (d - 1)])
    return DitheredStudy(channel, noise, np.full(levels, 0.5 / a), a, start, moments, limit=50 * a)


@lru_cache
def fit(name: str, epsilon: float, n: int = PEOPLE, a: float = 1.0, b: float = 0.0) -> DitheredFit:
    channel = parse(name, (0.25, 0.75) if name == "box" else 0.5, 2, epsilon).channel
    run = DitheredRun(study(channel, a, b))
    features, response = paper(2).sample(dice(5).generator(), n, 0.5)
    run.ask(Rows(np.ascontiguousarray(features), a * response + b), dice(6), shuffle=False)
    return run.estimate()


CASES = [("auto", math.inf), ("auto", 4.0), ("cq:3,2", 8.0), ("box", 8.0)]
every = pytest.mark.parametrize(("name", "epsilon"), CASES)


def lengths(one: DitheredFit, level: float = 0.9, index: int = 0) -> Floats:
    ends = np.array([one.interval(index, axis, level) for axis in np.eye(3)])
    return np.asarray(ends[:, 1] - ends[:, 0])


@compiled
@every
def test_the_truth_is_found(name: str, epsilon: float) -> None:
    one = fit(name, epsilon)
    assert one.people == PEOPLE
    for index, tau in enumerate(one.study.taus):
        truth = paper(2).beta_at(tau, 0.5)
        spread = np.sqrt(np.diag(one.roots[index].covariance))
        for place in (one.point[index], one.roots[index].place):
            assert (np.abs(place - truth) < 5.5 * spread).all()  # false alarm 1e-6
        assert (np.abs(one.point[index] - one.roots[index].place) < 2 * spread).all()


@compiled
@every
def test_intervals_nest_and_lie_about_their_root(name: str, epsilon: float) -> None:
    one = fit(name, epsilon)
    for index in range(len(one.study.taus)):
        for contrast in (*np.eye(3), np.array([1.0, -0.5, 0.25])):
            ends = [one.interval(index, contrast, level) for level in (0.5, 0.8, 0.9, 0.95)]
            assert all(wide[0] < tight[0] < tight[1] < wide[1] for tight, wide in pairwise(ends))
            for low, high in ends:
                assert (low + high) / 2 == pytest.approx(float(contrast @ one.roots[index].place), abs=1e-12)


@compiled
def test_a_contrast_twice_as_long_has_an_interval_twice_as_long() -> None:
    one = fit("auto", 4.0)
    contrast = np.array([1.0, -0.5, 0.25])
    low, high = one.interval(0, contrast, 0.9)
    assert one.interval(0, 2 * contrast, 0.9) == pytest.approx((2 * low, 2 * high))
    assert one.interval(0, -contrast, 0.9) == pytest.approx((-high, -low))


@compiled
@every
def test_the_ellipsoid_holds_its_centre_and_nests(name: str, epsilon: float) -> None:
    one = fit(name, epsilon)
    small, large = one.ellipsoid(0, 0.5), one.ellipsoid(0, 0.95)
    assert small.centre == pytest.approx(one.roots[0].place)
    assert small.contains(one.roots[0].place)
    assert large.contains(one.point[0])
    assert large.volume > small.volume
    ways = np.linalg.cholesky(small.shape) * math.sqrt(small.radius2)
    assert all(large.contains(small.centre + sign * way) for way in ways.T for sign in (1, -1))
    # simultaneous for all contrasts, so wider than one interval
    for axis in np.eye(3):
        low, high = one.interval(0, axis, 0.9)
        shadow = one.ellipsoid(0, 0.9).interval(axis)
        assert shadow[1] - shadow[0] > high - low


@compiled
def test_doubt_about_the_slope_widens_the_interval() -> None:
    one = fit("auto", 4.0)
    for axis in np.eye(3):
        z = float(special.ndtri(0.95))
        plain = 2 * z * math.sqrt(axis @ one.roots[0].covariance @ axis)
        low, high = one.interval(0, axis, 0.9)
        doubt = one.knowledge.relative_variance(0, axis)
        assert (high - low) == pytest.approx(plain * math.exp((z**2 - 1) / 2 * doubt))
        assert high - low > plain


@compiled
def test_more_people_and_more_budget_shorten_intervals() -> None:
    assert (lengths(fit("auto", 4.0, 120_000)) < 0.7 * lengths(fit("auto", 4.0))).all()
    assert (lengths(fit("auto", math.inf)) < lengths(fit("auto", 4.0))).all()


def endless(one: DitheredFit, level: float = 0.9) -> int:
    """The number of people that an interval without ends asks for."""
    axis = np.eye(one.study.d)[1]
    assert one.interval(0, axis, level) == (-math.inf, math.inf)
    sentence = one.missing(0, axis)
    assert f"{one.people:,}" in sentence
    assert sentence.endswith(".")
    found = re.search(r"needs about ([\d,]+)", sentence)
    assert found is not None, sentence
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize(("n", "epsilon"), [(200, 1.0), (1000, 1.0), (100, 4.0)])
def test_of_too_few_people_intervals_have_no_ends_and_say_a_number(n: int, epsilon: float) -> None:
    one = fit("cq:2,1", epsilon, n)
    assert endless(one) == one.needed() > n
    assert not one.determined(0, np.eye(3)[1])
    with pytest.raises(Infeasible, match=f"needs about {one.needed():,}, within a factor of 2; ask more people") as why:
        one.ellipsoid(0, 0.9)
    assert isinstance(why.value, BadInput)
    assert np.isfinite(one.point).all()


def doubted(one: DitheredFit, doubt: float) -> DitheredFit:
    """The same fit, with so much doubt of the standard error of the first slope."""
    slope = one.knowledge.slopes[0]
    factor = (doubt / math.sqrt(one.knowledge.relative_variance(0, np.eye(3)[1]))) ** 2
    return replace(
        one, knowledge=one.knowledge._replace(slopes=(slope._replace(covariance=factor * slope.covariance),))
    )


@compiled
def test_much_doubt_makes_an_interval_long_and_more_leaves_it_no_ends() -> None:
    one, axis = fit("auto", 4.0), np.eye(3)[1]
    apart = [np.diff(doubted(one, doubt).interval(0, axis, 0.95))[0] for doubt in (0.5, 1.0, 1.4, 3.0)]
    assert all(shorter < longer for shorter, longer in pairwise(apart))
    assert np.isfinite(apart).tolist() == [True, True, True, False]
    # a level near one has no ends where a lower one has
    assert np.isfinite(doubted(one, 1.0).interval(0, axis, 0.9)).all()
    assert np.isinf(doubted(one, 1.0).interval(0, axis, 1 - 1e-9)).all()


@compiled
def test_how_many_people_it_takes_grows_slowly_with_the_doubt() -> None:
    one = fit("auto", 4.0)
    wanted = [doubted(one, doubt).needed(0, np.eye(3)[1]) for doubt in (0.5, 1.0, 3.0, 100.0)]
    assert all(fewer < more for fewer, more in pairwise(wanted))
    assert one.people * 1.6 <= wanted[0] < wanted[-1] < 2.05 * wanted[0]


@compiled
def test_the_number_asked_for_is_enough_or_nearly() -> None:
    one = fit("auto", 4.0, 100)
    n = endless(one)
    assert 100 < n < 20_000
    later = fit("auto", 4.0, 2 * n)
    assert (lengths(later) > 0).all()
    assert later.needed() <= 2 * later.people


@compiled
def test_any_level_has_an_interval_and_a_higher_one_a_longer() -> None:
    one = fit("auto", 4.0)
    apart = [lengths(one, level) for level in (0.1, 0.5, 0.9, 0.99, 1 - 1e-9, 1 - 1e-13)]
    assert all((longer > shorter).all() for shorter, longer in pairwise(apart))
    assert np.isfinite(apart[-1]).all()


def test_before_anybody_was_asked_the_point_is_the_start() -> None:
    one = fit("cq:2,1", 1.0, 0, 3.0, 7.0)
    assert one.people == 0
    assert one.point == pytest.approx(np.array([[7.0, 0.0, 0.0]]))


@pytest.mark.parametrize("n", [0, 1])
def test_of_hardly_anybody_intervals_have_no_ends(n: int) -> None:
    assert fit("cq:2,1", 1.0, n).interval(0, np.eye(3)[1], 0.9) == (-math.inf, math.inf)


def test_few_people_barely_move_the_estimate() -> None:
    one = fit("cq:2,1", 0.5, 100)
    assert np.linalg.norm(one.point - one.study.start) < one.study.size


@compiled
@every
@pytest.mark.parametrize(("a", "b"), [(1e-8, 0.0), (1e8, 0.0), (3.7, -12.0), (1e-6, 0.01), (1e-6, 100.0), (2.5, 2.5e8)])
def test_units_and_zero_of_the_response_do_not_matter(name: str, epsilon: float, a: float, b: float) -> None:
    plain, moved = fit(name, epsilon), fit(name, epsilon, PEOPLE, a, b)
    shift = np.array([b, 0.0, 0.0])
    # 1e8 units from zero a response may change its side of the fit by rounding, which is worth 1 / PEOPLE
    close = 1e-6 if abs(b) < 1e6 * a else 0.02
    for index in range(len(plain.study.taus)):
        length = lengths(plain, 0.9, index)
        assert (np.abs((moved.point[index] - shift) / a - plain.point[index]) < close * length).all()
        assert lengths(moved, 0.9, index) / a == pytest.approx(length, rel=close)
        ends = np.array([moved.interval(index, axis, 0.9) for axis in np.eye(3)]) - shift[:, None]
        theirs = np.array([plain.interval(index, axis, 0.9) for axis in np.eye(3)])
        assert (np.abs(ends / a - theirs) < close * length[:, None]).all()


REPLICATIONS = 60
LEVELS = (0.5, 0.9)


@compiled
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    truth = paper(1).beta

    def covers(one: DitheredFit) -> list[list[bool]]:
        ends = [[one.interval(0, axis, level) for axis in np.eye(2)] for level in LEVELS]
        return [[low < x < high for (low, high), x in zip(pair, truth, strict=True)] for pair in ends]

    runs = replicate(Setting(paper(1), 0.5, math.inf), [20_000], covers, REPLICATIONS, seed=3)
    held = np.sum([run[0] for run in runs], axis=0)
    for level, counts in zip(LEVELS, held.tolist(), strict=True):
        for count in counts:
            # either tail of the binomial: false alarm 1e-6 over two coefficients and two levels
            assert special.bdtr(count, REPLICATIONS, level) > 1e-6 / 8
            assert special.bdtrc(count - 1, REPLICATIONS, level) > 1e-6 / 8


@compiled
def test_a_fit_of_many_covariates_says_what_it_does_not_know() -> None:
    p = 60
    source, channel = dice(8).generator(), parse("cq:2,1", 0.5, p, 8.0).channel
    run, features = DitheredRun(study(channel)), source.uniform(-1, 1, (4_000, p))
    run.ask(Rows(features, features[:, 0] + source.logistic(0, 0.5, len(features))), dice(9), shuffle=False)
    one, axes = run.estimate(), np.eye(p + 1)
    assert np.isfinite(one.point).all()
    assert not any(one.determined(0, axis) for axis in axes)
    assert all(one.interval(0, axis, 0.9) == (-math.inf, math.inf) for axis in axes[:3])
    assert one.needed() > 4_000
    doubts = one.knowledge.relative_variances(0, axes)
    assert np.isfinite(doubts).all()
    assert (doubts > 0).all()


def test_a_density_that_grows_to_both_sides_is_said() -> None:
    one = fit("cq:2,1", 4.0)
    slope = one.knowledge.slopes[0]
    hollow = slope._replace(density=slope.density._replace(bend=slope.density.prior + 0.5))
    [warning] = replace(one, knowledge=one.knowledge._replace(slopes=(hollow,))).warnings
    assert "as between two groups" in warning
    assert one.warnings == ()
