"""Thresholds from one number: where they stand, that none higher would do, and refusals."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.server.conformal.coverage import pooled
from sottovoce.server.conformal.coverage.pooled import (
    Promise,
    promised,
    refuse_infinite,
    thresholds_at,
    worst_of_any,
    worst_of_independent,
)
from sottovoce.server.conformal.coverage.pooled_distribution import PooledCount, RecordGroup, failures

ANSWERS = PooledCount((RecordGroup(300, 1, 0.27, 0.46),), 0.0, (0,))
SUM = PooledCount((RecordGroup(400, 1, 0.0, 1.0),), math.exp(-0.5), (4, 3, 2, 1))


@pytest.fixture(autouse=True)
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooled, "POINTS", 1 << 9)


def independent(cells: int) -> Callable[[Floats, Floats], float]:
    return lambda failure, levels: worst_of_independent(failure[0], levels, cells)


@pytest.mark.parametrize("count", [ANSWERS, SUM])
@pytest.mark.parametrize("chance", [1e-6, 0.1, 0.5, 0.9])
def test_thresholds_are_the_largest(count: PooledCount, chance: float) -> None:
    thresholds = thresholds_at(count, 0.1, chance)
    here = failures(count, thresholds, np.array([0.1]))
    next_up = failures(count, [threshold + 1 for threshold in thresholds], np.array([0.1]))
    assert (here <= chance).all()
    assert (next_up > chance).all()


def test_a_conditional_guarantee_fails_as_often_as_allowed() -> None:
    promise = promised(ANSWERS, independent(8), 0.1, "training-conditional", 0.05)
    assert promise.thresholds == thresholds_at(ANSWERS, 0.1, 0.05)
    assert 0.95 <= promise.confidence < 0.97
    assert promise.coverage > 0.9


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_a_marginal_guarantee_takes_the_largest_threshold(alpha: float) -> None:
    promise = promised(ANSWERS, independent(8), alpha, "marginal", 0.1)
    up = (promise.thresholds[0] + 1,)
    assert promise.coverage >= 1 - alpha > 1 - pooled._missed(ANSWERS, independent(8), up)


def test_thresholds_of_a_sum_are_level() -> None:
    promise = promised(SUM, worst_of_any, 0.1, "marginal", 0.1)
    assert 0.9 <= promise.coverage < 0.905
    fails = failures(SUM, promise.thresholds, np.array([0.1]))[:, 0]
    assert np.ptp(fails) < 0.06  # one count more or less


def test_infinite_sets_are_those_of_noise_alone() -> None:
    promise = promised(SUM, worst_of_any, 0.1, "training-conditional", 1e-4)
    ratio = math.exp(-0.5)
    threshold = promise.thresholds[-1]
    assert threshold > 0
    assert promise.infinite == pytest.approx(ratio ** (threshold + 1) / (1 + ratio), abs=1e-12)


@pytest.mark.parametrize(
    "count",
    [
        ANSWERS,
        SUM,
        PooledCount((RecordGroup(62, 1, 0.0067, 0.9866),), 0.0, (0,)),
        PooledCount((RecordGroup(50, 1, 0.0, 1.0),), math.exp(-2.5), (3, 1)),
        PooledCount((RecordGroup(20_000, 1, 0.0, 1.0),), math.exp(-0.05), (8, 1)),
        PooledCount((RecordGroup(900, 1, 0.3, 0.4), RecordGroup(300, 5, 0.02, 0.96)), 0.0, (0,)),
    ],
)
def test_the_spline_errs_less_than_is_added_for_it(count: PooledCount) -> None:
    thresholds = thresholds_at(count, 0.1, 0.4)
    levels = np.linspace(*pooled._window(count, thresholds), 331)
    curves = pooled._curves(count, thresholds, levels)
    np.testing.assert_allclose(curves, failures(count, thresholds, 1 - levels), atol=pooled.ROUNDING / 10)
    assert (np.diff(curves, axis=1) >= 0).all()
    if levels[0] > 0:
        assert curves[:, 0].max() < 1e-9
    if levels[-1] < 1:
        assert curves[:, -1].min() > 1 - 1e-9


def test_refusals_say_how_many_records() -> None:
    def promise(infinite: float) -> Promise:
        return Promise((0,), 1.0, 1.0, infinite)

    refuse_infinite(promise(0.5), 100, lambda factor: promise(1.0), "or more")
    with pytest.raises(Infeasible, match=r"100 records .* 80% of the studies; bring about 800 records, or more\.$"):
        refuse_infinite(promise(0.8), 100, lambda factor: promise(0.4 if factor > 5 else 0.9), "or more")
    with pytest.raises(Infeasible, match=r"bring more than 100,000,000 records, or more\.$"):
        refuse_infinite(promise(0.8), 100, lambda factor: promise(0.9), "or more")


@pytest.mark.parametrize(
    ("alpha", "guarantee", "delta", "word"),
    [(0.0, "marginal", 0.1, "alpha"), (1.0, "marginal", 0.1, "alpha"), (0.1, "training-conditional", 0.0, "delta")],
)
def test_bad_numbers(alpha: float, guarantee: pooled.Guarantee, delta: float, word: str) -> None:
    with pytest.raises(BadInput, match=f"{word} lies between 0 and 1"):
        promised(ANSWERS, independent(4), alpha, guarantee, delta)


def test_an_unknown_guarantee() -> None:
    with pytest.raises(BadInput, match="'sure'"):
        promised(ANSWERS, independent(4), 0.1, "sure", 0.1)  # type: ignore[arg-type]
