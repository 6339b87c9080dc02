"""Inverting the test: exact where a closed form exists, and root, interval and evidence tell one story."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.inference.quantile.inversion import Stage, back, evidence, invert, root, through

Z = 1.959963984540054


@dataclass(frozen=True)
class Curve:
    """Two stages of three points on a gently bent function, slightly off."""

    shift: float = 0.0
    factor: float = 1.0

    @property
    def stages(self) -> list[Stage]:
        return [self._stage(0.35, 1.0, 4e-4, 0.02, 0.5), self._stage(0.1, 0.3, 1e-4, 0.001, 0.4)]

    def _stage(self, centre: float, spacing: float, variance: float, allowance: float, bend: float) -> Stage:
        places = spacing * np.array([-1.0, 0.0, 1.0])
        points = np.array([back(float(place), centre, bend) for place in places])
        return Stage(
            places * self.factor,
            0.2 * points + 0.02 * points**2 - 0.01 + 0.004 * np.cos(9 * points),
            np.full(3, variance),
            allowance,
            spacing * self.factor,
            self.shift + centre * self.factor,
            bend / self.factor,
        )


def two_points(slope: float, variance: float, height: float = 0.0) -> Stage:
    values = np.array([height - slope, height + slope])
    return Stage(np.array([-1.0, 1.0]), values, np.full(2, variance), 0.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("slope", [0.2, 1.0])
@pytest.mark.parametrize("variance", [1e-6, 1e-3])
def test_two_points_of_a_line_give_the_closed_form(slope: float, variance: float) -> None:
    # L = slope q and V = variance (1 + q^2) / 2, so the edges solve slope^2 q^2 = z^2 variance (1 + q^2) / 2
    noise = Z**2 * variance / 2
    edge = math.sqrt(noise / (slope**2 - noise))
    found = invert([two_points(slope, variance)], 0.3, 2.0, Z)
    assert found.point == pytest.approx(0.0, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((-edge, edge), rel=1e-9)


def test_the_interval_follows_a_height() -> None:
    found = invert([two_points(0.5, 1e-4, height=0.2)], 0.0, 2.0, Z)
    assert found.point == pytest.approx(-0.4)
    assert found.low < -0.4 < found.high
    for edge in (found.low, found.high):
        assert abs(0.2 + 0.5 * edge) == pytest.approx(Z * math.sqrt(1e-4 * (1 + edge**2) / 2), rel=1e-9)


def test_a_slope_lost_in_noise_leaves_the_interval_open() -> None:
    # the test rejects nowhere when slope^2 <= z^2 variance / 2
    variance = 2 * 0.1**2 / Z**2
    assert invert([two_points(0.1, 1.01 * variance)], 0.0, 2.0, Z)[1:] == (-math.inf, math.inf)
    assert math.isfinite(invert([two_points(0.1, 0.8 * variance)], 0.0, 2.0, Z).high)


def test_one_side_may_be_open() -> None:
    # values level off to the right, so nothing there is rejected
    flat = Stage(np.array([-1.0, 0.0, 1.0]), np.array([-0.5, 0.0, 0.05]), np.full(3, 0.01), 0.5, 1.0, 0.0, 0.0)
    found = invert([flat], 0.0, 1.0, Z)
    assert math.isfinite(found.low)
    assert found.high == math.inf


def test_two_stages_at_the_same_points_are_one_with_the_pooled_values() -> None:
    first, second = two_points(0.5, 1e-3, 0.1), two_points(0.4, 3e-3, -0.1)
    values = (3 * first.values + second.values) / 4
    pooled = first._replace(values=values, variances=np.full(2, 0.75e-3))
    assert invert([first, second], 0.0, 2.0, Z) == pytest.approx(invert([pooled], 0.0, 2.0, Z), rel=1e-9)


def test_an_allowance_widens_only_off_the_places() -> None:
    stage = Stage(np.array([-1.0, 0.0, 1.0]), np.array([-0.2, 0.0, 0.2]), np.full(3, 1e-4), 0.0, 1.0, 0.0, 0.0)
    plain = invert([stage], 0.0, 2.0, Z)
    wide = invert([stage._replace(allowance=0.05)], 0.0, 2.0, Z)
    assert wide.low < plain.low < plain.high < wide.high
    assert wide.point == pytest.approx(0.0, abs=1e-12)
    at_place = stage._replace(values=stage.values + 0.2)  # the root is at a place, where nothing is allowed for
    assert root([at_place._replace(allowance=0.05)], 0.0, 2.0) == pytest.approx(-1.0, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.3, 3.5), st.sampled_from([-1, 1]))
def test_the_evidence_at_an_edge_is_its_z(z: float, side: int) -> None:
    stages = Curve().stages
    found = invert(stages, 0.05, 1.0, z)
    edge = found.high if side > 0 else found.low
    assert evidence(stages, 0.05, 1.0, edge) == pytest.approx(side * z, rel=1e-6)


def test_root_and_interval_agree() -> None:
    stages = Curve().stages
    found = invert(stages, 0.05, 1.0, Z)
    assert found.point == root(stages, 0.05, 1.0)
    assert found.low < found.point < found.high
    assert evidence(stages, 0.05, 1.0, found.point) == pytest.approx(0.0, abs=1e-6)


def test_intervals_are_nested_and_evidence_grows() -> None:
    stages = Curve().stages
    edges = [invert(stages, 0.05, 1.0, z) for z in (0.1, 0.7, 1.6, 2.6)]
    lows, highs = [edge.low for edge in edges], [edge.high for edge in edges]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    grown = [evidence(stages, 0.05, 1.0, value) for value in np.linspace(-2.0, 2.0, 41)]
    assert np.all(np.diff(grown) >= -1e-3)  # a scan of 512 steps


def test_a_polynomial_that_turns_back_does_not_reopen_the_interval() -> None:
    # x - .4 x^2 is zero again at 2.5 and negative beyond
    turning = Stage(np.array([-1.0, 0.0, 1.0]), np.array([-1.4, 0.0, 0.6]), np.full(3, 1e-3), 0.0, 1.0, 0.0, 0.0)
    found = invert([turning], 0.0, 1.0, Z)
    assert found.high < 0.2
    halfway = evidence([turning], 0.0, 1.0, 1.0)
    assert halfway > 10 * Z
    for beyond in (2.5, 4.0, 15.0):
        assert evidence([turning], 0.0, 1.0, beyond) == pytest.approx(halfway, rel=0.01)


@pytest.mark.parametrize("near", [-0.9, 0.0, 0.9])
def test_the_root_is_found_from_any_start_nearby(near: float) -> None:
    assert root([two_points(0.5, 1e-3, 0.1)], near, 2.0) == pytest.approx(-0.2)


def test_without_a_root_the_best_end_is_given() -> None:
    assert root([two_points(0.01, 1e-3, 1.0)], 0.0, 2.0) == -2.0


@pytest.mark.parametrize(("shift", "factor"), [(0.0, 2.0**-20), (1024.0, 1.0), (0.0, 2.0**20), (-(2.0**20), 2.0**10)])
def test_shifting_and_scaling_the_points_moves_the_interval_along(shift: float, factor: float) -> None:
    plain = invert(Curve().stages, 0.05, 1.0, Z)
    moved = invert(Curve(shift, factor).stages, shift + factor * 0.05, factor, Z)
    wanted = [shift + factor * value for value in plain]
    assert [abs(a - b) for a, b in zip(moved, wanted, strict=True)] == pytest.approx([0.0] * 3, abs=1e-6 * factor)


def test_mirroring_swaps_the_edges() -> None:
    stage = two_points(0.5, 1e-3, 0.1)
    bent = stage._replace(curvature=0.4, places=np.array([through(x, 0.0, 0.4) for x in (-1.0, 1.0)]))
    mirrored = bent._replace(curvature=-0.4, places=-bent.places[::-1], values=-bent.values[::-1])
    one, two = invert([bent], 0.0, 2.0, Z), invert([mirrored], 0.0, 2.0, Z)
    assert (two.point, two.low, two.high) == pytest.approx((-one.point, -one.high, -one.low), rel=1e-9)


def test_through_its_lens_an_exponential_function_is_inverted_exactly() -> None:
    # F = (exp(.8 x) - 1) / 4 - .1 is zero at log(1.4) / .8
    points = np.array([-1.0, 0.0, 1.0])
    places = np.array([through(float(x), 0.0, 0.8) for x in points])
    stage = Stage(places, np.expm1(0.8 * points) / 4 - 0.1, np.full(3, 1e-4), 0.01, 1.0, 0.0, 0.8)
    assert root([stage], 0.0, 2.0) == pytest.approx(math.log(1.4) / 0.8, rel=1e-12)
