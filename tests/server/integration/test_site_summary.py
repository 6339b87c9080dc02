"""A site that gives numbers only: what they become, and which are refused, in one sentence each."""

import dataclasses
import importlib
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.server.integration.site_summary import NAMES, SiteSummary, summary_from

NAN, INF = math.nan, math.inf
pickle: Any = importlib.import_module("pickle")


def test_a_standard_error_is_taken_as_it_is() -> None:
    assert SiteSummary(5.1, 0.2).measured() == SiteEstimate(5.1, 0.2, 30.0)
    assert SiteSummary(5.1, 0.2, n=12).measured().df == 11
    assert SiteSummary(5.1, 0.2, df=7.5).measured().df == 7.5
    assert SiteSummary(5.1, 0.2, df=INF).measured().interval(0.95)[1] == pytest.approx(5.1 + 0.2 * 1.959964)
    assert SiteSummary(5.1, 0.2, n=12, df=4).measured().df == 4


def test_an_interval_becomes_its_longer_half_over_z() -> None:
    assert SiteSummary(5.0, interval=(4.0, 6.0)).measured().std_error == pytest.approx(1 / 1.959964)
    assert SiteSummary(5.0, interval=(4.5, 7.0)).measured().std_error == pytest.approx(2 / 1.959964)
    assert SiteSummary(5.0, interval=(1.0, 5.0)).measured().std_error == pytest.approx(4 / 1.959964)
    wider = SiteSummary(5.0, interval=(4.0, 6.0), interval_level=0.99).measured()
    assert wider.std_error == pytest.approx(1 / 2.575829)


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 1e3),
    st.floats(0.5, 0.999),
    st.one_of(st.none(), st.floats(1, 1e6)),
)
def test_the_interval_that_is_used_contains_the_published_one(
    estimate: float, below: float, above: float, level: float, df: float | None
) -> None:
    published = (estimate - below, estimate + above)
    told = SiteSummary(estimate, interval=published, interval_level=level, df=df).measured()
    low, high = told.interval(level)
    slack = 1e-9 * (abs(estimate) + below + above)
    assert low <= published[0] + slack
    assert high >= published[1] - slack


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.integers(-1000, 1000), st.sampled_from([0.25, 2.0, 64.0]))
def test_a_shift_and_a_scale_move_a_summary_with_them(estimate: float, half: float, shift: int, scale: float) -> None:
    ends = (estimate - half, estimate + 2 * half)
    plain = SiteSummary(estimate, interval=ends).measured()
    moved = SiteSummary(
        (estimate + shift) * scale, interval=((ends[0] + shift) * scale, (ends[1] + shift) * scale)
    ).measured()
    assert moved.std_error == pytest.approx(plain.std_error * scale, abs=1e-8 * scale)
    assert moved.df == plain.df


def test_an_error_that_is_not_trusted_is_endless() -> None:
    for summary in (
        SiteSummary(5.1, trusted=False),
        SiteSummary(5.1, 0.2, trusted=False),
        SiteSummary(5.1, interval=(5.0, 5.2), n=10, trusted=False),
    ):
        assert summary.measured().estimate == 5.1
        assert summary.measured().std_error == INF
        assert not summary.trusted


