"""Intervals that hold on average over groups: the worst case by linear programming, and coverage of hostile groups."""

import math

import numpy as np
import pytest
from scipy import optimize, special

from sottovoce.inference.quantile.on_average import critical_value, moved
from sottovoce.sim.randomness import dice


def missed(biases: np.ndarray, reach: float) -> np.ndarray:
    return np.asarray(special.ndtr(-reach - biases) + special.ndtr(biases - reach))


@pytest.mark.parametrize("square", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_the_critical_value_is_that_of_the_worst_distribution(square: float) -> None:
    # the largest probability of a miss under a mean square is a linear programme over the distributions of the bias
    reach = critical_value(square, 0.95)
    biases = np.concatenate([np.linspace(0, 3 * reach, 4_000), [math.sqrt(square)]])
    worst = optimize.linprog(
        -missed(biases, reach), A_eq=np.array([np.ones(len(biases)), biases**2]), b_eq=[1.0, square], bounds=(0, 1)
    )
    assert -worst.fun == pytest.approx(0.05, abs=2e-5)


def test_without_a_bias_it_is_the_normal_value_and_it_rises() -> None:
    values = [critical_value(square, 0.9) for square in (0.0, 0.3, 1.0, 5.0, 50.0)]
    assert values[0] == pytest.approx(1.644854, abs=1e-5)
    assert values == sorted(values)
    assert values[-1] <= 1.644854 + math.sqrt(50.0 / 0.1)


@pytest.mark.parametrize("kind", ["normal", "two points", "one odd in ten", "equal"])
def test_it_covers_on_average_whatever_the_groups(kind: str) -> None:
    # 120 studies of 200 groups; coverage on average, within five errors of the mean over studies: false alarm 3e-7
    source, held = dice(5).generator(), []
    for _ in range(120):
        truth = {
            "normal": source.normal(0.0, 0.7, 200),
            "two points": np.where(source.random(200) < 0.5, -0.6, 0.6),
            "one odd in ten": np.where(source.random(200) < 0.1, 4.0, 0.0),
            "equal": np.zeros(200),
        }[kind]
        errors = np.tile([0.5, 0.8, 1.1, 1.5], 50)
        rows = moved(truth + errors * source.normal(size=200), errors, 0.95)
        held.append(np.mean([row.low <= at <= row.high for row, at in zip(rows, truth, strict=True)]))
    assert np.mean(held) > 0.95 - 5 * np.std(held) / math.sqrt(120)


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "two points", "one odd", "equal"])
@pytest.mark.parametrize("precise", [0.05, 1.0], ids=["one precise", "equal errors"])
def test_it_covers_where_groups_are_few(kind: str, precise: float) -> None:
    # 12 groups, in which the mean square is known badly, and one of them may have most of all precision
    source, held, reach = dice(8).generator(), 0, 0
    errors = np.array([precise, *[1.0] * 11])
    for _ in range(100):
        truth = {
            "normal": source.normal(0.0, 1.0, 12),
            "heavy tails": 0.7 * source.standard_t(2, 12),
            "two points": np.where(np.arange(12) % 2, 1.0, -1.0),
            "one odd": np.where(np.arange(12) == 0, 4.0, 0.0),
            "equal": np.zeros(12),
        }[kind]
        rows = moved(truth + errors * source.normal(size=12), errors, 0.95)
        held += sum(row.low <= at <= row.high for row, at in zip(rows, truth, strict=True))
        reach += 12
    assert held > 0.93 * reach


def test_groups_alike_get_much_shorter_intervals() -> None:
    source = dice(6).generator()
    rows = moved(source.normal(size=400), np.ones(400), 0.95)
    assert np.median([row.high - row.low for row in rows]) < 0.7 * 2 * 1.96
    assert all(0 < row.weight < 1 for row in rows)


def test_groups_far_apart_keep_their_own() -> None:
    values = np.arange(20.0) * 1_000
    rows = moved(values, np.ones(20), 0.95)
    assert [row.estimate for row in rows] == pytest.approx(values, abs=0.01)
    assert [row.high - row.low for row in rows] == pytest.approx([2 * 1.96] * 20, rel=1e-3)


def test_it_follows_location_and_scale() -> None:
    values, errors = np.array([0.0, 1.0, 4.0, 2.0, -3.0]), np.array([0.5, 1.0, 0.2, 0.4, 0.9])
    here, there = moved(values, errors, 0.9), moved(1e8 + 10 * values, 10 * errors, 0.9)
    for one, two in zip(here, there, strict=True):
        assert two[:3] == pytest.approx([1e8 + 10 * part for part in one[:3]], abs=1e-6)
