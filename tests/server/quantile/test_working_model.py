"""The guide's picture moves to the truth as answers come in, on either side of the median."""

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.asking import Decoded
from sottovoce.server.quantile.working_model import WorkingModel
from sottovoce_papers.simulation.populations import Population, population

LAWS = {
    "normal": population("normal"),
    "exponential": population("exponential"),
    "uniform": population("uniform"),
    "pareto": population("lomax", 2.0),
}


def heard_of(points: Floats, below: Floats, variance: float = 1e-4) -> Decoded:
    counts = np.ones((1, len(points)), dtype=np.int64)
    return Decoded(points, below, np.full(len(points), variance), counts, counts)


def taught(distribution: Population, tau: float, levels: list[float]) -> WorkingModel:
    centre = float(distribution.quantile(0.5))
    guide = WorkingModel(centre, float(distribution.quantile(0.75)) - centre, tau)
    points = np.array([float(distribution.quantile(level)) for level in levels])
    guide.hear(heard_of(points, np.array(levels)))
    return guide


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("tau", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_answers_bring_the_believed_quantile_to_the_truth(name: str, tau: float) -> None:
    distribution, tail = LAWS[name], min(tau, 1 - tau)
    guide = taught(distribution, tau, [tau - 0.4 * tail, tau + 0.4 * tail, 0.5])
    (believed,) = guide.quantiles(np.array([tau]))
    assert abs(float(distribution.cdf(believed)) - tau) < 0.3 * tail


def test_hearing_matters() -> None:
    distribution = population("lomax", 1.2)
    before = WorkingModel(
        float(distribution.quantile(0.5)), float(distribution.quantile(0.75) - distribution.quantile(0.5)), 0.9
    )
    after = taught(distribution, 0.9, [0.5, 0.8, 0.9, 0.95])
    truth = float(distribution.quantile(0.9))
    wrong, right = (abs(float(guide.quantiles(np.array([0.9]))[0]) - truth) for guide in (before, after))
    assert right < 0.5 * wrong


@pytest.mark.parametrize("tau", [0.1, 0.35, 0.6, 0.95])
def test_believed_quantiles_ascend(tau: float) -> None:
    levels = np.linspace(0.02, 0.98, 33)
    assert np.all(np.diff(WorkingModel(3.0, 2.0, tau).quantiles(levels)) > 0)


@pytest.mark.parametrize("tau", [0.2, 0.45])
def test_mirrored_answers_give_mirrored_beliefs(tau: float) -> None:
    points, below = np.array([-3.0, -1.2, 0.3, 2.0]), np.array([0.05, 0.3, 0.62, 0.9])
    left, right = WorkingModel(1.0, 2.0, tau), WorkingModel(-1.0, 2.0, 1 - tau)
    left.hear(heard_of(points, below))
    right.hear(heard_of(-points, 1 - below))
    levels = np.array([0.5 * tau, tau, 1.4 * tau])
    assert left.quantiles(levels) == pytest.approx(-right.quantiles(1 - levels), rel=1e-9)


@pytest.mark.parametrize(("shift", "factor"), [(0.0, 1e-6), (1e6, 1.0), (-3.0, 1e6)])
def test_the_unit_does_not_matter(shift: float, factor: float) -> None:
    points, below, levels = np.array([-1.0, 0.5, 2.0]), np.array([0.2, 0.6, 0.95]), np.array([0.6, 0.8])
    plain, moved = WorkingModel(0.2, 1.5, 0.8), WorkingModel(shift + factor * 0.2, factor * 1.5, 0.8)
    plain.hear(heard_of(points, below))
    moved.hear(heard_of(shift + factor * points, below))
    assert moved.quantiles(levels) == pytest.approx(shift + factor * plain.quantiles(levels), rel=1e-6)


def test_answers_from_very_far_say_nothing_of_the_shape() -> None:
    plain, other = WorkingModel(0.0, 1.0, 0.7), WorkingModel(0.0, 1.0, 0.7)
    other.hear(heard_of(np.array([-1e9, 1e9]), np.array([0.3, 0.6])))
    levels = np.array([0.6, 0.7])
    assert plain.quantiles(levels).tolist() == other.quantiles(levels).tolist()
