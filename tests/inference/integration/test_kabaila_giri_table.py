import hashlib
import importlib.util
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.special import ndtr

from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.common.normal import two_sided
from sottovoce.inference.integration import kabaila_giri
from sottovoce.inference.integration.kabaila_giri import (
    LEVELS,
    RATIOS,
    ShapeRow,
    blend,
    interval_untrusted,
    shape,
    table,
)

SCRIPT = Path(__file__).parents[3] / "scripts" / "solve_kabaila_giri.py"
SHIFTS = np.arange(0.0, 12.0, 0.1)
# What the script leaves short at most, on its finer grids, is 2e-5.
SHORT = 5e-5
every_level = pytest.mark.parametrize("level", LEVELS)


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("solve_kabaila_giri", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load()
coverage, density, given_source, mean_length = (
    getattr(script, name) for name in ("coverage", "density", "given_source", "mean_length")
)


@every_level
@pytest.mark.parametrize(
    "ratio", [0.0, 0.003, 0.0071, 0.013, 0.03, 0.07, 0.27, 0.77, 1.35, 2.3, 4.1, 14.0, 63.0, 200.0]
)
def test_the_coverage_holds_whatever_the_shift_between_the_ratios_too(level: float, ratio: float) -> None:
    assert coverage(blend(table(level), ratio), level, ratio, SHIFTS).min() > level - SHORT


@every_level
def test_no_more_than_three_percent_longer_and_shorter_without_a_shift(level: float) -> None:
    for ratio, row in zip(RATIOS, table(level), strict=True):
        lengths = mean_length(row, SHIFTS)
        assert lengths.max() < 1.03 + SHORT
        assert lengths[0] < (0.963 if ratio <= 5 else 0.972 if ratio <= 10 else 1 - 0.2 / ratio if ratio < 100 else 1.1)


def given_the_difference(level: float, ratio: float, shift: float) -> tuple[float, float]:
    """Return coverage and mean length from what a caller sees, integrated over the difference instead of the source."""
    # The target errs by N(-(w - shift) / root, ratio / root^2) given the difference w, in its standard errors.
    root, step = math.sqrt(1 + ratio), 0.004
    w = shift + np.arange(-8.0, 8.0, step)
    shapes = [shape(level, ratio, abs(each)) for each in w]
    centre = np.array([each.pull for each in shapes]) * w / root - (w - shift) / root
    half, spread = two_sided(level) * np.array([each.inflation for each in shapes]), math.sqrt(ratio) / root
    chance = ndtr((half - centre) / spread) - ndtr((-half - centre) / spread)
    weights = step * density(w - shift)
    return float(weights @ chance), float(weights @ half) / two_sided(level)


@pytest.mark.parametrize(
    ("level", "ratio"), [(0.95, 0.04), (0.95, 0.5), (0.95, 7.0), (0.8, 1.3), (0.9, 0.1), (0.99, 3.0)]
)
def test_both_ways_to_integrate_agree(level: float, ratio: float) -> None:
    shifts = np.array([0.0, 0.7, 1.9, 3.3, 6.1])
    row = blend(table(level), ratio)
    expected = [given_the_difference(level, ratio, shift) for shift in shifts]
    found = np.stack([coverage(row, level, ratio, shifts), mean_length(row, shifts)], axis=1)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@every_level
@pytest.mark.parametrize("source", [0.0, 0.45, 1.1, 2.0, 3.1, -4.4, 7.5])
def test_an_untrusted_source_may_say_what_it_likes(level: float, source: float) -> None:
    # A fixed source makes the coverage the probability of a set of errors; its edges are off by a step at most.
    errors, step = np.linspace(-7.0, 7.0, 3501), 0.004
    inside = []
    for error in errors:
        target = SiteEstimate(float(error), 1.0)
        low, high = interval_untrusted(target, target.interval(level), source, level)
        inside.append(low <= 0.0 <= high)
    chance = step * float(density(errors) @ np.array(inside))
    assert chance == pytest.approx(given_source(table(level)[0], level, 0.0, np.array([source]))[0], abs=1.5e-3)
    assert given_source(table(level)[0], level, 0.0, np.array([source]))[0] > level - SHORT


def test_a_shrunk_interval_is_seen_to_cover_too_little() -> None:
    row = table(0.95)[8]
    shrunk = ShapeRow(row.move, (*(0.99 * each for each in row.inflation[:-1]), 1.0), row.last)
    assert coverage(shrunk, 0.95, RATIOS[8], SHIFTS).min() < 0.9485
    moved = ShapeRow((0.0, *(each + 0.2 for each in row.move[1:-1]), 0.0), row.inflation, row.last)
    assert coverage(moved, 0.95, RATIOS[8], SHIFTS).min() < 0.949


@every_level
def test_the_targets_own_interval_covers_exactly(level: float) -> None:
    for ratio in (0.0, 0.3, 20.0):
        np.testing.assert_allclose(coverage(table(level)[-1], level, ratio, SHIFTS), level, atol=1e-9)
    np.testing.assert_allclose(mean_length(table(level)[-1], SHIFTS), 1.0, atol=1e-12)


def test_the_table_is_as_its_script_writes_it() -> None:
    assert Path(kabaila_giri.__file__).with_name("kabaila_giri.csv") == script.TABLE
    assert script.written({level: table(level) for level in LEVELS}) == script.TABLE.read_text()


def test_the_stored_numbers_are_those_that_were_verified() -> None:
    rows = [(*row.move[1:-1], *row.inflation[:-1]) for level in LEVELS for row in table(level)]
    digest = hashlib.sha256(",".join(value.hex() for row in rows for value in row).encode()).hexdigest()
    assert digest == "9c2c51320cc858b62e615dd386a25a3a171555defc590193bc28d96bbd125e70"
    assert {(len(row), row[-1]) for level in LEVELS for row in (table(level)[0].move, table(level)[0].inflation)} == {
        (21, 0.0),
        (21, 1.0),
    }


def test_the_script_verifies_the_stored_table_and_notices_a_broken_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(script, "SHIFTS", np.arange(0.0, 9.0, 0.25))
    monkeypatch.setattr(script, "report", lines.append)
    assert script.verify(0.95, table(0.95))
    assert len(lines) == len(script.places()) + 1
    short = [row._replace(inflation=(*(0.998 * each for each in row.inflation[:-1]), 1.0)) for row in table(0.95)]
    long = [row._replace(inflation=(*(each + 0.01 for each in row.inflation[:-1]), 1.0)) for row in table(0.95)]
    assert not script.verify(0.95, [table(0.95)[0], *short[1:]])
    assert not script.verify(0.95, long)


@pytest.mark.parametrize(("level", "ratio"), [(0.95, 1.0), (0.9, 0.2)])
def test_the_script_solves_a_row_anew(level: float, ratio: float) -> None:
    row = script.solve(level, ratio, 0.0 * script.SHIFTS)
    stored = table(level)[RATIOS.index(ratio)]
    assert coverage(row, level, ratio, SHIFTS).min() > level - SHORT
    assert mean_length(row, SHIFTS).max() < 1.03 + SHORT
    # The stored row pays a little, at most 0.2 %, for the coverage between the ratios.
    paid = mean_length(stored, np.zeros(1))[0] - mean_length(row, np.zeros(1))[0]
    assert -1e-4 < paid < 2e-3


def test_the_script_sees_coverage_and_slopes_as_they_are() -> None:
    problem, row = script.Problem(0.95, 0.35, 0.35), table(0.95)[6]
    curve = np.array([*row.move, *row.inflation])
    covered, slopes = problem.near(curve)
    np.testing.assert_allclose(covered + problem.far, coverage(row, 0.95, 0.35, problem.shifts), atol=1e-6)
    for k in (3, 9, 22, 33):
        nudge = 1e-5 * (np.arange(curve.size) == k)
        change = problem.near(curve + nudge)[0] - problem.near(curve - nudge)[0]
        np.testing.assert_allclose(change / 2e-5, slopes[:, k], atol=1e-6)
