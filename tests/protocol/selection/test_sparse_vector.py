"""The distribution of the scan against sums written out, and its failures against that distribution."""

import math
from itertools import product

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.selection.geometric import WORD, cost, difference_cdf
from sottovoce.protocol.selection.sparse_vector import SparseVector, sparse_vector


def written_out(mechanism: SparseVector, counts: Ints, most: int = 3000) -> list[float]:
    """Follow the scan, cell by cell, for each value of the threshold's noise."""
    query, threshold = mechanism.query / WORD, mechanism.threshold / WORD
    found = [0.0] * mechanism.cells
    for zeta in range(most):
        left = (1 - threshold) * threshold**zeta
        tail = 0
        for cell in range(mechanism.cells - 1, 0, -1):
            tail += int(counts[cell])
            needed = mechanism.size - mechanism.order + zeta + 1 - tail
            stops = query**needed if needed > 0 else 1.0
            found[cell] += left * stops
            left *= 1 - stops
        found[0] += left
    return found


@pytest.mark.parametrize(("epsilon", "split", "order"), list(product((0.3, 1.0, 6.0), (0.5, 0.2), (-3, 1, 17, 20, 26))))
def test_the_law_is_that_of_the_scan(epsilon: float, split: float, order: int) -> None:
    counts = np.array([4, 0, 3, 6, 0, 0, 5, 2])
    mechanism = sparse_vector(20, order, 8, epsilon, split)
    distribution = mechanism.distribution(counts)
    np.testing.assert_allclose(distribution, written_out(mechanism, counts), rtol=1e-9, atol=1e-300)
    assert math.fsum(distribution) == pytest.approx(1, abs=1e-13)


def test_rare_cells_keep_their_digits() -> None:
    # the threshold is far below all tails: to get to the bottom takes rare noise, the rarer the more cells there are
    counts = np.zeros(60, dtype=np.int64)
    counts[-1] = 50
    mechanism = sparse_vector(50, 40, 60, 5.0, split=0.05)
    assert mechanism.distribution(counts)[0] < 1e-90
    np.testing.assert_allclose(mechanism.distribution(counts), written_out(mechanism, counts, 140), rtol=1e-9)


def test_two_cells_are_one_comparison() -> None:
    mechanism = sparse_vector(30, 25, 2, 1.3, split=0.4)
    for above in range(31):
        low = difference_cdf(5 - above, mechanism.query, mechanism.threshold)
        assert mechanism.distribution(np.array([30 - above, above]))[0] == pytest.approx(low, rel=1e-12)
        assert mechanism.failure(30 - above - 25) == low  # attained: no grid could do better


def test_the_budget_is_spent_in_the_given_shares() -> None:
    mechanism = sparse_vector(10, 9, 5, 2.0, split=0.75)
    assert within(mechanism.ratio, 2.0)
    assert mechanism.epsilon == pytest.approx(2.0, abs=1e-12)
    assert (cost(mechanism.query), cost(mechanism.threshold)) == pytest.approx((1.5, 0.5))


def test_failure_rises_from_zero_to_one_whatever_the_order() -> None:
    distance = np.arange(-400, 400)
    found = sparse_vector(10, 9, 5, 0.5, split=0.5).failure(distance)
    assert (np.diff(found) >= 0).all()
    assert found[0] < 1e-40
    assert found[-1] == 1
    np.testing.assert_array_equal(sparse_vector(99, -4, 7, 0.5, split=0.5).failure(distance), found)


@pytest.mark.parametrize(
    ("size", "order", "cells", "words"),
    [(0, 1, 5, "at least one score"), (5, 1 << 60, 5, "beyond 2"), (5, 5, 1, "at least 2 cells")],
)
def test_public_numbers_that_make_no_scan_are_refused(size: int, order: int, cells: int, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        sparse_vector(size, order, cells, 1.0)


@pytest.mark.parametrize("numerator", [0, WORD])
def test_noise_without_end_or_without_noise_is_refused(numerator: int) -> None:
    with pytest.raises(ValueError, match="between 0 and 2"):
        SparseVector(5, 3, 4, numerator, 1 << 60)
    with pytest.raises(ValueError, match="between 0 and 2"):
        SparseVector(5, 3, 4, 1 << 60, numerator)


@pytest.mark.parametrize("counts", [[41, 0, 2], [41, -1, 1, 2], [41, 1, 1, 1], [[41, 0, 1, 1]]])
def test_counts_of_another_site_are_refused_unseen(counts: list[int]) -> None:
    with pytest.raises(ValueError, match="4 numbers") as refused:
        sparse_vector(43, 40, 4, 1.0).distribution(np.array(counts))
    assert "41" not in str(refused.value)
