"""Checks that every interval passes: modules that give one are found, and each needs a case here."""

import importlib
import math
import pkgutil
from collections.abc import Callable
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import stdtr

from sottovoce import inference
from sottovoce.inference.common import groups
from sottovoce.inference.quantile import fieller, inversion, logit_curve
from sottovoce.inference.quantile.inversion import Stage
from sottovoce.inference.quantile.logit_curve import LogitCurve
from sottovoce.inference.regression import higrad, vector_normalised
from sottovoce.inference.regression.higrad import Tree
from sottovoce.inference.self_normalised import memory as self_normalised
from sottovoce.inference.self_normalised import memory as self_normalised_memory
from sottovoce.inference.self_normalised.critical_values import p_value
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.staged import Local, StagedStudy, staged_protocol

NORMAL = NormalDist()


class Subject(NamedTuple):
    """One data set seen through one method."""

    point: float
    interval: Callable[[float], tuple[float, float]]
    p_value: Callable[[float], float]


def answered(cdf: Callable[[float], float]) -> Local:
    """Return what a staged conversation leaves when a distribution answers with a little noise."""
    rates = np.array([0.5, 0.8])
    crowd = SiteProfile(np.array([0.4, 0.6]), rates, np.array([30_000, 20_000]))
    talking = staged_protocol(StagedStudy(0.7, crowd, (0.0, 9.0), watch=False))
    ask, turn = next(talking), 0
    while True:
        turn += 1
        above = np.array([1 - cdf(float(x)) for x in ask.points])
        noise = 0.4 * np.sqrt(ask.counts) * math.sin(turn)
        ones = ask.counts * ((1 - rates[:, None]) / 2 + rates[:, None] * above) + noise
        try:
            ask = talking.send(np.clip(np.rint(ones), 0, ask.counts).astype(np.int64))
        except StopIteration as end:
            local: Local = end.value  # records enough for stages
            return local


LAWS: dict[str, Callable[[float], float]] = {
    "lognormal": lambda x: NORMAL.cdf(math.log(max(x, 1e-9)) / 0.8),
    "two modes": lambda x: 0.7 * NORMAL.cdf(2 * (x - 3)) + 0.3 * NORMAL.cdf(2 * (x - 6)),
}
LOCALS = {name: answered(cdf) for name, cdf in LAWS.items()}
MOVES: dict[str, Callable[[float, float], tuple[float, float]]] = {
    # how each number of a stage changes with the location and the unit: (added, multiplied)
    "places": lambda location, scale: (0.0, scale),
    "values": lambda location, scale: (0.0, 1.0),
    "variances": lambda location, scale: (0.0, 1.0),
    "allowance": lambda location, scale: (0.0, 1.0),
    "spacing": lambda location, scale: (0.0, scale),
    "origin": lambda location, scale: (location, scale),
    "curvature": lambda location, scale: (0.0, 1 / scale),
    "shares": lambda location, scale: (0.0, 1.0),
}


def moved(stage: Stage, location: float, scale: float) -> Stage:
    changed = {}
    for name, part in stage._asdict().items():
        if part is None:  # all sites were in all stages: there are no groups, and no shares of them
            continue
        added, times = MOVES[name](location, scale)
        changed[name] = added + times * part
    return stage._replace(**changed)


def inverted(name: str) -> Callable[[float, float], Subject]:
    def make(location: float, scale: float) -> Subject:
        local = LOCALS[name]
        stages = [moved(stage, location, scale) for stage in local.stages]
        near, reach = location + scale * local.centre, scale * local.reach

        def interval(level: float) -> tuple[float, float]:
            found = inversion.invert(stages, near, reach, NORMAL.inv_cdf((1 + level) / 2))
            return found.low, found.high

        def surprise(value: float) -> float:
            return 2 * NORMAL.cdf(-abs(inversion.evidence(stages, near, reach, value)))

        return Subject(inversion.root(stages, near, reach), interval, surprise)

    return make


