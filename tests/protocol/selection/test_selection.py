"""Mechanisms by name."""

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.selection import SELECTIONS, selection


def test_every_name_makes_the_mechanism_of_that_name() -> None:
    assert SELECTIONS == ("sparse-vector", "exponential", "paper")
    for name in SELECTIONS:
        mechanism = selection(name, 50, 45, 11, 1.5)
        assert mechanism.name == name
        assert (mechanism.size, mechanism.order, mechanism.cells) == (50, 45, 11)
        assert within(mechanism.ratio, 1.5)
        distribution = mechanism.distribution(np.array([40, 0, 3, 0, 0, 2, 0, 0, 4, 1, 0]))
        assert distribution.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["", "Paper", "laplace", "sparse_vector"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"there is no mechanism .*; choose sparse-vector, exponential, paper"):
        selection(name, 50, 45, 11, 1.5)


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("order", [1, 30, 49])
def test_the_chance_of_an_infinite_answer_is_bounded(name: str, order: int) -> None:
    """Among sites without a score beyond the grid none answers infinity more often than is said."""
    mechanism = selection(name, 50, order, 6, 0.7)
    worst = 0.0
    for place in range(5):
        for other in range(5):
            counts = np.zeros(6, dtype=np.int64)
            counts[place] += 20
            counts[other] += 30
            worst = max(worst, float(mechanism.distribution(counts)[-1]))
    assert worst <= mechanism.unbounded * (1 + 1e-12)
    if name == "sparse-vector":
        assert worst == pytest.approx(mechanism.unbounded, rel=1e-9)
