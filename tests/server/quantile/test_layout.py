"""A stage's points: symmetric, all records placed, narrower as the noise falls, the same in every unit."""

import numpy as np
import pytest

from sottovoce.server.quantile.layout import Layout, five, three

NOISES = [1e-4, 1e-3, 5e-3, 0.02]


def both(noise: float, tail: float, slope: float = 1.0, widest: float = np.inf) -> list[Layout]:
    return [three(noise, tail, slope, widest), five(noise, tail, slope, widest, 1.0)]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("tail", [0.05, 0.5])
def test_all_records_are_placed_symmetrically(noise: float, tail: float) -> None:
    for n, plan in zip((3, 5), both(noise, tail), strict=True):
        assert len(plan.offsets) == len(plan.parts) == n
        assert plan.parts.sum() == pytest.approx(1.0, abs=1e-14)
        assert np.all(plan.parts > 0)
        assert plan.parts == pytest.approx(plan.parts[::-1])
        assert plan.offsets == pytest.approx(-plan.offsets[::-1])
        assert plan.spacing > 0
        assert plan.allowance > 0
        assert np.all(np.diff(plan.offsets) == 1)


def test_less_noise_narrows_the_points_and_favours_the_middle() -> None:
    for layouts in zip(*(both(noise, 0.5) for noise in NOISES), strict=True):
        spacings, middles = [plan.spacing for plan in layouts], [plan.parts[len(plan.parts) // 2] for plan in layouts]
        assert spacings == sorted(spacings)
        assert spacings[0] < spacings[-1]
        assert middles == sorted(middles, reverse=True)
        assert middles[0] > middles[-1]


def test_points_hold_mass_within_the_tail() -> None:
    for noise in NOISES:
        for plan in both(noise, 0.1, slope=7.0):
            assert 7.0 * plan.spacing * plan.offsets[-1] <= 0.1


def test_the_unit_of_the_records_only_scales_the_spacing() -> None:
    for plain, scaled in zip(both(1e-3, 0.3, 2.0), both(1e-3, 0.3, 2.0e-6), strict=True):
        assert scaled.spacing == pytest.approx(1e6 * plain.spacing)
        assert scaled.parts.tolist() == plain.parts.tolist()
        assert scaled.allowance == pytest.approx(plain.allowance)


def test_no_point_beyond_the_widest() -> None:
    assert [plan.spacing for plan in both(1e-3, 0.3, 2.0, widest=1e-5)] == [1e-5, 1e-5]


def test_steep_shoulders_narrow_five_points() -> None:
    assert five(1e-3, 0.3, 1.0, np.inf, 0.5).spacing == pytest.approx(0.5 * five(1e-3, 0.3, 1.0, np.inf, 1.0).spacing)
