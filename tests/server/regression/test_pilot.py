"""Guesses from a centre and a half-width, as for a normal response of which covariates explain a third."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from sottovoce.server.quantile.asking import Ask
from sottovoce.server.quantile.search import Found
from sottovoce.server.regression.pilot import LENGTH, UNEXPLAINED, guess_of, out_of_reach, search, searchers


def test_guesses_are_those_of_a_normal_law() -> None:
    quartile = NormalDist().inv_cdf(0.75)
    taus = (0.1, 0.5, 0.9)
    guess = guess_of(Found(10.0, 2 * quartile, ()), taus, 2)
    rest = NormalDist(10.0, 2 * UNEXPLAINED)
    for level, tau in enumerate(taus):
        assert guess.start[level, 0] == pytest.approx(rest.inv_cdf(tau), rel=1e-4)
        assert guess.density[level] == pytest.approx(rest.pdf(rest.inv_cdf(tau)), rel=1e-4)
    assert guess.size == pytest.approx(2 * LENGTH, rel=1e-4)
    assert guess.start.shape == (3, 3)
    assert not guess.start[:, 1:].any()


@pytest.mark.parametrize(("a", "b"), [(1e-8, 5.0), (3.0, -1e8), (1e9, 1e17)])
def test_guesses_move_along_with_the_unit(a: float, b: float) -> None:
    plain = guess_of(Found(0.25, 0.5, ()), (0.25, 0.5), 1)
    moved = guess_of(Found(a * 0.25 + b, a * 0.5, ()), (0.25, 0.5), 1)
    assert moved.density * a == pytest.approx(plain.density)
    assert moved.size / a == pytest.approx(plain.size)
    assert moved.start[:, 0] == pytest.approx(a * plain.start[:, 0] + b, rel=1e-12)


def test_fewer_truths_need_more_people() -> None:
    assert searchers(1.0) == 400
    assert searchers(0.5) == 1600
    assert searchers(math.tanh(0.5)) == 1874


@pytest.mark.parametrize("distribution", [NormalDist(0, 1), NormalDist(-3e4, 5.0), NormalDist(7.0, 1e-6)])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_a_search_answered_without_chance_finds_the_law(distribution: NormalDist, rate: float) -> None:
    talk, answered = search(rate), 0
    ask: Ask = next(talk)
    found: Found | None = None
    while found is None:
        above = np.array([1 - distribution.cdf(float(point)) for point in ask.points])
        answered += int(ask.counts.sum())
        try:
            ask = talk.send(np.rint(ask.counts * ((1 - rate) / 2 + rate * above)).astype(np.int64))
        except StopIteration as stop:
            found = stop.value
    assert abs(found.centre - distribution.mean) < distribution.stdev
    assert 0.3 < found.scale / distribution.stdev < 2
    assert answered < 4 * searchers(rate)


@pytest.mark.parametrize(
    ("centre", "scale", "said"),
    [
        (1e12, 1.0, "farther than is looked"),
        (-1e12, 9e12, "farther than is looked"),
        (0.0, 1.3e12, "farther than is looked"),
        (0.0, 1.6e-12, "finer than is looked, or half of them are tied"),
        (1e9, 1e-4, "finer than is looked, or half of them are tied"),
        (1e9, 1e-3, None),
        (0.0, 1e-11, None),
        (9e11, 1.0, None),
    ],
)
def test_what_doubles_cannot_tell_is_out_of_reach(centre: float, scale: float, said: str | None) -> None:
    found = out_of_reach(Found(centre, scale, ()))
    assert found is None if said is None else said in str(found)
