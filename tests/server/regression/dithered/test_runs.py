"""Several runs in one fit: how far sites lie apart moves no root, and does not look like points that swing."""

import numpy as np
import pytest
from tests.server.regression.plans import GUESSES, plan_of, rows_of

from sottovoce.client.regression.rows import Rows
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.protocol.regression.dithered.state import DitheredState, know
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.dithered.root import find_root, square_about
from sottovoce.server.regression.dithered.runs import know_runs
from sottovoce.sim.randomness import dice


@pytest.fixture(scope="module")
def study() -> DitheredStudy:
    plan = plan_of(**GUESSES, epsilon=4.0, channel="cq:3,2")
    [found] = plan.studies(plan.guess(None))
    assert isinstance(found, DitheredStudy)
    return found


def state(study: DitheredStudy, n: int, shift: float = 0.0) -> DitheredState:
    rows, loop = rows_of(n), DitheredRun(study)
    loop.ask(Rows(rows.features(), rows.response() + shift), dice(n))
    return loop.state


def test_one_run_is_what_it_was(study: DitheredStudy) -> None:
    one = state(study, 3_000)
    alone, several = know(study, one), know_runs(study, [one])
    for ours, theirs in zip((*several.windows, several.whole), (*alone.windows, alone.whole), strict=True):
        np.testing.assert_allclose(ours.vectors, theirs.vectors)
        np.testing.assert_allclose(ours.squares, theirs.squares)
    for matrix, own in zip(several.slopes, alone.slopes, strict=True):
        np.testing.assert_allclose(matrix.matrix, own.matrix)
    assert several.curves == alone.curves


def test_the_root_is_the_mean_of_the_roots_by_people(study: DitheredStudy) -> None:
    both = [state(study, 6_000), state(study, 2_000, 0.8)]
    found = know_runs(study, both)
    slope = found.slopes[0].matrix
    roots, people = [], []
    for each in both:
        window = know(study, each).windows[0]
        point, gradient = window.vectors[:, 0] / window.people
        roots.append(study.start[0] + point - np.linalg.solve(slope, gradient))
        people.append(window.people)
    assert abs(roots[1][0] - roots[0][0]) > 0.4
    point, gradient = found.windows[0].vectors[:, 0] / found.windows[0].people
    mean = study.start[0] + point - np.linalg.solve(slope, gradient)
    np.testing.assert_allclose(mean, np.average(roots, axis=0, weights=people))


def test_the_distance_of_sites_is_no_swing_of_points(study: DitheredStudy) -> None:
    swings = []
    for shift in (0.0, 0.8):
        found = know_runs(study, [state(study, 6_000), state(study, 6_500, shift)])
        place = find_root(study, found, 0).place - study.start[0]
        swings.append(square_about(found.windows[0], 0, place, found.moments.matrix))
    assert swings[1] < 2 * swings[0] < 0.04  # half the square of 0.4 is 0.08
