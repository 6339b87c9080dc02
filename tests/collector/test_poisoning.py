"""Liars move what is read at a point as far as the bound says, and no further, whatever they send."""

import math

import pytest

from sottovoce.collector.poisoning import most_moved
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import letter_of
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.sim import dice


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("liars", [1, 40, 400])
def test_no_lie_moves_more_than_the_bound_and_the_best_reaches_it(epsilon: float, liars: int) -> None:
    n, rate = 400, math.tanh(epsilon / 2)
    flips = flips_of(binary(epsilon))
    words = dice(7).words(2 * n).reshape(n, 2).tolist()
    letters = [letter_of(k % 90, 30.5, flips, (a, b), 0.0, 0.0) for k, (a, b) in enumerate(words)]

    def below(said: list[int]) -> float:
        return 1 - (sum(said) / n - (1 - rate) / 2) / rate

    honest, bound = below(letters), liars / (n * rate)
    moved = []
    for lie in (0, 1):
        targets = sorted(range(n), key=lambda k: letters[k] == lie)[:liars]  # the best lie contradicts
        moved.append(abs(below([lie if k in set(targets) else letter for k, letter in enumerate(letters)]) - honest))
    assert max(moved) <= bound + 1e-12
    others = [letters.count(1 - lie) for lie in (0, 1)]
    if liars <= max(others):
        assert max(moved) == pytest.approx(bound)
    assert most_moved(liars, n, epsilon) == pytest.approx(min(bound, 1.0))


@pytest.mark.parametrize("wrong", [(-1, 5, 1.0), (6, 5, 1.0), (0, 0, 1.0), (1, 5, 0.0), (1, 5, math.inf)])
def test_what_makes_no_sense_is_refused(wrong: tuple[int, int, float]) -> None:
    with pytest.raises(BadInput):
        most_moved(*wrong)
