"""The fit: points and regions are those of the three inferences, refusals are sentences, warnings are the formula's."""

import re

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.common import groups
from sottovoce.inference.regression import higrad, vector_normalised
from sottovoce.inference.regression.vector_normalised import VectorMemory, add_all
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.protocol.regression.box import cq
from sottovoce.server.regression.liu_hu.fit import LiuHuFit, curvature_ratio, start_ratios
from sottovoce.server.regression.liu_hu.step import LiuHuState, chains_of, init
from sottovoce.server.regression.study import LiuHuStudy, paper_scale
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
CONTRAST = np.array([1.0, -2.0])
METHODS = ("self-normalised", "groups", "higrad")


def study(inference: str, levels: int = 2, count: int = 6) -> LiuHuStudy:
    channel = open_channel((0.25, 0.5, 0.75)[:levels], 1)
    start = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])[:levels]
    return LiuHuStudy(
        channel, np.tile(np.eye(2) / 9, (levels, 1, 1)), start, 1.0, inference=inference, groups=count, tree=(2, 2)
    )


def fitted(inference: str, people: int, count: int = 6) -> LiuHuFit:
    """A fit whose averages are arbitrary numbers."""
    one = study(inference, count=count)
    chains = chains_of(one, people)
    state = init(one, chains)
    draw = dice(1).generator()
    state.totals[:] = draw.normal(size=state.totals.shape) * chains.counts(people)[:, None, None]
    memories = []
    for memory in state.memories:
        n = add_all(draw.normal(size=(people, 2)), 0, *memory[1:])
        memories.append(VectorMemory(n, *memory[1:]))
    return LiuHuFit(one, chains, LiuHuState(people, state.points, state.totals, tuple(memories)))


def test_self_normalised() -> None:
    fit = fitted("self-normalised", 50)
    for level in range(2):
        memory = fit.state.memories[level]
        assert fit.point[level].tolist() == vector_normalised.mean(memory).tolist()
        assert fit.interval(level, CONTRAST, 0.9) == vector_normalised.interval(memory, CONTRAST, 0.9)
        assert fit.ellipsoid(level, 0.9).radius2 == vector_normalised.ellipsoid(memory, 0.9).radius2


def test_groups() -> None:
    fit = fitted("groups", 50)
    centres = fit.study.start + fit.state.totals / fit.chains.counts(50)[:, None, None]
    for level in range(2):
        assert fit.point[level] == pytest.approx(centres[:, level].mean(axis=0))
        assert fit.interval(level, CONTRAST, 0.9) == groups.interval(centres[:, level], CONTRAST, 0.9)
        assert fit.ellipsoid(level, 0.9).centre == pytest.approx(fit.point[level])


def test_higrad_weighs_everybody_alike() -> None:
    fit = fitted("higrad", 70)
    tree = fit.chains.tree
    assert tree is not None
    everybody = fit.study.start + fit.state.totals.sum(axis=0) / 70
    for level in range(2):
        assert fit.point[level] == pytest.approx(everybody[level])
        rows = fit.centres[:, level]
        assert fit.interval(level, CONTRAST, 0.9) == higrad.interval(tree, rows, CONTRAST, 0.9)
        assert fit.ellipsoid(level, 0.9).radius2 == higrad.ellipsoid(tree, rows, 0.9).radius2


@pytest.mark.parametrize("inference", METHODS)
def test_the_point_lies_in_its_regions(inference: str) -> None:
    fit = fitted(inference, 70)
    for level in range(2):
        low, high = fit.interval(level, CONTRAST, 0.5)
        assert low < CONTRAST @ fit.point[level] < high
        assert fit.ellipsoid(level, 0.5).contains(fit.point[level])


@pytest.mark.parametrize("inference", METHODS)
def test_nobody_asked(inference: str) -> None:
    one = study(inference)
    chains = chains_of(one, 70)
    fit = LiuHuFit(one, chains, init(one, chains))
    assert fit.point.tolist() == one.start.tolist()
    assert fit.warnings == ()
    with pytest.raises(Infeasible, match="but 0 were asked"):
        fit.interval(0, CONTRAST, 0.9)
    with pytest.raises(Infeasible, match="but 0 were asked"):
        fit.ellipsoid(0, 0.9)