def test_numbers_of_other_types_become_plain_ones() -> None:
    told = SiteSummary(np.float32(2.0), np.int64(1), n=np.int32(9), interval_level=np.float64(0.9))  # type: ignore[arg-type]
    assert [type(each) for each in (told.estimate, told.se, told.n, told.interval_level)] == [float, float, int, float]
    assert SiteSummary(2, interval=np.array([1, 3])).interval == (1.0, 3.0)  # type: ignore[arg-type]
    assert SiteSummary(2, interval=[1, 3]).interval == (1.0, 3.0)  # type: ignore[arg-type]
    assert SiteSummary(2.0, 1.0, n=9.0).n == 9  # type: ignore[arg-type]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "endless estimate": ({"estimate": INF, "se": 1}, "the estimate of a summary must be finite"),
    "no number": ({"estimate": NAN, "se": 1}, "the estimate of a summary must be a number, not nan"),
    "text": ({"estimate": "5", "se": 1}, "the estimate of a summary must be a number, not '5'"),
    "truth": ({"estimate": True, "se": 1}, "must be a number, not True"),
    "missing": ({"estimate": None, "se": 1}, "must be a number, not None"),
    "se zero": ({"estimate": 5, "se": 0}, "standard error of a summary must be positive and finite, not 0"),
    "se negative": ({"estimate": 5, "se": -1}, "must be positive and finite, not -1"),
    "se nan": ({"estimate": 5, "se": NAN}, "the standard error of a summary must be a number, not nan"),
    "se endless": ({"estimate": 5, "se": INF}, "must be positive and finite, not inf"),
    "se without a square": ({"estimate": 5, "se": 1e-200}, "must be positive and finite"),
    "se bad though not trusted": ({"estimate": 5, "se": -1, "trusted": False}, "must be positive and finite"),
    "df": ({"estimate": 5, "se": 1, "df": 0.5}, "df of a summary must be at least 1, not 0.5"),
    "df nan": ({"estimate": 5, "se": 1, "df": NAN}, "df of a summary must be a number"),
    "one record": ({"estimate": 5, "se": 1, "n": 1}, "n of a summary must be a whole number of at least 2, not 1"),
    "half a record": ({"estimate": 5, "se": 1, "n": 2.5}, "a whole number of at least 2, not 2.5"),
    "endless records": ({"estimate": 5, "se": 1, "n": INF}, "a whole number of at least 2, not inf"),
    "neither": ({"estimate": 5}, "neither se nor interval; give one, or trusted=False"),
    "both": ({"estimate": 5, "se": 1, "interval": (4, 6)}, "both se and interval"),
    "outside": ({"estimate": 5, "interval": (6, 7)}, "6 to 7, does not contain its estimate 5; check both"),
    "reversed": ({"estimate": 5, "interval": (6, 4)}, "runs from 6 to 4; give the smaller end first"),
    "no width": ({"estimate": 5, "interval": (5, 5)}, "runs from 5 to 5"),
    "endless end": ({"estimate": 5, "interval": (4, INF)}, "the high end of a summary's interval must be finite"),
    "nan end": ({"estimate": 5, "interval": (NAN, 6)}, "the low end of a summary's interval must be a number"),
    "one end": ({"estimate": 5, "interval": (4,)}, "must be its low and its high end"),
    "a width": ({"estimate": 5, "interval": 0.4}, "must be its low and its high end, not 0.4"),
    "no array": ({"estimate": 5, "interval": np.array(0.4)}, "must be its low and its high end"),
    "an interval of text": ({"estimate": 5, "interval": "46"}, "must be its low and its high end, not '46'"),
    "a set": ({"estimate": 5, "interval": {4, 6}}, "must be its low and its high end"),
    "level in per cent": (
        {"estimate": 5, "interval": (4, 6), "interval_level": 95},
        "strictly between 0 and 1, not 95",
    ),
    "level one": ({"estimate": 5, "interval": (4, 6), "interval_level": 1}, "strictly between 0 and 1, not 1"),
    "level nan": ({"estimate": 5, "interval": (4, 6), "interval_level": NAN}, "interval_level of a summary must be"),
    "trust": ({"estimate": 5, "se": 1, "trusted": "no"}, "trusted of a summary must be true or false, not 'no'"),
}


@pytest.mark.parametrize(("values", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said_in_one_sentence(values: dict[str, Any], said: str) -> None:
    for make in (lambda: SiteSummary(**values), lambda: summary_from(values, "source 'north'")):
        refused: Callable[[], SiteSummary] = make
        with pytest.raises(BadInput) as caught:
            refused()
        assert said in str(caught.value)
        assert str(caught.value).endswith(".")
        assert str(caught.value).count(". ") == 0
    assert str(caught.value).startswith("source 'north': ")


def test_a_summary_is_read_from_json() -> None:
    told = summary_from(json.loads('{"estimate": 5.1, "interval": [4.9, 5.4], "n": 80, "trusted": true}'), "target")
    assert told == SiteSummary(5.1, interval=(4.9, 5.4), n=80)
    assert summary_from(told, "target") is told
    assert set(NAMES) == {"estimate", "se", "df", "n", "interval", "interval_level", "trusted"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"estimate": 5, "sd": 1}, "has 'sd', which a summary does not know; use estimate, se, df, n, interval, "),
        ({"estimate": 5, 3: 1}, "has 3, which"),
        ({"se": 1}, "has no 'estimate'; give one"),
        ([5, 1], "is a list; give a SiteSummary"),
        (5.0, "is a float; give a SiteSummary"),
        (None, "is a NoneType; give a SiteSummary"),
    ],
)
def test_what_is_no_summary_is_refused_by_name(value: Any, said: str) -> None:
    with pytest.raises(BadInput, match=r"^source 'north' ") as caught:
        summary_from(value, "source 'north'")
    assert said in str(caught.value)


def test_a_summary_cannot_be_changed_and_takes_two_numbers_in_order() -> None:
    told = SiteSummary(5.1, 0.2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.estimate = 3.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        SiteSummary(5.1, 0.2, 30)  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(told)) == told
    assert hash(told) == hash(SiteSummary(5.1, 0.2))