def crossed(location: float, scale: float) -> Subject:
    line = fieller.Line(location, 0.03, 0.4 / scale, -0.05 * scale, 1e-4, 2e-3 / scale**2)
    return Subject(
        fieller.crossing(line), lambda level: fieller.interval(line, level), lambda value: fieller.p_value(line, value)
    )


LASTS = [1.0] * 40 + [4.0] * 60
TRACE = [0.3 + 0.2 * math.sin(0.7 * i * i) + 0.1 * math.cos(i) for i in range(len(LASTS))]


def normalised(location: float, scale: float) -> Subject:
    memory = self_normalised.init()
    for point, lasts in zip(TRACE, LASTS, strict=True):
        memory = self_normalised.look(memory, location + scale * point, lasts)
    centre, spread = self_normalised.average(memory), math.sqrt(self_normalised.variance(memory))
    return Subject(
        centre,
        lambda level: self_normalised.interval(memory, level, LASTS),
        lambda value: p_value((value - centre) / spread, LASTS),
    )


def along(norm: str) -> Callable[[float, float], Subject]:
    def make(location: float, scale: float) -> Subject:
        path = self_normalised_memory.init_path()
        for point in TRACE:
            path = self_normalised_memory.look_path(path, location + scale * point, 1.0)
        centre, size = self_normalised_memory.path_average(path), self_normalised_memory.normaliser(path, norm)
        return Subject(
            centre,
            lambda level: self_normalised_memory.path_interval(path, level, norm),
            lambda value: p_value((value - centre) / size, None, norm),
        )

    return make


CONTRAST = [1.0, 0.5, -0.5]
ROWS = np.array([[math.sin(0.9 * i * i + k) + 0.3 * k for k in range(3)] for i in range(21)])


def vector(location: float, scale: float) -> Subject:
    memory = vector_normalised.init(3)
    for row in ROWS:
        memory = vector_normalised.look(memory, location + scale * row)
    return Subject(
        float(CONTRAST @ vector_normalised.mean(memory)),
        lambda level: vector_normalised.interval(memory, CONTRAST, level),
        lambda value: vector_normalised.p_value(memory, CONTRAST, value),
    )


def grouped(location: float, scale: float) -> Subject:
    rows = location + scale * ROWS
    return Subject(
        float(CONTRAST @ groups.mean(rows)),
        lambda level: groups.interval(rows, CONTRAST, level),
        lambda value: groups.p_value(rows, CONTRAST, value),
    )


def branched(location: float, scale: float) -> Subject:
    rows, tree = location + scale * ROWS, Tree((4, 4), 2100)
    return Subject(
        float(CONTRAST @ higrad.mean(tree, rows)),
        lambda level: higrad.interval(tree, rows, CONTRAST, level),
        lambda value: higrad.p_value(tree, rows, CONTRAST, value),
    )


PLACES = np.array([-1.3, -0.6, -0.2, 0.4, 0.7, 1.1])
SEEN = 1 / (1 + np.exp(-0.9 * PLACES - 0.8)) + np.array([0.01, -0.02, 0.015, -0.01, 0.02, -0.015])


def measured_curve(location: float, scale: float) -> tuple[logit_curve.Readings, logit_curve.Prior, LogitCurve]:
    prior = logit_curve.Prior(location, 4.0 * scale, -math.log(scale), 2.0, 0.7)
    answers = logit_curve.Readings(location + scale * PLACES, SEEN, np.full(6, 1e-3), np.full(6, 1e-3), 0.7)
    return answers, prior, logit_curve.fit(answers, prior, True)


def curved(location: float, scale: float) -> Subject:
    answers, prior, curve = measured_curve(location, scale)
    return Subject(
        curve.root,
        lambda level: logit_curve.invert(answers, prior, curve, NORMAL.inv_cdf((1 + level) / 2)),
        lambda value: 2 * NORMAL.cdf(-abs(logit_curve.evidence(answers, prior, curve, value))),
    )