def test_too_few_groups_or_people_are_refused() -> None:
    with pytest.raises(Infeasible, match="at least 6 people"):
        fitted("groups", 5).interval(0, CONTRAST, 0.9)
    few = fitted("groups", 5)
    assert few.point == pytest.approx(few.centres[:5].mean(axis=0))
    with pytest.raises(Infeasible, match="more than 2 groups"):
        fitted("groups", 50, count=2).ellipsoid(0, 0.9)
    with pytest.raises(Infeasible, match="rank 1 of 2"):
        fitted("self-normalised", 2).ellipsoid(0, 0.9)
    still = fitted("groups", 50)
    still.state.totals[:] = 0.0
    with pytest.raises(Infeasible, match="no variance"):
        still.interval(0, CONTRAST, 0.9)


def test_a_wrong_question_is_not_a_refusal() -> None:
    fit = fitted("groups", 50)
    for contrast, level in ((CONTRAST, 1.0), (np.ones(3), 0.9)):
        with pytest.raises(BadInput) as why:
            fit.interval(0, contrast, level)
        assert not isinstance(why.value, Infeasible)


def cell(tau: float, p: int, epsilon: float, q: int, s: int, inference: str, size: float = 1.0) -> LiuHuStudy:
    from sottovoce.server.regression.omega import omega

    channel = cq(tau, p, epsilon, q, s)
    start = np.zeros((1, p + 1))
    scale = paper_scale(channel, size)
    return LiuHuStudy(channel, omega(channel)[None], start, scale, inference=inference, noise=size / 2, tree=(4, 4))


@pytest.mark.parametrize(("inference", "ratio"), [("self-normalised", 0.35), ("groups", 0.96), ("higrad", 0.66)])
def test_the_curvature_is_that_of_the_notes(inference: str, ratio: float) -> None:
    one = cell(0.75, 2, 2.0, 4, 1, inference)
    assert curvature_ratio(one, chains_of(one, 10**6), 10**6, 0) == pytest.approx(ratio, abs=0.035)


@pytest.mark.parametrize("inference", METHODS)
def test_neither_ratio_depends_on_the_unit_of_the_response(inference: str) -> None:
    one, other = (cell(0.75, 2, 2.0, 4, 1, inference, size) for size in (1.0, 60.0))
    chains = chains_of(one, 10**5)
    assert curvature_ratio(other, chains, 10**5, 0) == pytest.approx(curvature_ratio(one, chains, 10**5, 0))
    assert start_ratios(other, chains, 10**5, 0) == pytest.approx(start_ratios(one, chains, 10**5, 0))


def test_the_start_is_forgotten_as_by_summing_up_person_by_person() -> None:
    one, n = cell(0.75, 2, 2.0, 4, 1, "self-normalised"), 20_000
    slope = 0.375 / 3
    held = np.cumprod(1 - slope * one.steps(np.arange(1, n + 1))).mean()
    expected = held / np.sqrt(3) * slope / np.sqrt(one.omega[0, 1, 1] / n)
    assert start_ratios(one, chains_of(one), n, 0)[1] == pytest.approx(expected, rel=2e-3)


def warned(one: LiuHuStudy, people: int) -> tuple[str, ...]:
    chains = chains_of(one, people)
    state = init(one, chains)
    return LiuHuFit(one, chains, LiuHuState(people, *state[1:])).warnings


def test_warnings_where_coverage_is_known_to_fall_short() -> None:
    assert warned(cell(0.5, 2, 2.0, 4, 1, "self-normalised"), 10**6) == ()
    said = warned(cell(0.75, 2, 2.0, 4, 1, "groups"), 10**6)
    assert said[0].startswith("groups intervals of the intercept are expected to cover about 8")
    assert "at tau 0.75 and 1,000,000 people" in said[0]
    assert "have not forgotten the start" in said[1]
    assert any("forgotten the start" in text for text in warned(cell(0.5, 2, 2.0, 4, 1, "self-normalised"), 1000))


def test_a_bias_beyond_all_measure_is_still_said() -> None:
    said = warned(cell(0.75, 2, 2.0, 4, 1, "groups"), 10**4)
    assert any(re.search(r"may cover as little as \d %", text) for text in said)
