"""What a plan predicts of intervals: the doubt falls with people, and known moments and the truth make them shorter."""

import numpy as np
import pytest

from sottovoce.server.regression.omega import covariates, omega_at
from sottovoce.server.regression.predicted import Predicted, predict
from sottovoce_papers.simulation.regression.default import Setting
from sottovoce_papers.simulation.regression.designs import paper

STUDY = Setting(paper(2), 0.75, 2.0).study()
MOMENTS = paper(2).second_moments
OMEGA = omega_at(STUDY.channel, covariates(2), 0)


def at(people: int, *, known: bool = False, contrasts: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None = None,
) -> Predicted:  # fmt: skip
    return predict(MOMENTS, OMEGA, 0.75, people, STUDY.bit_rate, 1.96, contrasts, known=known)


def test_intervals_fall_towards_the_limit() -> None:
    many, few = at(10**9), at(10**4)
    assert np.all(many.longer < 1.05)
    assert np.all(many.doubt < 0.04)
    assert np.all(few.longer > 1.3)
    assert np.all(few.doubt > many.doubt)
    limit = np.sqrt(np.diag(np.linalg.inv(MOMENTS) @ OMEGA @ np.linalg.inv(MOMENTS)) / 10**9)
    assert many.error == pytest.approx(limit)


def test_known_moments_leave_less_doubt() -> None:
    assert at(100_000, known=True).doubt.max() < at(100_000).doubt.max()


@pytest.mark.parametrize(("people", "measured"), [(30_000, 1.43), (100_000, 1.29), (300_000, 1.23)])
def test_the_measured_lengths_are_met(people: int, measured: float) -> None:
    """Medians over 64 replications, in units of the limit (`python -m benchmarks regression-intervals`)."""
    assert np.median(at(people).longer) == pytest.approx(measured, rel=0.25)


def test_contrasts_are_those_of_the_coefficients() -> None:
    both = at(100_000, contrasts=2 * np.eye(3))
    assert both.error == pytest.approx(2 * at(100_000).error)
    assert both.longer == pytest.approx(at(100_000).longer)
