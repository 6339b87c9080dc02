import hashlib
import importlib.util
import math
from pathlib import Path
from types import ModuleType

import mpmath
import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.regression import vector_normalised
from sottovoce.inference.regression.vector_normalised import (
    coefficients,
    density,
    ellipsoid_p_value,
    ellipsoid_value,
    mass,
    mean_square,
    plane_tail,
    radius,
)
from sottovoce.inference.self_normalised.critical_values import critical_value, p_value
from sottovoce.sim import dice

DIMENSIONS = range(1, 21)
SCRIPT = Path(__file__).parents[3] / "scripts" / "make_ellipsoid_table.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_ellipsoid_table", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def relative_errors() -> dict[int, float]:
    lines = Path(vector_normalised.__file__).with_name(vector_normalised.TABLE).read_text().splitlines()[1:]
    return {int(line.split(",")[0]): float(line.split(",")[1]) for line in lines}


def test_the_table_is_as_its_script_writes_it(script: ModuleType) -> None:
    assert Path(vector_normalised.__file__).with_name("ellipsoid.csv") == script.TABLE
    assert script.written(coefficients(), relative_errors()) == script.TABLE.read_text()


def test_the_stored_numbers_are_those_that_were_simulated() -> None:
    digest = hashlib.sha256(",".join(value.hex() for row in coefficients().values() for value in row).encode())
    assert digest.hexdigest() == "d042fd263bbafcb3ed9d8454fb7555a6bd9c378f56b0ee39762da645c42fe5a9"


@pytest.mark.slow
@pytest.mark.parametrize(("d", "within"), [(2, 3e-3), (3, 2e-3), (12, 6e-4)])
def test_the_script_makes_the_values_anew(script: ModuleType, d: int, within: float) -> None:
    # Seven or more standard errors of the 80,000 paths that `make` takes at least.
    smooth, error = script.make(d, 40_000)
    assert error < within / 7
    assert radius(0.95, d, smooth) ** 2 == pytest.approx(ellipsoid_value(0.95, d), rel=within)


@pytest.mark.parametrize(("level", "value"), [(0.9, 71.1955), (0.95, 103.4168), (0.975, 140.2355), (0.99, 195.7873)])
def test_the_plane_has_the_values_of_a_two_dimensional_quadrature(level: float, value: float) -> None:
    assert ellipsoid_value(level, 2) == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("r", [0.01, 0.5, 5.0, 10.17, 30.0])
def test_the_planes_integrals_are_good_to_nine_digits(r: float) -> None:
    def s(a: mpmath.mpf) -> mpmath.mpf:
        return mpmath.sqrt(a / mpmath.sinh(a))

    def gap(y: mpmath.mpf) -> mpmath.mpf:
        return (1 - s(r * mpmath.cos(y))) / mpmath.cos(y) ** 2

    with mpmath.workdps(30):
        far = [0, 0.5, 1, 2, 5, 20]
        outer = [mpmath.quad(lambda x, k=k: s(r * mpmath.cosh(x)) / mpmath.cosh(x) ** k, far) for k in (0, 2)]
        inner = mpmath.quad(lambda y: s(r * mpmath.cos(y)), [0, 1, 1.5, mpmath.pi / 2])
        edge = mpmath.pi / 2 - mpmath.mpf(10) ** -6
        bend = mpmath.quad(gap, [0, 0.8, 1.3, 1.5, edge]) + r**2 / 12 * mpmath.mpf(10) ** -6
        reference = 2 / mpmath.pi * (outer[1] * inner + outer[0] * bend)
    assert plane_tail(r) == pytest.approx(float(reference), rel=1e-9)


def test_the_plane_agrees_with_its_own_derivation() -> None:
    # P(Q > q) = (4/pi) int int -d/dy [S(alpha) S(beta)] du dv, y = v^2, alpha^2 + beta^2 = r^2 + 2 u^2 + 2 v^2 and
    # alpha beta = sqrt(2) v r: the average of exp(-q/2 residual) before the change to elliptic coordinates.
    r = 10.0
    u = (np.arange(600) + 0.5) * 0.03
    v = (np.arange(2400) + 0.5) * 0.01

    def both(y: np.ndarray) -> np.ndarray:
        total = r**2 + 2 * u[:, None] ** 2 + 2 * y
        gap = np.sqrt(total**2 - 8 * y * r**2)
        alpha, beta = np.sqrt((total + gap) / 2), np.sqrt(4 * y * r**2 / (total + gap))
        logs = sum(0.5 * (np.log(2 * a) - a - np.log(-np.expm1(-2 * a))) for a in (alpha, beta))
        return np.asarray(np.exp(logs))

    step = 1e-5 * (1 + v**2)
    slope = (both(v**2 + step) - both(np.maximum(v**2 - step, 1e-12))) / (step + v**2 - np.maximum(v**2 - step, 1e-12))
    tail = 4 / math.pi * float(-np.sum(slope)) * 0.03 * 0.01
    assert plane_tail(r) == pytest.approx(tail, rel=1e-4)


def test_one_dimension_is_the_square_of_the_scalar_law() -> None:
    assert ellipsoid_value(0.95, 1) == critical_value(0.95) ** 2
    assert ellipsoid_p_value(45.5, 1) == p_value(math.sqrt(45.5))


