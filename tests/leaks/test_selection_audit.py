"""No two neighbouring sites can be told apart better than a selection says: exact laws, compared cell by cell.

Neighbours differ by one score replaced, so a unit of the counts moves from one cell to another. A histogram and its
neighbour are drawn at random, or made to be as bad as the proofs allow.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.selection.base import Selection, WeightedSelection
from sottovoce.protocol.selection.exponential import WeightTable, exponential, paper
from sottovoce.protocol.selection.geometric import cost, numerators
from sottovoce.protocol.selection.sparse_vector import SparseVector, sparse_vector
from sottovoce.sim.randomness import dice

BUDGETS = (0.1, 0.5, 1.0, 3.0, 10.0)
SLACK = 1e-9  # of floating point; the weighted mechanisms are compared as fractions, without any
SEEN = 1e-290  # below it floating point has no digits
RANDOM = 45

Make = Callable[[int, int, int, float], Selection]


class Case(NamedTuple):
    size: int
    order: int
    counts: Ints
    neighbour: Ints


def moved(order: int, counts: Ints, source: int, target: int) -> Case:
    neighbour = counts.copy()
    neighbour[source] -= 1
    neighbour[target] += 1
    return Case(int(counts.sum()), order, counts, neighbour)


def random_cases(seed: int) -> Iterator[Case]:
    generator = dice(seed).generator()
    for kind in range(RANDOM):
        size, cells = int(generator.integers(2, 80)), int(generator.integers(2, 30))
        if kind % 3:
            counts = generator.multinomial(size, generator.dirichlet(np.full(cells, 0.3)))
        else:
            counts = size * (np.arange(cells) == generator.integers(cells))
        source = int(generator.choice(np.flatnonzero(counts)))
        target = cells - 1 if kind % 4 == 0 and source < cells - 1 else int(generator.integers(cells))
        yield moved(int(generator.integers(1, size)), counts, source, target)


def cruel_cases() -> Iterator[Case]:
    """All scores but one together, and that one goes from one end to the other; or all of them stand together."""
    for size, cells, order in ((40, 30, 20), (40, 30, 2), (40, 30, 38), (12, 400, 2), (60, 5, 59)):
        for place in (cells - 1, cells - 2, 1, 0):
            counts = (size - 1) * (np.arange(cells) == place)
            for source, target in ((0, cells - 1), (cells - 1, 0), (0, cells // 2), (place, cells - 1 - place)):
                yield moved(order, counts + (np.arange(cells) == source), source, target)


def float_loss(mechanism: Selection, case: Case) -> float:
    first, second = mechanism.distribution(case.counts), mechanism.distribution(case.neighbour)
    seen = (first > SEEN) & (second > SEEN)
    return float(np.abs(np.log(first[seen] / second[seen])).max())


def exact_ratio(mechanism: WeightedSelection, case: Case) -> Fraction:
    first, second = mechanism.weights(case.counts), mechanism.weights(case.neighbour)
    pairs = zip(first, second, strict=True)
    ratios = [Fraction(one * sum(second), other * sum(first)) for one, other in set(pairs)]
    return max(max(ratios), 1 / min(ratios))


def largest_share(make: Make, epsilon: float, cases: list[Case]) -> float:
    """Return the largest part of a mechanism's epsilon that some neighbours realise; fail where it is above one."""
    largest = 0.0
    for case in cases:
        mechanism = make(case.size, case.order, len(case.counts), epsilon)
        assert mechanism.epsilon <= epsilon
        loss = float_loss(mechanism, case)
        assert loss <= mechanism.epsilon + SLACK
        largest = max(largest, loss / mechanism.epsilon)
    return largest


def lopsided(size: int, order: int, cells: int, epsilon: float) -> Selection:
    return sparse_vector(size, order, cells, epsilon, split=0.85)


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("make", [sparse_vector, lopsided, exponential, paper])
def test_no_neighbours_are_told_apart_better_than_epsilon_says_and_some_are_as_well(make: Make, epsilon: float) -> None:
    cases = list(random_cases(round(1000 * epsilon)))
    cases += [case for case in cruel_cases() if len(case.counts) < 100 or make is exponential]
    if make is paper:  # nothing but many scores outweighs its other cells
        cases.append(moved(3800, 4000 * (np.arange(4) == 1), 1, 3))
    assert largest_share(make, epsilon, cases) > (0.998 if make is exponential else 0.9999)


@pytest.mark.parametrize("make", [exponential, paper])
def test_the_weighted_ones_keep_their_ratio_as_fractions(make: Callable[..., WeightedSelection]) -> None:
    for epsilon in (0.2, 1.0, 6.0):
        for case in (*random_cases(7), *cruel_cases()):
            mechanism = make(case.size, case.order, len(case.counts), epsilon)
            assert exact_ratio(mechanism, case) <= mechanism.ratio


