"""The normal distribution agrees with tabled values, far into the tails, and its p-values with each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from sottovoce.inference.common.normal import below, p_value, two_sided


@pytest.mark.parametrize(("level", "z"), [(0.5, 0.674490), (0.9, 1.644854), (0.95, 1.959964), (0.99, 2.575829)])
def test_two_sided_values(level: float, z: float) -> None:
    assert two_sided(level) == pytest.approx(z, abs=1e-6)


@given(st.floats(-37, 37))
def test_below_is_accurate_in_both_tails(z: float) -> None:
    assert below(z) == pytest.approx(float(ndtr(z)), rel=1e-9)


@given(st.floats(-8, 8))
def test_p_values_fit_together(z: float) -> None:
    greater, less, both = (p_value(z, name) for name in ("greater", "less", "two-sided"))
    assert greater + less == pytest.approx(1.0)
    assert both == pytest.approx(2 * min(greater, less))
    assert both <= 1.0


@given(st.floats(0.01, 0.999))
def test_the_edge_of_an_interval_has_the_p_value_of_its_level(level: float) -> None:
    assert p_value(two_sided(level), "two-sided") == pytest.approx(1 - level, rel=1e-6)
