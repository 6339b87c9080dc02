"""Declared covariates: what is known of their moments is exact, what is free is learnt, and ranges cut nothing rare."""

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.dithered.declared import (
    Declared,
    check_declared,
    cut,
    declare,
    frame_of,
    guessed_moments,
    reaches,
    suspected,
)
from sottovoce.protocol.regression.dithered.functionals import ranges_of, scaled_pairs
from sottovoce.protocol.regression.dithered.moments import BitAnswers, learn_moments
from sottovoce.protocol.regression.dithered.vech import packed
from sottovoce.sim import dice

CATEGORIES = np.array([0, 1, 1, 2])  # a number, two dummies of one category, a column of two values
FOUND = declare(CATEGORIES)
assert FOUND is not None
DECLARED: Declared = FOUND
NOTHING = BitAnswers(np.zeros((0, 15)), np.zeros(0), np.zeros(0))


def rows(n: int) -> Floats:
    """Draw people: the levels of the category have shares .75, .2 and .05, the last column .03."""
    draw = dice(18).generator()
    level, number = draw.choice(3, n, p=[0.75, 0.2, 0.05]), draw.uniform(-1, 1, n)
    rare = draw.random(n) < 0.03
    found: Floats = np.column_stack([np.ones(n), number, 2 * (level == 1) - 1, 2 * (level == 2) - 1, 2 * rare - 1])
    return found


def test_a_frame_holds_the_moments_of_every_such_people() -> None:
    x = rows(5000)
    truth: Floats = x.T @ x / len(x)
    frame = frame_of(DECLARED, guessed_moments(DECLARED, np.full(4, 1 / 3)), truth[0, 1:])
    away = packed(truth) - frame.fixed
    found = np.linalg.lstsq(frame.free, away, rcond=None)[0]
    assert frame.free @ found == pytest.approx(away, abs=1e-12)
    assert frame.free.shape == (15, 15 - 1 - 3 - 1)  # the constant, three squares, one product


def test_what_is_known_is_exact_and_the_rest_is_learnt() -> None:
    x = rows(5000)
    truth, rate, each = x.T @ x / len(x), 0.8, 1e6
    low = np.zeros((5, 5)) - 1 + np.eye(5)
    said = 0.5 + rate * ((truth - low) / (1 - low) - 0.5)
    bits, guess = np.stack([np.full((5, 5), each), each * said]), guessed_moments(DECLARED, np.full(4, 1 / 3))
    found = learn_moments(bits, rate, guess, NOTHING, declared=DECLARED)
    assert found.matrix == pytest.approx(truth, abs=0.01)
    assert np.diag(found.matrix)[2:] == pytest.approx(1.0, abs=1e-12)
    assert 1 + found.matrix[0, 2] + found.matrix[0, 3] + found.matrix[2, 3] == pytest.approx(0, abs=1e-9)
    assert np.diag(found.covariance)[[0, 9, 12, 14]] == pytest.approx(0, abs=1e-15)
    assert np.diag(found.covariance)[[1, 2, 3, 4, 5]].max() < 1.1 / (4 * rate**2 * each) * 4


def test_reaches_are_what_people_reach() -> None:
    x, draw = rows(20_000), dice(1).generator()
    ways = draw.normal(size=(40, 5))
    seen = np.abs(x @ ways.T).max(axis=0)
    whole = reaches(DECLARED, ways)
    assert np.all(seen <= whole + 1e-9)
    assert np.median(seen / whole) > 0.95
    assert np.all(whole <= np.abs(ways).sum(axis=1) + 1e-12)


def test_what_letters_tell_is_heard_beside_what_is_declared() -> None:
    x = rows(5000)
    truth, guess = x.T @ x / len(x), guessed_moments(DECLARED, np.full(4, 1 / 3))
    letters = packed(truth)[1:], np.full(14, 1e8)
    found = learn_moments(np.zeros((2, 5, 5)), 0.8, guess, NOTHING, letters, DECLARED)
    assert found.matrix == pytest.approx(truth, abs=0.01)
    assert np.diag(found.covariance).max() < 1e-7


def test_columns_whose_square_is_nearly_one_are_scaled_as_of_two_values() -> None:
    moments = np.diag([1.0, 0.3, 0.95, 0.99])
    found = suspected(None, moments)
    assert found is not None
    assert found.categories.tolist() == [0, 1, 2]
    assert suspected(None, np.diag([1.0, 0.3])) is None
    both = suspected(declare(np.array([1, 0, 0])), moments)
    assert both is not None
    assert both.categories.tolist() == [1, 2, 3]


def test_the_short_range_cuts_little_of_a_rare_level() -> None:
    x = rows(20_000)
    truth: Floats = x.T @ x / len(x)
    u = np.asarray(np.linalg.inv(truth), dtype=np.float64)
    pairs, correlation = scaled_pairs(u, u @ np.diag([1.0, 3, 1, 1, 1]) @ u, truth)
    ranges = ranges_of(pairs, correlation, DECLARED, truth)
    values = np.einsum("ij,kj->ki", x, pairs[:, 0]) * np.einsum("ij,kj->ki", x, pairs[:, 1])
    short = np.clip(values, ranges[:5, :1], ranges[:5, 1:])
    lost = 1 - short.mean(axis=1) / values.mean(axis=1)
    assert np.all(lost < 0.12)
    assert lost[4] == pytest.approx(0, abs=1e-9)  # one in 33: all there is to see
    assert np.all(ranges[:5, 1] <= ranges[5:, 1])
    plain = ranges_of(pairs, correlation)[:5]  # three standard deviations, whatever is declared
    beyond = (np.clip(values, -np.inf, plain[:, 1:]) < values).mean(axis=1)
    assert beyond[4] > 0.02
    told = cut(DECLARED, pairs, truth, float(plain[:, 1].max()))
    assert told[4] > 0.5 > told[1] >= 0


def test_nothing_declared_is_nothing() -> None:
    assert declare(np.zeros(3, dtype=np.int64)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        DECLARED._replace(categories=np.array([0, 1, 1])),
        DECLARED._replace(categories=np.array([0, 1, 1, 9])),
        DECLARED._replace(known=DECLARED.known * 2),
        DECLARED._replace(known=DECLARED.known * 0),
        DECLARED._replace(values=DECLARED.values * np.nan),
    ],
)
def test_what_nobody_can_declare_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput, match="declared"):
        check_declared(wrong, 4)  # type: ignore[arg-type]
