import math
from typing import Any

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.quantile.asymptotic import asymptotic_variance, schedule_factor, standard_error
from sottovoce.inference.self_normalised.clock import clock

SITES: dict[str, Any] = {
    "tau_at_sites": [0.4, 0.7],
    "densities": [0.3, 0.2],
    "rates": [0.5, 0.9],
    "shares": [0.25, 0.75],
}
COLUMNS = ([0.4, 0.7], [0.3, 0.2], [0.5, 0.9], [0.25, 0.75])


def test_variance_by_hand() -> None:
    top = 0.25**2 * (4.0 - 0.04) + 0.75**2 * (1.0 / 0.81 - 0.16)
    bottom = 4.0 * (0.25 * 0.3 + 0.75 * 0.2) ** 2
    assert asymptotic_variance(**SITES, nu=1.7) == pytest.approx(1.7 * top / bottom, rel=1e-13)


def test_truthful_answers_give_the_variance_of_a_sample_quantile() -> None:
    assert asymptotic_variance([0.3], [0.35], [1.0], [1.0]) == pytest.approx(0.3 * 0.7 / 0.35**2)


def test_printed_oracle_length() -> None:
    # Ten sites, rates from 0.25 to 0.9, standard normal records, tau = 0.5, t_T = 10000: printed 3.452e-2.
    density = 1.0 / math.sqrt(2.0 * math.pi)
    variance = asymptotic_variance([0.5] * 10, [density] * 10, np.linspace(0.25, 0.9, 10), [0.1] * 10)
    assert 2.0 * 1.959964 * math.sqrt(variance / 10_000) == pytest.approx(3.452e-2, abs=5e-6)


def test_standard_error_with_equal_records_is_the_theorem() -> None:
    se = standard_error(*COLUMNS, [400, 400])
    assert se == pytest.approx(math.sqrt(asymptotic_variance(**SITES) / 400), rel=1e-13)


def test_standard_error_splits_over_sites() -> None:
    first = 0.25**2 * (4.0 - 0.04) / (4.0 * 100)
    second = 0.75**2 * (1.0 / 0.81 - 0.16) / (4.0 * 900)
    assert standard_error(*COLUMNS, [100, 900]) == pytest.approx(math.sqrt(first + second) / 0.225)


def test_schedule_factor() -> None:
    assert schedule_factor([3] * 50) == pytest.approx(1.0, rel=1e-14)
    assert math.sqrt(schedule_factor([1] * 500 + [5] * 1900)) == pytest.approx(1.24, abs=0.005)
    # The same number is the energy of the schedule's clock: int g'(r)^2 dr.
    dial = clock([1, 1, 2, 6])
    energy = np.sum(np.diff(dial.rounds) ** 2 / np.diff(dial.noise))
    assert schedule_factor([1, 1, 2, 6]) == pytest.approx(float(energy))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"rates": [0.0, 0.9]}, "rates"),
        ({"rates": [0.5, 1.1]}, "rates"),
        ({"shares": [0.5, 0.6]}, "shares"),
        ({"shares": [-0.5, 1.5]}, "shares"),
        ({"densities": [-0.1, 0.2]}, "densities"),
        ({"densities": [0.0, 0.0]}, "density"),
        ({"densities": [0.1]}, "sites"),
        ({"tau_at_sites": [0.4, 1.2]}, "probabilities"),
        ({"tau_at_sites": [0.4, math.nan]}, "probabilities"),
        ({"tau_at_sites": []}, "probabilities"),
        ({"rates": ["a", "b"]}, "rates"),
        ({"nu": 0.5}, "nu"),
        ({"nu": math.nan}, "nu"),
    ],
)
def test_bad_sites_are_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises(BadInput, match=word):
        asymptotic_variance(**(SITES | change))


def test_empty_sites_have_no_standard_error() -> None:
    with pytest.raises(BadInput, match="site 2 has no records"):
        standard_error(*COLUMNS, [5, 0])
