"""Isotonic regression read backwards: exact on clean answers, ordered on noisy ones."""

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.asking import Decoded
from sottovoce.server.quantile.monotone import read_quantiles
from sottovoce.sim.randomness import dice


def heard_of(points: list[float], below: list[float], variances: list[float] | None = None) -> Decoded:
    counts = np.ones((1, len(points)), dtype=np.int64)
    spread = np.array(variances) if variances else np.full(len(points), 0.01)
    return Decoded(np.array(points), np.array(below), spread, counts, counts)


def test_clean_answers_are_interpolated_in_any_order() -> None:
    answers = [heard_of([4.0, 0.0], [0.8, 0.2]), heard_of([2.0], [0.5])]
    assert read_quantiles(answers, np.array([0.2, 0.35, 0.5, 0.65, 0.8])) == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0])


def test_levels_beyond_the_answers_stay_at_the_outermost_points() -> None:
    assert read_quantiles([heard_of([1.0, 3.0], [0.4, 0.6])], np.array([0.1, 0.9])).tolist() == [1.0, 3.0]


def test_a_violation_is_pooled_by_its_weights() -> None:
    heard = heard_of([0.0, 1.0, 2.0, 10.0], [0.1, 0.6, 0.4, 0.9], [0.01, 0.01, 0.03, 0.01])
    # the block of 1 and 2 has weights 3 and 1: level .55 at 1.25
    assert read_quantiles([heard], np.array([0.55, 0.1, 0.9])) == pytest.approx([1.25, 0.0, 10.0])


def test_answers_in_reverse_order_pool_to_one_step() -> None:
    levels: Floats = np.array([0.1, 0.5, 0.9])
    assert read_quantiles([heard_of([1.0, 2.0, 3.0], [0.9, 0.5, 0.1])], levels) == pytest.approx([2.0, 2.0, 2.0])


def test_noisy_answers_give_ascending_quantiles_near_the_truth() -> None:
    source = dice(3).generator()
    points = source.uniform(0.0, 1.0, 400)
    below = points + 0.2 * source.standard_normal(400)
    levels = np.linspace(0.2, 0.8, 13)
    found = read_quantiles([heard_of(points.tolist(), below.tolist())], levels)
    assert np.all(np.diff(found) >= 0)
    assert np.max(np.abs(found - levels)) < 0.25
