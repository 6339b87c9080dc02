"""Alarms of the default: silent on lines, loud at atoms, edges and valleys; doubts only lengthen."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.inference.quantile.inversion import Stage, through
from sottovoce.server.quantile.asking import Decoded
from sottovoce.server.quantile.layouts import KeptStage, Layout
from sottovoce.server.quantile.shape import BEYOND, is_lost, is_odd, leans, reconsidered

WIDE, SLOPE, TAU = np.array([-3.0, 0.0, 3.0]), 0.1, 0.5
Curve = Callable[[Floats], Floats]


def line(x: Floats) -> Floats:
    return TAU + SLOPE * x


def atom(x: Floats, mass: float = 0.4) -> Floats:
    return TAU + SLOPE * x + mass * (x >= 0.45)


def valley(x: Floats) -> Floats:
    return TAU + 0.01 * x + 0.01 * x**3


def heard_of(points: Floats, curve: Curve, error: float) -> Decoded:
    counts = np.ones((1, len(points)), dtype=np.int64)
    return Decoded(points, curve(points), np.full(len(points), error**2), counts, counts)


def asked(offsets: list[float], curve: Curve, error: float = 0.005, spacing: float = 0.5) -> bool:
    pilot = Stage(WIDE, curve(WIDE) - TAU, np.full(3, 0.02**2), 0.01, 3.0, 0.0, 0.0)
    places = spacing * np.array(offsets)
    plan = Layout(spacing, np.array(offsets), np.full(len(offsets), 1 / len(offsets)), 0.0)
    return is_odd(heard_of(places, curve, error), [pilot], TAU, 0.0, SLOPE, plan)


@pytest.mark.parametrize("offsets", [[-1.0, 1.0], [-1.0, 0.0, 1.0], [-2.0, -1.0, 0.0, 1.0, 2.0]])
def test_a_line_raises_no_alarm(offsets: list[float]) -> None:
    assert not asked(offsets, line)
    assert not asked(offsets, lambda x: line(x) + 0.01 * x**2)


@pytest.mark.parametrize("offsets", [[-1.0, 1.0], [-1.0, 0.0, 1.0], [-2.0, -1.0, 0.0, 1.0, 2.0]])
@pytest.mark.parametrize("curve", [atom, valley])
def test_atoms_and_valleys_do(offsets: list[float], curve: Curve) -> None:
    assert asked(offsets, curve)


def test_a_side_that_is_behind_an_atom_is_uneven() -> None:
    def stage(error: float, mass: float = 0.12) -> bool:
        return asked([-1.0, 0.0, 1.0], lambda x: atom(x, mass), error=error)  # too small an atom for the whole slope

    assert stage(0.005)
    assert not stage(0.05)
    assert not stage(0.005, mass=0.03)


def test_noise_is_no_valley() -> None:
    shallow = [-1.0, 1.0], lambda x: valley(x) + 0.04 * x  # half as steep as the pilot saw
    assert asked(*shallow, error=0.001)
    assert not asked(*shallow, error=0.03)


def test_a_middle_far_from_the_level_is_a_surprise_and_further_off_it_is_lost() -> None:
    assert asked([-1.0, 0.0, 1.0], lambda x: line(x) + 0.2 * (abs(x) < 2))
    assert is_lost(heard_of(np.array([-0.1, 0.0, 0.1]), lambda x: line(x) + 0.3, 0.01), TAU)
    assert not is_lost(heard_of(np.array([-0.1, 0.0, 0.1]), lambda x: line(x) + 0.1, 0.01), TAU)


def test_a_pilot_with_all_its_mass_on_one_side_leans() -> None:
    assert not leans(heard_of(WIDE, line, 0.01), WIDE)
    assert leans(heard_of(WIDE, lambda x: line(np.minimum(x, 0.3)), 0.01), WIDE)


def kept_of(points: Floats, curve: Curve, origin: float = 0.0, bend: float = 0.0, spacing: float = 1.0) -> KeptStage:
    places = np.array([through(float(point), origin, bend) for point in points])
    return KeptStage(heard_of(points, curve, 0.001), places, spacing, 0.01, origin, bend)


def test_stages_that_agree_keep_their_allowance() -> None:
    kept = [
        kept_of(WIDE, line, spacing=3.0),
        kept_of(np.array([-0.5, 0.0, 0.5]), line),
        kept_of(np.array([-0.2, 0.2]), line),
    ]
    assert [stage.allowance for stage in reconsidered(kept, 0.05)] == [0.01, 0.01, 0.01]


def test_an_exponential_density_agrees_through_its_lens() -> None:
    def curve(x: Floats) -> Floats:
        return np.asarray(TAU + 0.1 * np.expm1(0.3 * x) / 0.3)

    kept = [kept_of(WIDE, curve, 0.5, 0.3, 3.0), kept_of(np.array([-0.2, 0.2]), curve, 0.0, 0.3, 0.2)]
    assert [stage.allowance for stage in reconsidered(kept, 0.1)] == [0.01, 0.01]


def test_a_stage_across_an_atom_is_doubted_by_what_its_slope_is_wrong() -> None:
    wide, close = kept_of(np.array([-1.0, 1.0]), atom), kept_of(np.array([-0.2, 0.2]), atom, spacing=0.2)
    first, last = reconsidered([wide, close], 0.0)
    error = math.hypot(0.001 * math.sqrt(2) / 2, 0.001 * math.sqrt(2) / 0.4)
    assert first.allowance == pytest.approx(0.2 - BEYOND * error, rel=1e-6)
    assert last.allowance == 0.01
