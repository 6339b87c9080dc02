"""Algorithm 2 as printed, in integers: its weights, and what it costs in truth."""

import math
from itertools import product

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection.exponential import paper


@pytest.mark.parametrize(("size", "order", "epsilon"), list(product((40, 200), (9, 30, 38), (0.2, 1.0, 8.0))))
def test_the_law_is_the_printed_one(size: int, order: int, epsilon: float) -> None:
    mechanism = paper(size, order, 5, epsilon)
    counts = np.array([size // 2, 0, size // 4, 0, size - size // 2 - size // 4])
    q = max(order / size, 0.5)
    below = np.array([0, size // 2, size // 2, size // 2 + size // 4, size // 2 + size // 4])
    above = size - below - counts
    exponent = -epsilon * np.maximum(below / q, above / (1 - q)) / (2 * max(1 / q, 1 / (1 - q)))
    printed = np.exp(exponent - exponent.max())
    np.testing.assert_allclose(mechanism.distribution(counts), printed / printed.sum(), rtol=1e-8, atol=2.0**-95)


@pytest.mark.parametrize(("order", "epsilon"), list(product((20, 100, 180, 199), (0.1, 1.0, 5.0, 10.0))))
def test_it_costs_less_than_it_states(order: int, epsilon: float) -> None:
    mechanism = paper(200, order, 101, epsilon)
    assert mechanism.stated == epsilon
    assert mechanism.epsilon == pytest.approx(epsilon / (2 * mechanism.q), rel=1e-12)
    assert mechanism.epsilon <= epsilon


def test_failure_obeys_the_papers_lemma_and_is_sharper() -> None:
    mechanism = paper(200, 180, 101, 1.0)
    distance = -np.arange(1, 60)
    lemma = np.minimum(1, 101 * np.exp(distance / 2))
    assert (mechanism.failure(distance) < lemma).all()
    assert mechanism.failure(0) == 1
    assert (np.diff(mechanism.failure(np.arange(-190, 5))) >= 0).all()


@pytest.mark.parametrize("order", [0, 200, 201])
def test_an_infeasible_order_is_refused(order: int) -> None:
    with pytest.raises(BadInput, match="from 1 to 199"):
        paper(200, order, 101, 1.0)


@pytest.mark.parametrize("epsilon", [0.0, math.inf, math.nan])
def test_an_impossible_budget_is_refused(epsilon: float) -> None:
    with pytest.raises(BadInput, match="finite budget"):
        paper(200, 180, 101, epsilon)
