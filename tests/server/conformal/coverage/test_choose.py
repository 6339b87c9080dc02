"""What is asked of unequal and private sites: against exact rationals, promises kept, one engine as the other."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sottovoce.protocol.selection import selection
from sottovoce.server.conformal.coverage import equal
from sottovoce.server.conformal.coverage.choose import (
    Aim,
    Choice,
    choose,
    distribution_grid,
    infinite,
    lower_neighbour,
    survival,
)
from sottovoce.server.conformal.coverage.voters import Kind
from sottovoce.sim.randomness import dice

STEPS = {-2: Fraction(1, 8), -1: Fraction(1, 3), 0: Fraction(1, 2), 1: Fraction(3, 4)}


def stepped(distance: Any) -> Any:
    """Return a made-up failure that is a fraction everywhere."""
    return np.array([0.0 if d < -2 else 1.0 if d > 1 else float(STEPS[d]) for d in np.asarray(distance).tolist()])


def fails(kind: Kind, distance: int) -> Fraction:
    if kind.failure is None:
        return Fraction(distance >= 0)
    return Fraction(0) if distance < -2 else Fraction(1) if distance > 1 else STEPS[distance]


def exact(kinds: list[Kind], number: list[int], choice: Choice) -> tuple[Fraction, Fraction]:
    """Return E C and E C^2: P(C >= t) is a polynomial in t and 1 - t, found site by site for each number of votes."""
    held: dict[int, list[Fraction]] = {0: [Fraction(1)]}
    for kind, count, orders, votes in zip(kinds, number, choice.orders, choice.votes, strict=True):
        site: dict[int, list[Fraction]] = {}
        for c in range(kind.size + 1):
            tails = [Fraction(1), *(fails(kind, c - order) for order in orders), Fraction(0)]
            for values, (more, less) in enumerate(pairwise(tails)):
                site.setdefault(values, [Fraction(0)] * (kind.size + 1))[c] += math.comb(kind.size, c) * (more - less)
        for _ in range(count):
            longer: dict[int, list[Fraction]] = {}
            for total, left in held.items():
                for values, right in site.items():
                    row = longer.setdefault(total + values * votes, [Fraction(0)] * (len(left) + len(right) - 1))
                    for i, a in enumerate(left):
                        for j, b in enumerate(right):
                            row[i + j] += a * b
            held = longer
    n = sum(kind.size * count for kind, count in zip(kinds, number, strict=True))
    kept = [sum((row[a] for total, row in held.items() if total <= choice.rank - 1), Fraction(0)) for a in range(n + 1)]
    mean = sum((each / ((n + 1) * math.comb(n, a)) for a, each in enumerate(kept)), Fraction(0))
    square = sum(
        (2 * each * (a + 1) / ((n + 1) * (n + 2) * math.comb(n, a)) for a, each in enumerate(kept)), Fraction(0)
    )
    return mean, square


def random_case(seed: int) -> tuple[list[Kind], list[int], Choice]:
    source = dice(seed).generator()
    count, values = int(source.integers(1, 4)), int(source.integers(1, 3))
    kinds, orders = [], []
    for _ in range(count):
        size = int(source.integers(1, 8))
        noisy = values == 1 and source.random() < 0.4
        kinds.append(Kind(size, stepped if noisy else None))
        orders.append(tuple(sorted(source.integers(1, size + 1 + (source.random() < 0.2), size=values).tolist())))
    number = source.integers(1, 3, size=count).tolist()
    votes = tuple(source.integers(1, 6, size=count).tolist())
    total = sum(n * v for n, v in zip(number, votes, strict=True)) * values
    return kinds, number, Choice(tuple(orders), votes, int(source.integers(1, total + 1)), 0.0, 0.0)


@pytest.mark.parametrize("seed", range(30))
def test_laws_of_any_choice_are_exact(seed: int) -> None:
    kinds, number, choice = random_case(seed)
    mean, square = exact(kinds, number, choice)
    spread = math.sqrt(square - mean**2)
    known = choice._replace(mean=float(mean), sd=spread)
    if mean == 1:
        return  # an infinite threshold
    grid = distribution_grid(kinds, known._replace(sd=max(spread, 0.05)))
    held = survival(kinds, number, known, grid.levels)
    # what does not fall to zero at level 1 is cut off there: sites that answer infinity
    assert float(grid.mean(held)) == pytest.approx(known.mean, abs=2e-7)
    assert float(grid.mean(held)) <= known.mean + 1e-9
    assert (np.diff(held) <= 1e-12).all()


CHOSEN: list[tuple[list[Kind], list[int], float, int]] = [
    ([Kind(4), Kind(7)], [2, 1], 0.2, 1),
    ([Kind(4), Kind(7)], [2, 1], 0.3, 2),
    ([Kind(1), Kind(2), Kind(3)], [2, 2, 1], 0.25, 1),
    ([Kind(9), Kind(3, stepped)], [1, 2], 0.25, 1),
    ([Kind(6, stepped), Kind(8, stepped)], [1, 2], 0.3, 1),
    ([Kind(12)], [2], 0.2, 3),
    ([Kind(10, stepped)], [3], 0.15, 1),
]


@pytest.mark.parametrize(("kinds", "number", "alpha", "statistics"), CHOSEN)
@pytest.mark.parametrize("rule", ["closest", "paper"])
def test_what_is_chosen_has_the_coverage_it_says(
    kinds: list[Kind], number: list[int], alpha: float, statistics: int, rule: str
) -> None:
    if rule == "paper" and statistics > 1:
        statistics = 1
    choice = choose(kinds, number, Aim(alpha, rule=rule, lowest=True), statistics)
    assert choice is not None
    mean, square = exact(kinds, number, choice)
    assert mean >= 1 - Fraction(str(alpha)) - Fraction(1, 10**12)
    assert choice.mean == pytest.approx(float(mean), abs=1e-11)
    assert choice.sd == pytest.approx(math.sqrt(square - mean**2), abs=1e-9)
    # and no smaller rank would do
    assert exact(kinds, number, choice._replace(rank=choice.rank - 1))[0] < 1 - Fraction(str(alpha))


@pytest.mark.parametrize("seed", range(12))
def test_the_general_engine_agrees_with_that_for_equal_sites(seed: int) -> None:
    source = dice(100 + seed).generator()
    m, n, alpha = int(source.integers(2, 30)), int(source.integers(10, 80)), float(source.choice([0.1, 0.2, 0.4]))
    pair = equal.closest(m, n, alpha)
    assert pair is not None
    # a failure that is the plain one takes the way of private sites; two kinds alike take the way of unequal ones
    plain = Kind(n, lambda distance: np.asarray(distance >= 0, dtype=np.float64))
    for kinds, number in (([plain], [m]), ([Kind(n), Kind(n)], [m // 2, m - m // 2])):
        forced = Choice(((pair.order,),) * len(kinds), (1,) * len(kinds), pair.rank, pair.mean, pair.sd)
        grid = distribution_grid(kinds, forced)
        held = survival(kinds, number, forced, grid.levels)
        assert float(grid.mean(held)) == pytest.approx(pair.mean, abs=1e-12)
        assert float(grid.sd(held)) == pytest.approx(pair.sd, abs=1e-10)
        assert choose(kinds, number, Aim(alpha)) is not None
        found = choose(kinds, number, Aim(alpha))
        assert found is not None
        worth, best = ((each.mean - 1 + alpha) ** 2 + each.sd**2 for each in (found, pair))
        assert best * (1 - 1e-9) <= worth < 1.2 * best  # it tries a part of the orders only


@pytest.mark.parametrize("delta", [0.2, 0.05])
@pytest.mark.parametrize(
    ("kinds", "number"),
    [([Kind(20), Kind(100)], [5, 2]), ([Kind(60), Kind(90, stepped)], [2, 2]), ([Kind(80, stepped)], [4])],
)
def test_the_training_conditional_promise_is_kept_exactly(kinds: list[Kind], number: list[int], delta: float) -> None:
    choice = choose(kinds, number, Aim(0.1, delta))
    assert choice is not None

    def chance(rank: int) -> Fraction:
        level, distribution = Fraction(9, 10), {0: Fraction(1)}
        for kind, count, (order,), votes in zip(kinds, number, choice.orders, choice.votes, strict=True):
            lies = sum(
                math.comb(kind.size, c) * level**c * (1 - level) ** (kind.size - c) * fails(kind, c - order)
                for c in range(kind.size + 1)
            )
            for _ in range(count):
                longer: dict[int, Fraction] = {}
                for total, mass in distribution.items():
                    longer[total] = longer.get(total, Fraction(0)) + mass * (1 - lies)
                    longer[total + votes] = longer.get(total + votes, Fraction(0)) + mass * lies
                distribution = longer
        return sum((mass for total, mass in distribution.items() if total <= rank - 1), Fraction(0))

    assert chance(choice.rank) >= 1 - Fraction(str(delta)) - Fraction(1, 10**12)
    assert chance(choice.rank - 1) < 1 - Fraction(str(delta))
    assert float(chance(choice.rank)) == pytest.approx(
        float(survival(kinds, number, choice, np.array([0.9]))[0]), abs=1e-12
    )


def test_known_figures_for_unequal_sites() -> None:
    two = choose([Kind(20), Kind(1000)], [15, 5], Aim(0.1))
    paper = choose([Kind(20), Kind(1000)], [15, 5], Aim(0.1, rule="paper"))
    three = choose([Kind(20), Kind(1000)], [15, 5], Aim(0.1), 3)
    assert two is not None
    assert paper is not None
    assert three is not None
    assert paper.orders == ((19,), (901,))
    assert [round(choice.sd, 5) for choice in (paper, two, three)] == [0.00859, 0.00506, 0.00437]


def test_known_figures_for_several_statistics() -> None:
    spreads = [choose([Kind(100)], [10], Aim(0.1), statistics).sd for statistics in range(1, 6)]  # type: ignore[union-attr]
    assert spreads[0] <= 0.0120
    assert spreads[2] <= 0.0101
    assert spreads == sorted(spreads, reverse=True)


def test_small_sites_do_not_drown_a_large_one() -> None:
    alone = choose([Kind(100_000)], [1], Aim(0.1))
    joined = choose([Kind(1), Kind(100_000)], [200, 1], Aim(0.1))
    assert alone is not None
    assert joined is not None
    assert joined.sd < 1.6 * alone.sd
    assert joined.votes[1] > 10 * joined.votes[0]


def test_votes_are_as_the_roots_of_the_sizes() -> None:
    sizes = [100, 400, 2500, 10_000]
    choice = choose([Kind(n) for n in sizes], [10] * 4, Aim(0.1))
    assert choice is not None
    roots = np.sqrt(sizes)
    np.testing.assert_allclose(np.array(choice.votes) / choice.votes[-1], roots / roots[-1], rtol=0.25)


@pytest.mark.parametrize("kinds", [[Kind(40)], [Kind(30), Kind(70)]])
def test_two_neighbours_straddle_the_level(kinds: list[Kind]) -> None:
    number = [5] * len(kinds)
    choice = choose(kinds, number, Aim(0.1))
    assert choice is not None
    lower = lower_neighbour(kinds, number, choice)
    assert lower.mean < 0.9 <= choice.mean + 1e-12
    chance = (0.9 - lower.mean) / (choice.mean - lower.mean)
    mixed = [exact_mean(kinds, number, each) for each in (choice, lower)]
    assert chance * mixed[0] + (1 - chance) * mixed[1] == pytest.approx(0.9, abs=1e-11)
    assert lower_neighbour(kinds, number, choice._replace(rank=1))[2:] == (0, 0.0, 0.0)


def exact_mean(kinds: list[Kind], number: list[int], choice: Choice) -> float:
    if len(kinds) == 1:
        return float(equal.moments(number[0], kinds[0].size, choice.orders[0], [choice.rank])[0][0])
    levels = np.linspace(0, 1, 20_001)[1:] - 1 / 40_000
    return float(np.mean(survival(kinds, number, choice, levels)))  # a midpoint sum, of a smooth distribution


def test_no_choice_where_none_is_possible() -> None:
    assert choose([Kind(3), Kind(5)], [1, 1], Aim(0.1)) is None
    assert choose([Kind(3), Kind(6)], [1, 1], Aim(0.1)) is not None  # nine scores do
    assert choose([Kind(8)], [1], Aim(0.1), 3) is None
    assert choose([Kind(9)], [1], Aim(0.1), 3) is not None


def test_infinite_without_privacy_is_certain_or_impossible() -> None:
    kinds, number = [Kind(5), Kind(9)], [2, 1]
    asked = Choice(((6,), (9,)), (1, 2), 1, 0.9, 0.1)
    found = [infinite(kinds, number, asked._replace(rank=rank)) for rank in (1, 2, 3, 4)]
    assert found == pytest.approx([0, 0, 1, 1], abs=1e-14)


def test_infinite_with_privacy_is_a_sum_over_sites() -> None:
    mechanism = selection("sparse-vector", 20, 19, 11, 0.5)
    kind = Kind(20, mechanism.failure, False, lambda order: mechanism.unbounded)
    once = mechanism.distribution(np.array([20] + [0] * 10))[-1]
    for rank in (1, 2, 3):
        known = sum(math.comb(3, j) * once**j * (1 - once) ** (3 - j) for j in range(4 - rank, 4))
        assert infinite([kind], [3], Choice(((19,),), (1,), rank, 0.9, 0.1)) == pytest.approx(known, rel=1e-9)


def test_rounding_does_not_cost_an_order() -> None:
    assert equal.ROUNDING < 1e-11
    for n in (9, 19, 99, 999):
        choice = choose([Kind(n, lambda distance: np.asarray(distance >= 0, dtype=np.float64))], [1], Aim(0.1))
        assert choice is not None
        assert choice.orders == ((round(0.9 * (n + 1)),),)
