"""Digits follow the interval's width: its ends and its middle always differ in print, and no digit is in vain."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.core.digits import multiple, number_text, places, span
from sottovoce.core.unit import NUMBER, TRUTH, Unit


@given(st.floats(-1e14, 1e14), st.floats(-12, 12))
def test_low_middle_and_high_differ_wherever_doubles_do(middle: float, power: float) -> None:
    half = 10**power
    low, high = middle - half, middle + half
    if not low + half / 4 < middle < high - half / 4:  # too fine for doubles of this size
        return
    texts = [number_text(value, high - low) for value in (low, middle, high)]
    assert len(set(texts)) == 3
    shown = [float(text.replace(",", "")) for text in texts]
    assert shown == sorted(shown)
    for value, text in zip((low, middle, high), shown, strict=True):
        assert abs(value - text) <= 0.051 * (high - low) + 1e-12 * abs(value)


@pytest.mark.parametrize(
    ("value", "width", "step", "text"),
    [
        (5.0, 2e-6, 0.0, "5.0000000"),
        (120_000_000.0, 2.0, 0.0, "120,000,000.0"),
        (79.8, 3.0, 0.1, "79.8"),
        (52.0, 4.0, 1.0, "52"),
        (52.25, 40.0, 0.25, "52.25"),
        (1234.5, 300.0, 0.0, "1,234"),
        (-0.0001, 1.0, 0.0, "0.0"),
        (3.2e-9, 1e-10, 0.0, "3.2e-09"),
        (3.21e20, 2e18, 0.0, "3.21e+20"),
        (0.00012, math.nan, 0.0, "0.00012"),
        (7.0, 0.0, 0.0, "7"),
        (math.inf, 1.0, 0.0, "inf"),
    ],
)
def test_numbers_as_people_write_them(value: float, width: float, step: float, text: str) -> None:
    assert number_text(value, width, step) == text


def test_an_interval_with_one_end_has_the_width_of_two_halves() -> None:
    assert span(-math.inf, 5.0, 7.0) == 4.0
    assert math.isnan(span(-math.inf, 5.0, math.inf))
    assert places(math.inf) is None


@given(st.integers(-(10**6), 10**6), st.sampled_from([0.1, 0.2, 0.05, 0.01, 1e-3, 1e-6, 0.25, 0.3, 1.0, 5.0, 250.0]))
def test_a_multiple_of_a_step_is_the_short_decimal(count: int, step: float) -> None:
    value = multiple(count, step)
    assert value == pytest.approx(count * step, rel=1e-15, abs=0)
    assert value == float(Decimal(repr(step)) * count)


@pytest.mark.parametrize(
    ("seconds", "width", "text"),
    [
        (3900.0, 600.0, "1 h 05 min"),
        (3905.0, 60.0, "1 h 05 min 05 s"),
        (3600.0, 60.0, "1 h"),
        (3605.0, 60.0, "1 h 00 min 05 s"),
        (59.99, 5.0, "1 min"),
        (5.0, 2e-6, "5.0000000 s"),
        (93784.25, 0.5, "1 day 2 h 03 min 04.25 s"),
        (-90.0, 20.0, "-1 min 30 s"),
    ],
)
def test_durations_are_durations_to_the_digits_of_the_width(seconds: float, width: float, text: str) -> None:
    unit = Unit("duration", "s")
    assert unit.format(seconds, width) == text
    assert unit.parse(text) == pytest.approx(seconds, abs=width / 20)


def test_moments_show_parts_of_a_second_where_the_width_is_one() -> None:
    unit = Unit("datetime", "ms", "+02:00")
    assert unit.format(1367416999.8125, 0.5) == "2013-05-01 16:03:19.81+02:00"
    assert unit.format(1367416999.8125, 50.0) == "2013-05-01 16:03:20+02:00"


def test_numbers_come_back_as_what_they_stand_for() -> None:
    assert str(Unit("duration", "s").value(90.5)) == "90500000 microseconds"
    assert str(Unit("date", "D").value(15826.0)) == "2013-05-01"
    assert str(Unit("datetime", "s").value(86400.0)) == "1970-01-02T00:00:00.000000"
    assert str(Unit("duration").value(math.inf)) == "NaT"
    assert str(Unit("date", "D").width_value(1.5)) == "129600000000 microseconds"
    assert (NUMBER.value(1.5), NUMBER.width_value(1.5), TRUTH.value(1.0), TRUTH.value(math.inf)) == (
        1.5,
        1.5,
        "True",
        None,
    )
