"""Hints from the rows: what a holder should look at before anybody is asked; right where they are silent, too."""

import warnings
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.client.regression.hints import FROM_DATA, STANDARDISED, of_covariates, standardised
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds, read_bounds

MILES: Floats = np.ascontiguousarray(sv.sim.dice(3).generator().gamma(2.0, 1.5, 2000))


def hints(raw: Floats, bounds: Bounds, clipped: int = 0) -> tuple[str, ...]:
    scaled = np.ascontiguousarray(np.clip(bounds.scale(raw), -1, 1))
    return of_covariates(Rows(scaled, np.arange(float(len(raw)))), bounds, clipped)


@pytest.mark.parametrize("ddof", [0, 1])
def test_both_ways_to_standardise_are_noticed(ddof: int) -> None:
    raw = np.column_stack([MILES, MILES**2])
    assert standardised((raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=ddof))
    assert not standardised((raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=ddof) * 1.01)


def test_bounds_that_are_the_ends_of_the_data_are_noticed() -> None:
    raw = np.column_stack([MILES, MILES > 3])
    ends = read_bounds({"miles": (MILES.min(), MILES.max()), "far": (0, 1)}, ("miles", "far"))
    assert hints(raw, ends) == (FROM_DATA,)
    for pair in ((0, MILES.max()), (MILES.min(), 20)):
        assert hints(raw, read_bounds({"miles": pair, "far": (0, 1)}, ("miles", "far"))) == ()


def test_ends_that_are_public_are_no_matter() -> None:
    percent = np.linspace(0, 100, 2001)[:, None]
    assert hints(percent, read_bounds((0, 100), ("percent",))) == ()
    grade = np.arange(2000.0)[:, None] % 4
    assert hints(grade, read_bounds((0, 3), ("grade",))) == ()


def test_a_column_far_narrower_than_its_bounds_is_named() -> None:
    raw = np.column_stack([MILES, MILES])
    bounds = read_bounds({"miles": (0, 20), "metres": (0, 1000)}, ("miles", "metres"))
    (said,) = hints(raw, bounds)
    assert said.startswith("column 'metres' varies by less than a twentieth of its bounds")
    assert "'miles'" not in said
    rare = np.zeros((2000, 1))
    rare[:4] = 1
    assert "'rare'" in hints(rare, read_bounds((0, 1), ("rare",)))[0]
    rare[:200] = 1
    assert hints(rare, read_bounds((0, 1), ("rare",))) == ()


def test_many_rows_beyond_the_bounds_are_said() -> None:
    bounds = read_bounds((0, 4), ("miles",))
    assert "more than a tenth of the rows lie beyond the bounds" in hints(MILES[:, None], bounds, 201)[0]
    assert hints(MILES[:, None], bounds, 200) == ()


def test_a_fit_says_so_before_anybody_is_asked() -> None:
    narrow: dict[str, Any] = {"bounds": {"miles": (0, 1000)}, "density": 0.1, "size": 5}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        sv.PrivateQuantileRegressor(0.5, 4, **narrow, randomness=sv.sim.dice(1)).fit({"miles": MILES}, MILES * 2 + 1)
    assert any("varies by less than a twentieth" in str(each.message) for each in heard)
    assert not any(str(each.message) == STANDARDISED for each in heard)
