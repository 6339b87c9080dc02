"""A drawn cell has the law that the mechanism states, and the words it takes tell nothing of the scores."""

from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import chdtri

from sottovoce.client.conformal.draw import draw, select
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.selection.base import WeightedSelection
from sottovoce.protocol.selection.exponential import exponential, paper
from sottovoce.protocol.selection.sparse_vector import SparseVector, sparse_vector
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6
DRAWS = 3000
MECHANISMS: tuple[Callable[..., SparseVector | WeightedSelection], ...] = (sparse_vector, exponential, paper)
SITES = (
    np.array([30, 0, 5, 10, 4, 0, 1]),
    np.array([0, 0, 0, 50, 0, 0, 0]),
    np.array([49, 0, 0, 0, 0, 0, 1]),
)


def surprise(found: Ints, distribution: Floats) -> tuple[float, int]:
    """Return the chi-square statistic and its degrees of freedom, with rare cells taken together."""
    expected, order = distribution * found.sum(), np.argsort(distribution)
    groups = np.minimum(np.cumsum(expected[order]) // 8, np.arange(len(distribution)))
    sums = [np.bincount(np.unique(groups, return_inverse=True)[1], weights=w[order]) for w in (found, expected)]
    return float(((sums[0] - sums[1]) ** 2 / sums[1]).sum()), len(sums[0]) - 1


@pytest.mark.parametrize(("make", "site", "epsilon"), list(product(MECHANISMS, range(len(SITES)), (0.3, 2.0))))
def test_draws_have_the_law(make: Callable[..., SparseVector | WeightedSelection], site: int, epsilon: float) -> None:
    counts, source = SITES[site], dice(100 + site)
    mechanism = make(50, 45, 7, epsilon)
    found = np.bincount([draw(mechanism, counts, source) for _ in range(DRAWS)], minlength=7)
    statistic, freedom = surprise(found, mechanism.distribution(counts))
    assert freedom >= 1
    assert statistic < chdtri(freedom, FALSE_ALARM)
    # the same draws against the law of a site with other scores: the test has power
    other, freedom = surprise(found, mechanism.distribution(SITES[site - 1]))
    assert other > chdtri(freedom, FALSE_ALARM)


class Counting:
    """Seeded dice that remember how they were asked."""

    private = False

    def __init__(self, seed: int) -> None:
        self.source = dice(seed)
        self.asked: list[int] = []

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        self.asked.append(n)
        return self.source.words(n)

    def split(self, n: int) -> "list[Counting]":
        return [self] * n


class Thrown:
    """Dice that throw one number again and again."""

    private = False

    def __init__(self, number: int) -> None:
        self.number = number

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        return np.array([self.number] + [0] * (n - 1), dtype=np.uint64)

    def split(self, n: int) -> "list[Thrown]":
        return [self] * n


def test_each_weight_is_as_many_throws(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, counts = exponential(3, 2, 4, 1.0), np.array([1, 0, 1, 1])
    monkeypatch.setattr(type(mechanism), "weights", lambda self, counts: [2, 3, 1, 2])
    assert [draw(mechanism, counts, Thrown(number)) for number in range(9)] == [0, 0, 1, 1, 1, 2, 3, 3, 0]


@pytest.mark.parametrize("make", MECHANISMS)
def test_the_words_taken_are_the_same_for_every_site(make: Callable[..., SparseVector | WeightedSelection]) -> None:
    asked, cells = set(), set()
    for counts in SITES:
        source = Counting(9)
        cells.add(draw(make(50, 45, 7, 1.0), counts, source))
        asked.add(tuple(source.asked))
    assert len(asked) == 1
    assert len(cells) > 1


@pytest.mark.parametrize("make", MECHANISMS)
def test_a_large_budget_names_the_cell_of_the_order(make: Callable[..., SparseVector | WeightedSelection]) -> None:
    scores, edges = dice(6).generator().normal(size=5000), np.linspace(-3, 3, 40)
    cell = select(Records(scores), edges, make(5000, 4501, 41, 20.0), dice(1))
    assert cell == np.searchsorted(edges, np.sort(scores)[4500])


def test_orders_beyond_the_scores_name_the_ends() -> None:
    scores, edges = Records(np.linspace(0, 1, 100)), np.array([0.2, 0.9, 2.0])
    assert select(scores, edges, sparse_vector(100, 200, 4, 2.0), dice(1)) == 3
    assert select(scores, edges, sparse_vector(100, -100, 4, 2.0), dice(1)) == 0


def test_a_mechanism_for_another_site_is_refused_without_a_count() -> None:
    scores, edges = Records(np.linspace(0, 1, 77)), np.array([0.2, 0.9])
    for mechanism in (sparse_vector(78, 70, 3, 1.0), exponential(77, 70, 4, 1.0)):
        with pytest.raises(ValueError, match="add up to") as refused:
            select(scores, edges, mechanism, dice(1))
        assert "15" not in str(refused.value)  # scores up to 0.2
        assert "Records" not in str(refused.value)
