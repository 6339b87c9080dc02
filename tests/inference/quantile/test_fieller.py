"""Fieller's interval: equivariant, consistent with its test, and infinite when the slope drowns."""

import math
from statistics import NormalDist

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.quantile.fieller import Line, crossing, interval, p_value

LINE = Line(0.0, 0.03, 0.4, -0.05, 1e-4, 2e-3)


def moved(line: Line, location: float, scale: float) -> Line:
    """Return the line when distances are measured from elsewhere in another unit."""
    return Line(
        location + scale * line.centre,
        line.height,
        line.slope / scale,
        scale * line.middle,
        line.floor,
        line.spread / scale**2,
    )


def test_a_sure_slope_gives_the_normal_interval() -> None:
    low, high = interval(Line(5.0, 0.2, 0.5, 0.0, 0.04, 0.0), 0.9)
    half = NormalDist().inv_cdf(0.95) * 0.2 / 0.5
    assert (low, high) == pytest.approx((5.4 - half, 5.4 + half))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_ends_are_where_the_test_changes_its_mind(level: float) -> None:
    low, high = interval(LINE, level)
    assert low < crossing(LINE) < high
    for end, side in ((low, "greater"), (high, "less")):
        assert p_value(LINE, end) == pytest.approx(1 - level, rel=1e-9)
        assert p_value(LINE, end, side) == pytest.approx((1 - level) / 2, rel=1e-9)


def test_the_noise_of_the_slope_widens() -> None:
    sure, noisy = (interval(LINE._replace(spread=spread), 0.95) for spread in (0.0, 2e-3))
    assert noisy[1] - noisy[0] > sure[1] - sure[0]


@pytest.mark.parametrize(("location", "scale"), [(1e8, 1.0), (-3.0, 1e8), (1e8, 1e-3), (0.0, 2.0**-40)])
def test_equivariant(location: float, scale: float) -> None:
    line = moved(LINE, location, scale)
    close = 1e-9 * scale + 3e-8 * (abs(location) > 1e7)
    for mine, theirs in zip(
        (*interval(LINE, 0.95), crossing(LINE)), (*interval(line, 0.95), crossing(line)), strict=True
    ):
        assert theirs == pytest.approx(location + scale * mine, abs=close)
    if abs(location) < 1e7:
        assert p_value(line, location + scale * 0.2) == pytest.approx(p_value(LINE, 0.2), rel=1e-9)


@pytest.mark.parametrize("line", [LINE._replace(slope=0.05), LINE._replace(slope=0.0), LINE._replace(slope=-1.0)])
def test_a_slope_that_drowns_tells_nothing(line: Line) -> None:
    assert interval(line, 0.95) == (-math.inf, math.inf)
    assert p_value(line, 1e9) > 0.05
    assert p_value(line, -1e9) > 0.05


def test_sides_of_the_test() -> None:
    assert p_value(LINE, -1.0, "greater") < 1e-6
    assert p_value(LINE, -1.0, "less") > 1 - 1e-6
    assert p_value(LINE, crossing(LINE)) == pytest.approx(1.0)
    assert p_value(LINE, crossing(LINE), "less") == pytest.approx(0.5)


def test_nonsense_is_refused() -> None:
    with pytest.raises(BadInput, match="level"):
        interval(LINE, 1.0)
    with pytest.raises(BadInput, match="sideways"):
        p_value(LINE, 0.0, "sideways")