def test_orders_beyond_the_scores_cost_no_more() -> None:
    for order in (-30, 0, 41, 70):
        for case in (case for case in cruel_cases() if case.size == 40):
            mechanism = sparse_vector(40, order, len(case.counts), 1.0)
            assert float_loss(mechanism, case) <= mechanism.epsilon + SLACK


@pytest.mark.parametrize(("epsilon", "order"), [(1.0, 1800), (1.0, 1900), (5.0, 1800), (5.0, 1900)])
def test_the_papers_mechanism_realises_less_than_it_states(epsilon: float, order: int) -> None:
    mechanism = paper(2000, order, 30, epsilon)
    counts = 2000 * (np.arange(30) == 12)
    loss = float_loss(mechanism, moved(order, counts, 12, 29))
    assert loss == pytest.approx(epsilon / (2 * order / 2000), rel=1e-6)
    assert loss < 0.6 * mechanism.stated


class Overspent(NamedTuple):
    """A selection that claims an epsilon that is not its own."""

    real: Selection
    epsilon: float

    def distribution(self, counts: Ints) -> Floats:
        return self.real.distribution(counts)


def half_the_noise(size: int, order: int, cells: int, epsilon: float) -> Overspent:
    return Overspent(sparse_vector(size, order, cells, 2 * epsilon), epsilon)


def little_more_than_allowed(size: int, order: int, cells: int, epsilon: float) -> Overspent:
    return Overspent(sparse_vector(size, order, cells, 1.001 * epsilon), epsilon)


def threshold_without_noise(size: int, order: int, cells: int, epsilon: float) -> Overspent:
    return Overspent(SparseVector(size, order, cells, numerators(2 * epsilon, 0.5)[0], 1), epsilon)


def paper_at_twice_its_price(size: int, order: int, cells: int, epsilon: float) -> Overspent:
    return Overspent(paper(size, order, cells, 2.02 * max(order / size, 0.5) * epsilon), epsilon)


def slopes_that_add_up_to_more(size: int, order: int, cells: int, epsilon: float) -> Overspent:
    low, high = numerators(1.2 * epsilon, 0.5)
    return Overspent(replace(exponential(size, order, cells, epsilon), low=low, high=high), epsilon)


@pytest.mark.parametrize(
    "make",
    [
        half_the_noise,
        little_more_than_allowed,
        threshold_without_noise,
        paper_at_twice_its_price,
        slopes_that_add_up_to_more,
    ],
)
def test_a_mechanism_that_costs_more_than_it_says_is_caught(make: Callable[..., Selection]) -> None:
    cases = [case for case in cruel_cases() if len(case.counts) < 1000]
    with pytest.raises(AssertionError, match="<="):
        largest_share(make, 1.0, cases)


def test_a_table_rounded_down_is_caught_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded_down(numerator: int, length: int) -> WeightTable:
        weights = [1 << 4]
        while weights[-1] > 1:
            weights.append(max(weights[-1] * numerator >> 64, 1))
        return WeightTable(tuple(weights), Fraction(1 << 64, numerator))

    mechanism = exponential(4, 2, 400, 1.0)
    case = moved(2, np.bincount([0, 398], [1, 3], 400).astype(np.int64), 0, 399)
    assert exact_ratio(mechanism, case) <= mechanism.ratio
    monkeypatch.setattr("sottovoce.protocol.selection.exponential.table", rounded_down)
    assert exact_ratio(mechanism, case) > mechanism.ratio


@pytest.mark.parametrize("make", [sparse_vector, lopsided, exponential, paper])
def test_failure_bounds_every_edge_that_falls_short(make: Make) -> None:
    nearest = np.inf
    for epsilon in (0.3, 1.0, 6.0):
        for case in random_cases(round(100 * epsilon)):
            mechanism = make(case.size, case.order, len(case.counts), epsilon)
            distribution = mechanism.distribution(case.counts)
            # a level just above an edge has the scores of all lower cells at or below it, and no more
            short, reached = np.cumsum(distribution)[:-1], np.cumsum(case.counts)[:-1]
            bound = mechanism.failure(reached - case.order)
            assert (short <= bound * (1 + 1e-12)).all()
            nearest = min(nearest, float((bound / np.maximum(short, SEEN))[bound < 0.5].min(initial=np.inf)))
    assert nearest < (1.7 if make is paper else 1.01)


def test_one_sided_noise_has_half_the_variance_of_two_sided_noise_of_the_same_budget() -> None:
    mechanism = sparse_vector(100, 90, 11, 1.0, split=0.5)
    places = np.arange(-400, 400)
    distribution = np.diff(mechanism.failure(places), prepend=0.0)
    variance = float((distribution * places**2).sum() - (distribution * places).sum() ** 2)
    ratio = np.exp(-cost(mechanism.query))
    assert variance == pytest.approx(2 * ratio / (1 - ratio) ** 2, rel=1e-9)
    assert variance == pytest.approx((4 * ratio / (1 - ratio) ** 2) / 2, rel=1e-9)
