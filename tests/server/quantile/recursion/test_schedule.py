"""Schedules meet the horizon, warm up by iterations, and refuse what they do not know."""

import math

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.server.quantile.recursion.schedule import constant, decay, elapsed, refresh_due, step_length


@pytest.mark.parametrize(("schedule", "rounds"), [("every:1", 10_000), ("every:5", 2_400), ("log", 1_549)])
def test_rounds_of_the_printed_tables(schedule: str, rounds: int) -> None:
    lengths = elapsed(schedule, 10_000)
    assert len(lengths) == rounds
    assert lengths.sum() == 10_000
    assert lengths[:500].max() == 1


@pytest.mark.parametrize("schedule", ["every:1", "every:7", "log"])
@pytest.mark.parametrize("iterations", [1, 2, 19, 20, 21, 1000, 1003])
def test_ends_at_the_horizon(schedule: str, iterations: int) -> None:
    lengths = elapsed(schedule, iterations)
    assert lengths.sum() == iterations
    assert lengths.min() >= 1
    assert lengths.dtype == np.int64


def test_log_follows_its_formula_after_the_warm_up() -> None:
    lengths = elapsed("log", 5000)[250:-1]
    assert lengths.tolist() == [math.ceil(math.log2(m + 1)) for m in range(1, len(lengths) + 1)]


def test_finest_schedule_needs_no_memory() -> None:
    assert elapsed("every:1", 10**15).strides == (0,)


def test_explicit_lengths_set_the_horizon() -> None:
    assert elapsed([1, 2, 30], 100).tolist() == [1, 2, 30]


@pytest.mark.parametrize("schedule", ["every:0", "every:-1", "every:", "every:2.5", "daily", "", "LOG"])
def test_unknown_words_are_named(schedule: str) -> None:
    with pytest.raises(BadInput, match="schedule") as refusal:
        elapsed(schedule, 100)
    assert repr(schedule) in str(refusal.value)


@pytest.mark.parametrize("schedule", [[], [0, 1], [-1], [1.5], [[1, 2]]])
def test_lists_of_anything_but_counts_are_refused(schedule: list[int]) -> None:
    with pytest.raises(BadInput, match="not a list of integers"):
        elapsed(schedule, 100)


def test_lengths_beyond_the_records_are_refused() -> None:
    with pytest.raises(BadInput, match="takes 101 iterations"):
        elapsed([100, 1], 100)


@pytest.mark.parametrize("warmup", [-0.1, 1.0, float("nan")])
def test_warm_up_is_a_fraction(warmup: float) -> None:
    with pytest.raises(BadInput, match="warmup"):
        elapsed("log", 100, warmup)


def test_no_iterations_are_refused() -> None:
    with pytest.raises(BadInput, match="at least one iteration"):
        elapsed("log", 0)


@pytest.mark.parametrize(("number", "lasts"), [(1, 1), (500, 5), (10_000, 13)])
def test_decay_is_the_printed_rule(number: int, lasts: int) -> None:
    expected = 20 * 0.5 / (number**0.51 + 100) / lasts * 3.0
    assert step_length(decay([0.25, 0.75], unit=3.0), number, lasts, 1.0) == pytest.approx(expected, rel=1e-14)


def test_constant_is_free_of_round_and_length() -> None:
    pace = constant(2500, slope=0.4, kappa=0.5)
    assert step_length(pace, 1, 1, 0.4) == step_length(pace, 999, 7, 0.4) == pytest.approx(0.5 / (0.4 * 50), rel=1e-14)


def test_refreshes_double() -> None:
    pace = constant(100, 1.0)
    assert [m for m in range(1, 300) if refresh_due(pace, m)] == [32, 64, 128, 256]
    assert not any(refresh_due(decay([1.0]), m) for m in range(1, 300))
