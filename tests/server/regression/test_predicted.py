"""What a plan predicts of intervals: the doubt falls with people, and known moments and the truth make them shorter."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.client.regression.rows import Rows
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.server.regression.predicted import Predicted, expected_fit, predict
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression.default import Setting
from sottovoce_papers.simulation.regression.designs import paper

Floats = npt.NDArray[np.float64]
SETTING = Setting(paper(2), 0.75, 2.0)
STUDY = replace(SETTING.study(), moments=SETTING.design.second_moments)


def at(people: int, *, known: bool = False, contrasts: Floats | None = None) -> Predicted:
    return predict(replace(STUDY, known=known), people, 0.95, contrasts)


def test_intervals_fall_towards_the_limit() -> None:
    many, few = at(10**8), at(10**4)
    slope = STUDY.density[0] * STUDY.moments
    errors = np.sqrt(np.diag(np.linalg.inv(slope) @ STUDY.omega[0] @ np.linalg.inv(slope)))
    longer = [found.halves[0] / (1.96 * errors / np.sqrt(n)) for found, n in ((many, 10**8), (few, 10**4))]
    assert np.all(longer[0] < 1.2)
    assert np.all(many.doubts < 0.1)
    assert np.all(longer[1] > longer[0])
    assert np.all(few.doubts > many.doubts)


def test_known_moments_leave_less_doubt() -> None:
    assert at(100_000, known=True).doubts.max() < at(100_000).doubts.max()


@pytest.mark.parametrize(("people", "runs"), [(30_000, 7), (100_000, 5)])
def test_the_medians_of_runs_are_met(people: int, runs: int) -> None:
    widths = []
    for die in dice(5).split(runs):
        features, response = SETTING.design.sample(die.generator(), people, SETTING.tau)
        run = DitheredRun(STUDY)
        run.ask(Rows(np.ascontiguousarray(features), response), die, shuffle=False)
        ends = np.array([run.estimate().interval(0, axis, 0.95) for axis in np.eye(3)])
        widths.append((ends[:, 1] - ends[:, 0]) / 2)
    assert at(people).halves[0] == pytest.approx(np.median(widths, axis=0), rel=0.3)


def test_contrasts_are_those_of_the_coefficients() -> None:
    both = at(100_000, contrasts=2 * np.eye(3))
    assert both.halves == pytest.approx(2 * at(100_000).halves)
    assert both.doubts == pytest.approx(at(100_000).doubts)


def test_exact_scores_are_predicted_too() -> None:
    channel = open_channel(0.5, 2)
    omega = 0.25 * STUDY.moments[None]
    exact = replace(STUDY, channel=channel, omega=omega)
    assert predict(exact, 20_000).halves.max() < predict(STUDY, 20_000).halves.min()


def test_an_expected_run_ends_where_it_began() -> None:
    fit = expected_fit(STUDY, 50_000)
    assert fit.people == 50_000
    assert fit.knowledge.moments.matrix == pytest.approx(STUDY.moments, abs=1e-6)
    assert fit.roots[0].place == pytest.approx(STUDY.start[0], abs=0.002)
    assert fit.knowledge.slopes[0].density.value == pytest.approx(float(STUDY.density[0]), rel=0.02)
