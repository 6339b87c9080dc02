"""From levels to values by a public guess: closed forms, the range over shapes, and bounds that nothing exceeds."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.planner.guess import NO_GUESS, read_guess
from sottovoce.server.shapes import PLAUSIBLE, SHAPES, KnownShape

EVEN = (np.arange(200_000) + 0.5) / 200_000


@pytest.mark.parametrize("shape", [*SHAPES.values(), SHAPES["exponential"].mirrored])
def test_a_shape_is_one_distribution(shape: KnownShape) -> None:
    values = np.array([shape.quantile(u) for u in EVEN[::20]])
    assert np.all(np.diff(values) > 0)
    assert shape.sd == pytest.approx(np.array([shape.quantile(u) for u in EVEN]).std(), rel=0.01)
    for tau in (0.1, 0.5, 0.9):
        slope = (shape.quantile(tau + 1e-5) - shape.quantile(tau - 1e-5)) / 2e-5
        assert shape.density(tau) * slope == pytest.approx(1, rel=1e-4)
    assert shape.iqr == shape.between(0.25, 0.75)


def test_widths_are_those_of_the_quantile_function() -> None:
    normal = NormalDist(0, 15)
    told = read_guess(None, 15, None, None, None).told(0.9, 0.88, 0.92)
    assert told.value == pytest.approx(normal.inv_cdf(0.92) - normal.inv_cdf(0.88))
    assert told.shortest <= told.value <= told.longest
    known = read_guess(None, None, 10, None, "exponential").told(0.5, 0.4, 0.6)
    assert known == (known.value,) * 3
    assert known.value == pytest.approx(10 / math.log(3) * math.log(0.6 / 0.4))


def test_with_the_density_at_the_quantile_shapes_hardly_matter() -> None:
    told = read_guess(None, None, None, 0.02, None).told(0.9, 0.89, 0.91)
    assert told.value == pytest.approx(1.0, rel=0.02)
    assert told.longest < 1.03 * told.shortest
    loose = read_guess(None, 15, None, None, None).told(0.9, 0.89, 0.91)
    assert loose.longest > 2 * loose.shortest


@pytest.mark.parametrize("tau", [0.05, 0.5, 0.95])
def test_the_guessed_density_belongs_to_the_guess(tau: float) -> None:
    for at in range(3):
        sd, iqr, density = (3.0 if at == place else None for place in range(3))
        guess = read_guess(None, sd, iqr, density, None)
        near = guess.told(tau, tau - 1e-5, tau + 1e-5).value
        assert guess.density(tau) == pytest.approx(2e-5 / near, rel=1e-3)
    assert NO_GUESS.density(tau) is None


def test_nothing_is_wider_than_the_bounds() -> None:
    assert read_guess((0, 120), None, None, None, None).told(0.5, 0.0, 1.0) == (120, 120, 120)
    assert read_guess((0, 120), 20, None, None, None).told(0.9, 0.5, 1.0).value == 120
    assert math.isinf(read_guess(None, 20, None, None, None).told(0.9, 0.5, 1.0).value)
    assert len(PLAUSIBLE) == len(SHAPES) + 1


@pytest.mark.parametrize(("bounds", "sd", "iqr"), [(None, -1, None), (None, None, math.inf), ((1, 1), None, None)])
def test_guesses_that_say_nothing_are_refused(bounds: object, sd: object, iqr: object) -> None:
    with pytest.raises(BadInput):
        read_guess(bounds, sd, iqr, None, None)
