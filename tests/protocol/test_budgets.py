"""Every mechanism, over drawn budgets: the likelihood ratio written out of its integers is within its epsilon.

What is compared with is computed here to 150 digits; selections are written out cell by cell for all neighbours.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from sottovoce.core.errors import BadInput
from sottovoce.protocol import randomised_response
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.randomised_response import binary, with_flips
from sottovoce.protocol.regression.box_channel import BoxChannel, box_channel
from sottovoce.protocol.selection import geometric
from sottovoce.protocol.selection.base import WeightedSelection
from sottovoce.protocol.selection.exponential import exponential, paper
from sottovoce.protocol.selection.geometric import WORD, noisy_count, polya
from sottovoce.protocol.selection.sparse_vector import SparseVector, sparse_vector

BUDGETS = some.floats(-5.0, 1.38).map(lambda size: 10.0**size)  # up to 24, each part of it at least 1e-6
drawn = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def most(epsilon: float) -> Fraction:
    with localcontext() as context:
        context.prec = 150
        return Fraction(Decimal(epsilon).exp())


@drawn
@given(epsilon=BUDGETS, kinds=some.integers(1, 4), slopes=some.integers(1, 5), cells=some.integers(2, 9))
def test_one_bit_and_boxes(epsilon: float, kinds: int, slopes: int, cells: int) -> None:
    (keep, flip), _ = binary(epsilon).weights
    assert keep <= most(epsilon) * flip
    for width in (1, cells - 1):
        box = box_channel("box", epsilon, kinds, slopes, cells, width)
        assert 0 < box.low + box.extra <= most(epsilon) * box.low


@drawn
@given(epsilon=BUDGETS, sites=some.integers(1, 10**6), order=some.integers(-5, 500))
def test_noise(epsilon: float, sites: int, order: int) -> None:
    scan, shared, count = sparse_vector(200, order, 101, epsilon), polya(epsilon, sites), noisy_count(epsilon)
    assert most(epsilon) * scan.query * scan.threshold >= WORD**2
    assert most(epsilon) * shared.numerator**2 >= WORD**2
    assert most(epsilon) * count.numerator >= WORD


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(epsilon=BUDGETS, size=some.integers(2, 4), order=some.integers(1, 3), cells=some.integers(2, 3))
def test_selections_by_weight(epsilon: float, size: int, order: int, cells: int) -> None:
    order = min(order, size - 1)
    for mechanism in (exponential(size, order, cells, epsilon), paper(size, order, cells, epsilon)):
        assert isinstance(mechanism, WeightedSelection)
        laws = {}
        for counts in product(range(size + 1), repeat=cells):
            if sum(counts) == size:
                weights = mechanism.weights(np.array(counts))
                laws[counts] = [Fraction(weight, sum(weights)) for weight in weights]
        for one, law in laws.items():
            for other, near in laws.items():
                if sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 2:
                    assert all(p <= most(epsilon) * q for p, q in zip(law, near, strict=True))


HALF = OUTCOMES // 2
ENDS = np.array([[0.0], [1.0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda budget: Channel("c", ENDS, ((3, 1), (1, 3)), ENDS, budget=budget),
        lambda budget: BoxChannel("b", 2, 0, 1, 1, OUTCOMES // 4, HALF, 0, budget=budget),
        lambda budget: SparseVector(20, 18, 5, WORD * 4 // 5, WORD * 5 // 12, budget=budget),
    ],
)
def test_whatever_costs_more_cannot_be_made(make: object) -> None:
    assert callable(make)
    make(1.1)  # log 3 is 1.0986
    with pytest.raises(BadInput, match=r"would cost 1\.09861\d+, more than its epsilon 1\.09; give a larger budget"):
        make(1.09)


def test_noise_is_checked_as_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometric, "ROUND_CEILING", "ROUND_FLOOR")
    monkeypatch.setattr(geometric, "exponential", lambda _: Fraction(3))
    with pytest.raises(BadInput, match=r"^this shared noise would cost 1\.0000\d+, more than its epsilon 1\.0"):
        polya(1.0, sites=4)
    with pytest.raises(BadInput, match=r"^this noisy count would cost 1\.09\d+, more than its epsilon 1\.0"):
        noisy_count(1.0)


def test_one_bit_is_checked_as_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomised_response, "_flips", lambda _: OUTCOMES // 4)
    binary.cache_clear()
    with pytest.raises(BadInput, match=r"^the binary channel would cost 1\.09\d+, more than its epsilon 1\.0"):
        binary(1.0)
    binary.cache_clear()


@pytest.mark.parametrize("flips", [-1, HALF, OUTCOMES])
def test_a_flip_weight_that_is_none_is_refused(flips: int) -> None:
    with pytest.raises(BadInput, match="less than half"):
        with_flips(flips)
