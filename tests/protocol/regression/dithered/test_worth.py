"""Which questions are bought: those that take most of the doubt, as long as they pay, and never more than allowed."""

import math

import numpy as np
import pytest

from sottovoce.protocol.regression.dithered.worth import FACTOR, PARCELS, SURE, Known, Questions, shares_of
from sottovoce.sim.randomness import dice

ONE = Known(np.array([[0.04]]), np.array([[1.0]]))


def bought(known: Known, questions: Questions, people: float = 10_000, most: float = 0.1) -> list[float]:
    return list(shares_of([known], [questions], people, 0.3 * people, most)[0])


@pytest.mark.parametrize("precision", [0.05, 0.1, 0.5])
def test_as_many_are_asked_as_make_the_interval_shortest(precision: float) -> None:
    """One coefficient and one question: N answers leave v / (1 + N p v), and the optimum is found by search."""
    people, most, v = 10_000.0, 0.5, 0.04
    weight = 1 / (1 + v / SURE**2)
    shares = np.linspace(0, most, 5001)
    counts = shares * 0.3 * people
    lengths = FACTOR * weight * v / (1 + counts * precision * v) + counts / (2 * people)
    best = shares[np.argmin(lengths)]
    found = bought(ONE, Questions(np.eye(1), np.array([precision])), people, most)[0]
    assert abs(found - best) <= 1.5 * most / PARCELS
    assert best > most / PARCELS


def test_nothing_is_bought_that_does_not_pay() -> None:
    assert bought(ONE, Questions(np.eye(1), np.array([1e-6]))) == [0.0]
    sure = ONE._replace(covariance=np.array([[1e-9]]))
    assert bought(sure, Questions(np.eye(1), np.array([1.0]))) == [0.0]


def test_never_more_than_allowed_and_nobody_of_nobody() -> None:
    vague = ONE._replace(covariance=np.array([[4.0]]))
    questions = Questions(np.array([[1.0], [0.5]]), np.array([1e-4, 1e-4]))
    found = bought(vague, questions)
    assert math.fsum(found) == pytest.approx(0.1)
    assert found[0] > found[1] == 0
    assert bought(vague, questions, people=0.0) == [0.0, 0.0]


def test_what_tells_of_several_doubts_is_worth_more() -> None:
    known = Known(np.eye(2) * 0.04, np.eye(2))
    apart, both = np.array([1.0, 0.0]), np.array([1.0, 1.0]) / math.sqrt(2)
    shared = known._replace(covariance=0.04 * np.array([[1.0, 0.9], [0.9, 1.0]]))
    found = bought(shared, Questions(np.stack([apart, both]), np.array([0.02, 0.02])))
    assert found[1] > found[0]


def test_levels_compete_and_the_more_doubtful_one_gets_more() -> None:
    vague = ONE._replace(covariance=np.array([[0.4]]))
    question = Questions(np.eye(1), np.array([0.1]))
    sure, unsure = (float(each[0]) for each in shares_of([ONE, vague], [question, question], 10_000, 3_000, 0.3))
    assert unsure > sure > 0


def test_a_bought_answer_leaves_the_posterior_of_a_gaussian() -> None:
    source = dice(4).generator()
    root = source.normal(size=(5, 5))
    known = Known(root @ root.T / 50, source.normal(size=(3, 4)))
    questions = Questions(source.normal(size=(6, 5)), source.uniform(0.01, 0.1, 6))
    [shares] = shares_of([known], [questions], 1000, 300, 0.4)
    assert shares.sum() > 0
    information = questions.combinations.T * (shares * 300 * questions.precisions) @ questions.combinations
    after = np.asarray(np.linalg.inv(np.linalg.inv(known.covariance) + information), np.float64)
    again = shares_of([known._replace(covariance=after)], [questions], 1000, 300, 0.4 / PARCELS)[0]
    if shares.sum() < 0.4 - 1e-9:  # it stopped because nothing paid any more
        assert again.sum() == 0
