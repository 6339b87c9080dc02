"""Numbers, durations, dates and moments go to float64 and back."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.core.errors import BadInput
from sottovoce.core.shown import hides
from sottovoce.core.time_text import text_of_zone, zone_of
from sottovoce.core.unit import NUMBER, Unit, common_unit

DURATION, DATE, MOMENT = Unit("duration", "s"), Unit("date", "D"), Unit("datetime", "s")
BERLIN = Unit("datetime", "s", "Europe/Berlin")


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (NUMBER, 12.3456789, "12.3457"),
        (NUMBER, 1234567.8, "1,234,568"),
        (NUMBER, -0.00012, "-0.00012"),
        (NUMBER, float("inf"), "inf"),
        (DURATION, 0.25, "0.25 s"),
        (DURATION, 59.4, "59.4 s"),
        (DURATION, 5000.0, "1 h 23 min 20 s"),
        (DURATION, -300.0, "-5 min"),
        (DURATION, 86400.0, "1 day"),
        (DURATION, 2 * 86400.0 + 4 * 3600, "2 days 4 h"),
        (DATE, 15826.0, "2013-05-01"),
        (DATE, 15825.7, "2013-05-01"),
        (DATE, 1e9, "day 1e+09 since 1970-01-01"),
        (MOMENT, 1367416999.8, "2013-05-01 14:03:20"),
        (MOMENT, -1e15, "second -1e+15 since 1970-01-01"),
        (BERLIN, 1367417000.0, "2013-05-01 16:03:20+02:00"),
    ],
)
def test_format(unit: Unit, value: float, text: str) -> None:
    assert unit.format(value) == text


@pytest.mark.parametrize(
    ("unit", "given", "value"),
    [
        (NUMBER, "12.5", 12.5),
        (NUMBER, Decimal("12.5"), 12.5),
        (NUMBER, np.int32(3), 3.0),
        (DURATION, "90min", 5400.0),
        (DURATION, "1.5 h", 5400.0),
        (DURATION, "1h 30m", 5400.0),
        (DURATION, "1:30:00", 5400.0),
        (DURATION, "-1:30:00", -5400.0),
        (DURATION, "2 days 4:00:00", 187200.0),
        (DURATION, "1d", 86400.0),
        (DURATION, "250ms", 0.25),
        (DURATION, "1e-3 s", 1e-3),
        (DURATION, "45", 45.0),
        (DURATION, 45, 45.0),
        (DURATION, dt.timedelta(minutes=90), 5400.0),
        (DURATION, dt.time(1, 30), 5400.0),
        (DURATION, np.timedelta64(90, "m"), 5400.0),
        (DATE, "2013-05-01", 15826.0),
        (DATE, dt.date(2013, 5, 1), 15826.0),
        (DATE, dt.datetime(2013, 5, 1), 15826.0),
        (DATE, np.datetime64("2013-05-01"), 15826.0),
        (DATE, 15826, 15826.0),
        (MOMENT, "2013-05-01", 1367366400.0),
        (MOMENT, "2013-05-01 14:03:20", 1367417000.0),
        (MOMENT, dt.date(2013, 5, 1), 1367366400.0),
        (MOMENT, np.datetime64("2013-05-01T14:03:20"), 1367417000.0),
        (BERLIN, "2013-05-01 16:03:20", 1367417000.0),
        (BERLIN, "2013-05-01T14:03:20Z", 1367417000.0),
        (BERLIN, dt.date(2013, 5, 1), 1367359200.0),
    ],
)
def test_parse(unit: Unit, given: Any, value: float) -> None:
    assert unit.parse(given) == value


@pytest.mark.parametrize(
    ("unit", "given"),
    [
        (NUMBER, "twelve"),
        (NUMBER, True),
        (NUMBER, float("nan")),
        (NUMBER, float("inf")),
        (NUMBER, 10**400),
        (NUMBER, dt.date(2013, 5, 1)),
        (NUMBER, None),
        (DURATION, "90 sheep"),
        (DURATION, ""),
        (DURATION, "1:30"),
        (DURATION, dt.date(2013, 5, 1)),
        (DURATION, np.timedelta64("NaT", "s")),
        (DATE, "yesterday"),
        (DATE, "2013-05-01 14:00"),
        (DATE, dt.timedelta(1)),
        (MOMENT, "2013-05-01T14:03:20Z"),
        (MOMENT, "noon"),
        (MOMENT, np.datetime64("NaT")),
    ],
)
def test_parse_refuses_in_one_sentence_with_the_value(unit: Unit, given: Any) -> None:
    with pytest.raises(BadInput, match=r"^bounds is .*, which is not a .*: give ") as refusal:
        unit.parse(given, where="bounds")
    assert "\n" not in str(refusal.value)


@given(st.integers(-60 * 10**6, 60 * 10**6))
def test_durations_survive_their_text_to_the_second(seconds: int) -> None:
    assert DURATION.parse(DURATION.format(seconds).replace(",", "")) == seconds
    assert DURATION.parse(DURATION.format(seconds)) == seconds


@given(st.dates())
def test_dates_survive_their_text(date: dt.date) -> None:
    assert DATE.format(DATE.parse(date)) == date.isoformat()


@given(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(lambda moment: moment.replace(microsecond=0)))
def test_moments_survive_their_text(moment: dt.datetime) -> None:
    assert MOMENT.parse(MOMENT.format(MOMENT.parse(moment))) == MOMENT.parse(moment)
    aware = moment.replace(tzinfo=dt.UTC)
    assert BERLIN.parse(BERLIN.format(BERLIN.parse(aware))) == BERLIN.parse(aware)


@given(st.integers(-(2**62), 2**62))
def test_nanoseconds_are_rounded_once_not_twice(count: int) -> None:
    seconds = float(Unit("datetime", "ns").to_float(np.array([count]))[0])
    assert abs(Decimal(seconds) - Decimal(count).scaleb(-9)) <= Decimal(float(np.spacing(abs(seconds))))


@pytest.mark.parametrize(
    ("unit", "step"),
    [
        (NUMBER, None),
        (DATE, 1.0),
        (Unit("duration", "m"), 60.0),
        (Unit("duration", "D"), 86400.0),
        (Unit("datetime", "ms"), 1e-3),
        (Unit("datetime", "ns"), 1e-9),
        (Unit("datetime"), None),
    ],
)
def test_resolution(unit: Unit, step: float | None) -> None:
    assert unit.resolution_in_unit == step


def test_names() -> None:
    names = [unit.name for unit in (NUMBER, DURATION, DATE, MOMENT)]
    assert names == ["", "seconds", "days since 1970-01-01", "seconds since 1970-01-01"]


def test_common_unit_takes_the_finest_step_and_utc_for_two_zones() -> None:
    assert common_unit({"a": Unit("duration", "s"), "b": Unit("duration", "ms")}).resolution == "ms"
    assert common_unit({"a": BERLIN, "b": Unit("datetime", "s", "+02:00")}).zone == "UTC"
    assert common_unit({"a": BERLIN, "b": BERLIN}) == BERLIN


def test_common_unit_refuses_two_kinds_and_a_zone_beside_none() -> None:
    with pytest.raises(BadInput, match="site 'a' holds numbers and site 'b' holds durations: give every site the same"):
        common_unit({"a": NUMBER, "b": DURATION})
    with pytest.raises(BadInput, match="site 'b' holds times with a time zone and site 'a' times without one"):
        common_unit({"a": MOMENT, "b": BERLIN})


def test_zones() -> None:
    at = dt.datetime(2013, 5, 1)
    for text in ("UTC", "+02:00", "-03:30", "Europe/Berlin"):
        assert text_of_zone(zone_of(text), at) == text
    with pytest.raises(BadInput, match="the time zone 'Mars/Crater' is not known here: convert the times to UTC"):
        zone_of("Mars/Crater")


@pytest.mark.parametrize(
    "unit", [Unit("number"), Unit("duration", "s"), Unit("date", "D"), Unit("datetime", "s")], ids=str
)
@pytest.mark.parametrize("value", [10**5000, "9" * 5000 + "h", "1e999h", "x" * 10_000, "a\x1b[2J\nb"], ids=lambda _: "")
def test_what_is_too_long_or_steers_is_refused_in_a_short_sentence(unit: Unit, value: object) -> None:
    with pytest.raises(BadInput) as refused:
        unit.parse(value, where="bounds")
    assert len(str(refused.value)) < 250
    assert not hides(str(refused.value))


@pytest.mark.parametrize("zone", ["+99:00", "Mars/Olympus", "\0", "../../etc/passwd", "x" * 9999], ids=ascii)
def test_an_unknown_time_zone_is_refused_on_reading(zone: str) -> None:
    with pytest.raises(BadInput, match="is not known here: convert the times to UTC"):
        Unit("datetime", "s", zone)