def student(location: float, scale: float) -> Subject:
    known = logit_curve.measure(measured_curve(location, scale)[2], 6)
    return Subject(
        known.estimate,
        known.interval,
        lambda value: 2 * float(stdtr(known.df, -abs(known.estimate - value) / known.std_error)),
    )


CASES: dict[str, Callable[[float, float], Subject]] = {
    "inversion": inverted("lognormal"),
    "inversion-five": inverted("two modes"),
    "fieller": crossed,
    "memory": normalised,
    "memory-sup": along("sup"),
    "memory-l1": along("l1"),
    "vector_normalised": vector,
    "groups": grouped,
    "higrad": branched,
    "logit_curve": curved,
    "measured": student,
}
every = pytest.mark.parametrize("make", CASES.values(), ids=CASES)
LEVELS = (0.5, 0.8, 0.95, 0.99)
# region: what groups, higrad and vector_normalised give; error budgets, and intervals that others assist, have exact
# tests of their own
THROUGH_OTHERS = {"region", "error_budgets", "assisted"}


def test_every_interval_has_a_case() -> None:
    found = set()
    for module in pkgutil.walk_packages(inference.__path__, inference.__name__ + "."):
        names = vars(importlib.import_module(module.name))
        own = [n for n, f in names.items() if getattr(f, "__module__", "") == module.name]
        # An interval at the levels of a table alone has no p-value; its own tests repeat what else is asked here.
        gives = any(name == "invert" or name.endswith("interval") or hasattr(names[name], "interval") for name in own)
        if "LEVELS" not in names and gives:
            found.add(module.name.rpartition(".")[2])
    assert found == {*(name.partition("-")[0] for name in CASES), *THROUGH_OTHERS}


@every
def test_the_point_lies_inside(make: Callable[[float, float], Subject]) -> None:
    subject = make(0.0, 1.0)
    for level in LEVELS:
        low, high = subject.interval(level)
        assert math.isfinite(low) and math.isfinite(high)  # noqa: PT018 - one statement about one pair
        assert low < subject.point < high


@every
def test_more_confidence_is_a_longer_interval_around_the_shorter(make: Callable[[float, float], Subject]) -> None:
    intervals = [make(0.0, 1.0).interval(level) for level in LEVELS]
    for (inner_low, inner_high), (low, high) in pairwise(intervals):
        assert low < inner_low < inner_high < high


@every
def test_the_p_value_at_an_edge_is_what_confidence_leaves(make: Callable[[float, float], Subject]) -> None:
    subject = make(0.0, 1.0)
    for level in LEVELS:
        for edge in subject.interval(level):
            assert subject.p_value(edge) == pytest.approx(1 - level, rel=1e-6)
    assert subject.p_value(subject.point) == pytest.approx(1.0, abs=1e-3)


@every
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("location", [0.0, -3.5, 1e8])
def test_equivariant_under_shift_and_scale(
    make: Callable[[float, float], Subject], location: float, scale: float
) -> None:
    if location == 1e8 and scale < 1:
        location *= scale  # a double holds no 1e-8 beside 1e8
    plain, other = make(0.0, 1.0), make(location, scale)
    low, high = plain.interval(0.95)
    # an ulp of the location is all that may be lost; 1e-4 of the length at most
    allowed = (high - low) * scale * 1e-9 + 32 * np.spacing(abs(location) + scale)
    assert allowed < 1e-4 * (high - low) * scale
    for ours, theirs in zip((plain.point, low, high), (other.point, *other.interval(0.95)), strict=True):
        assert abs(theirs - (location + scale * ours)) <= allowed


@every
def test_another_unit_is_another_interval(make: Callable[[float, float], Subject]) -> None:
    # equivariance must not hold because nothing depends on the data
    assert make(1.0, 2.0).interval(0.95) != make(0.0, 1.0).interval(0.95)
