"""Curves of groups of sites: alike they are the test of all, and a group that was absent costs information alone."""

import math

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.inference.quantile.inversion import Stage, curves, information, invert

PLACES = np.array([-1.0, 0.0, 1.0])
PARTS = (0.1, 0.3, 0.6)  # of the records, a stage
SHARES = np.array([0.5, 0.2, 0.3])
OFF, SLOPES = np.array([0.04, -0.1, 0.0]), np.array([0.1, 0.3, 0.2])  # of the groups' lines


def stage(part: float, present: Floats, allowance: float = 1e-3) -> Stage:
    """Return a stage whose groups see their lines; each record has the variance .01 for one of all."""
    values = OFF[:, None] + SLOPES[:, None] * PLACES
    variances = np.where(present[:, None] > 0, np.full((3, 3), 1e-4) / (part * SHARES[:, None]), np.inf)
    return Stage(PLACES, np.where(present[:, None] > 0, values, 0.0), variances, allowance, 1.0, 0.0, 0.0, SHARES)


def together(part: float, allowance: float = 1e-3) -> Stage:
    """Return the same stage of all sites."""
    whole = stage(part, np.ones(3))
    return Stage(PLACES, whole.mixed, SHARES**2 @ whole.variances, allowance, 1.0, 0.0, 0.0)


def test_groups_that_were_in_every_stage_are_one() -> None:
    apart, one = [stage(part, np.ones(3)) for part in PARTS], [together(part) for part in PARTS]
    for at in (-0.7, 0.0, 0.2, 1.3):
        assert information(apart, at) == pytest.approx(information(one, at), rel=1e-12)
    assert invert(apart, 0.0, 2.0, 1.96) == pytest.approx(invert(one, 0.0, 2.0, 1.96), rel=1e-9)


def test_a_group_that_was_absent_keeps_its_share_and_costs_length() -> None:
    whole = invert([together(part) for part in PARTS], 0.0, 2.0, 1.96)
    here = [stage(part, np.array([1.0, 1.0, 1.0 if i < 2 else 0.0])) for i, part in enumerate(PARTS)]
    less = invert(here, 0.0, 2.0, 1.96)
    assert less.point == pytest.approx(whole.point, abs=1e-9)  # lines have no bend to leave out
    assert less.high - less.low > 1.05 * (whole.high - whole.low)
    values, variances = curves(here, 0.0)
    assert values == pytest.approx(OFF)
    assert variances == pytest.approx(1e-4 / (np.array([1.0, 1.0, 0.4]) * SHARES))


def test_what_may_not_cancel_between_groups_counts() -> None:
    """Away from the points polynomials leave something out, by which groups with other stages differ."""
    present = [np.array([1.0, 1.0, 1.0 if i < 2 else 0.0]) for i in range(3)]
    tight, loose = ([stage(part, p, b) for part, p in zip(PARTS, present, strict=True)] for b in (0.0, 0.05))
    at_point, between = (information(loose, at)[1] / information(tight, at)[1] for at in (0.0, 0.5))
    assert at_point == pytest.approx(1.0)
    alike = information([stage(part, np.ones(3), 0.05) for part in PARTS], 0.5)[1]
    assert between < 0.9 * alike / information([stage(part, np.ones(3), 0.0) for part in PARTS], 0.5)[1]


def test_a_group_that_was_in_no_stage_may_be_anything() -> None:
    _, variances = curves([stage(part, np.array([1.0, 1.0, 0.0])) for part in PARTS], 0.0)
    assert variances[2] == 1.0
    found = invert([stage(part, np.array([1.0, 1.0, 0.0])) for part in PARTS], 0.0, 2.0, 1.96)
    assert math.isinf(found.high) or found.high - found.low > 3
