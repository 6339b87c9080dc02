"""Scores against their definitions, label by label, and the sets that go with them."""

import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.arrays import Floats
from sottovoce.server.conformal import scores


def probabilities(n: int = 200, classes: int = 6) -> Floats:
    """Return rows of probabilities, multiples of 1/64 with many ties."""
    counts = sv.sim.dice(3).generator().multinomial(64, np.full(classes, 1 / classes), size=n)
    return np.asarray(counts / 64)


def test_absolute_residuals_are_quantile_scores_without_a_gap() -> None:
    source = sv.sim.dice(1).generator()
    predicted, y = source.normal(size=100), source.normal(size=100)
    np.testing.assert_array_equal(
        scores.absolute_residuals(predicted, y), scores.quantile_scores(predicted, predicted, y)
    )


@pytest.mark.parametrize("threshold", [-0.7, 0.0, 0.4])
def test_an_interval_holds_the_responses_that_score_at_most_the_threshold(threshold: float) -> None:
    low, high = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 0.5, 1.5])
    ends = scores.interval(low, high, threshold)
    for y in np.linspace(-3, 3, 601):
        inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
        scored = scores.quantile_scores(low, high, np.full(3, y)) <= threshold
        empty = ends[:, 0] == ends[:, 1]
        assert np.all((inside == scored) | empty)
        assert not np.any(scored & ~inside)


def test_crossed_ends_meet_in_the_middle_and_nothing_becomes_nan() -> None:
    low, high = np.array([0.0, 3.0, 1e308]), np.array([2.0, 1.0, 1.5e308])
    assert scores.interval(low, high, -1.5).tolist()[:2] == [[1.0, 1.0], [2.0, 2.0]]
    assert scores.interval(low, high, math.inf).tolist() == [[-math.inf, math.inf]] * 3
    np.testing.assert_array_equal(scores.interval(low, high, -math.inf), scores.middle(low, high)[:, None].repeat(2, 1))
    assert np.isfinite(scores.middle(low, high)).all()


def test_label_scores_are_their_definitions() -> None:
    rows = probabilities()
    above = np.array([[row[row > own].sum() for own in row] for row in rows])
    with_own = np.array([[row[row >= own].sum() for own in row] for row in rows])
    assert np.mean([np.unique(row).size < row.size for row in rows]) > 0.5
    np.testing.assert_array_equal(scores.lac_scores(rows), 1 - rows)
    np.testing.assert_array_equal(scores.aps_scores(rows), with_own)
    np.testing.assert_array_equal(scores.before_scores(rows), above)


@pytest.mark.parametrize("score", [scores.lac_scores, scores.aps_scores, scores.before_scores])
def test_scores_follow_their_labels_and_lie_between_zero_and_one(score: scores.LabelScores) -> None:
    rows = probabilities()
    np.testing.assert_array_equal(score(rows[:, ::-1]), score(rows)[:, ::-1])
    tenths = np.tile([0.1] * 10, (1, 1))
    rounded = np.array([[0.7, 0.1, 0.2 + 1e-16], [1.0 + 1e-9, 0.0, 0.0]])
    for each in (rows, tenths, rounded):
        assert (score(each) >= 0).all()
        assert (score(each) <= 1).all()


def test_a_label_at_the_threshold_is_in_the_set_whatever_rounding_does() -> None:
    found = scores.aps_scores(np.array([[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]]))
    assert found[0, 1] != found[1, 0]
    for threshold in (found[0, 1], found[1, 0]):
        assert scores.label_set(found, threshold).tolist() == [[False, True, True], [True, True, False]]
    assert not scores.label_set(np.array([[0.5 + 1e-9]]), 0.5).any()
    assert scores.label_set(found, math.inf).all()
    assert not scores.label_set(found, -math.inf).any()


def test_the_likeliest_labels_are_added_and_none_is_taken_away() -> None:
    rows = np.array([[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]])
    sets = np.array([[False, False, False], [True, False, False]])
    assert scores.with_likeliest(sets, rows).tolist() == [[True, True, False], [True, False, True]]