@pytest.mark.parametrize(("d", "noted", "error"), [(3, 175.06, 0.17), (6, 467.20, 0.36), (9, 866.44, 0.48)])
def test_the_table_agrees_with_an_independent_simulation(d: int, noted: float, error: float) -> None:
    # The other simulation's own standard error, doubled as its scatter asks.
    assert abs(ellipsoid_value(0.95, d) - noted) < 4.9 * error


@pytest.mark.parametrize(("d", "printed"), [(2, 103.584), (3, 174.998), (6, 464.956), (9, 864.991)])
def test_the_printed_values_are_within_their_noise(d: int, printed: float) -> None:
    # A quantile of 200,000 paths has standard error sqrt(.05 .95 / 200,000) / density; false-alarm rate 1e-6.
    value = ellipsoid_value(0.95, d)
    slope = (ellipsoid_p_value(0.999 * value, d) - ellipsoid_p_value(1.001 * value, d)) / (0.002 * value)
    assert abs(printed - value) < 4.9 * math.sqrt(0.05 * 0.95 / 200_000) / slope


@pytest.mark.parametrize("d", [3, 8])
def test_bridges_on_a_grid_exceed_the_value_as_often_as_it_says(d: int) -> None:
    # A third route, with no expansion: 4000 walks of 500 steps; 4.9 standard errors are a false alarm in 1e6.
    generator, n, runs = dice(d).generator(), 500, 4000
    beyond = 0
    for _ in range(runs):
        path = np.cumsum(generator.standard_normal((n, d)), axis=0) / math.sqrt(n)
        bridge = path - np.linspace(1 / n, 1, n)[:, None] * path[-1]
        beyond += path[-1] @ np.linalg.solve(bridge.T @ bridge / n, path[-1]) > ellipsoid_value(0.8, d)
    assert abs(beyond / runs - 0.2) < 4.9 * math.sqrt(0.2 * 0.8 / runs)


def test_the_simulated_part_is_smooth_and_the_same_from_dimension_to_dimension() -> None:
    assert set(coefficients()) == set(relative_errors()) == set(range(3, 21))
    assert max(relative_errors().values()) <= 5e-5
    for row in coefficients().values():
        assert max(abs(c) for c in row[-4:]) < 1e-5
    # Fourth differences of log value: a slip in one dimension stands out.
    logs = np.log([ellipsoid_value(0.95, d) for d in range(3, 21)])
    assert np.all(np.diff(logs, 4)[:-1] < 0)
    assert np.abs(np.diff(logs, 4)[6:]).max() < 7e-4


@pytest.mark.parametrize("d", DIMENSIONS)
def test_values_rise_with_the_level_and_the_dimension(d: int) -> None:
    levels = [1e-6, 0.1, 0.5, 0.8, 0.9, 0.925, 0.95, 0.975, 0.98, 0.99, 0.995, 0.999, 1 - 1e-7]
    values = [ellipsoid_value(level, d) for level in levels]
    assert np.all(np.diff(values) > 0)
    for level, value in zip(levels, values, strict=True):
        assert ellipsoid_p_value(value, d) == pytest.approx(1 - level, rel=1e-6)
        assert d == 1 or value > ellipsoid_value(level, d - 1)


def test_the_density_sums_to_the_same_whatever_the_panels() -> None:
    smooth = coefficients()[12]
    parts = mass(0.0, 20.0, 12, smooth) + mass(20.0, 47.0, 12, smooth) + mass(47.0, 300.0, 12, smooth)
    assert parts == pytest.approx(mass(0.0, 300.0, 12, smooth), rel=1e-12)
    assert (
        density(np.array([150.0]), 20, coefficients()[20])[0]
        < 1e-12 * density(np.array([40.0]), 20, coefficients()[20])[0]
    )
    series = sum(1 / ((math.pi * k) ** 2 + 9.0) for k in range(1, 200_000))
    assert mean_square(np.array([3.0]))[0] == pytest.approx(series, rel=1e-5)
    assert mean_square(np.array([0.1 - 1e-12]))[0] == pytest.approx(mean_square(np.array([0.1]))[0], rel=1e-8)
    assert radius(0.95, 2) ** 2 == ellipsoid_value(0.95, 2)


def test_ends_of_the_law() -> None:
    for d in (1, 2, 3, 20):
        assert ellipsoid_p_value(0.0, d) == 1.0
        assert ellipsoid_p_value(math.inf, d) == 0.0
        assert 0.0 <= ellipsoid_p_value(1e5, d) < 1e-40


@pytest.mark.parametrize("d", [0, -1, 21, 2.5, True])
def test_dimensions_without_a_table_are_refused(d: int) -> None:
    with pytest.raises(BadInput, match="1 to 20 dimensions"):
        ellipsoid_value(0.95, d)


def test_bad_levels_and_statistics_are_refused() -> None:
    with pytest.raises(BadInput, match="strictly between 0 and 1"):
        ellipsoid_value(95, 3)
    for statistic in (-1.0, math.nan):
        with pytest.raises(BadInput, match="statistic"):
            ellipsoid_p_value(statistic, 3)
