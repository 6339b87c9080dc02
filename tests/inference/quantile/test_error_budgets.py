"""Error budgets: over all adaptive plans the truth is rejected with probability alpha at most; tests and sets agree."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import sottovoce as sv
from sottovoce.inference.quantile.error_budgets import (
    ALPHAS,
    DONE,
    SMALLEST,
    Classes,
    Evidence,
    binomial_below,
    critical_count,
    folded,
    heard,
    hull,
    interval,
    opened,
    p_value,
)

Row = npt.NDArray[np.float64]
every_setting = pytest.mark.parametrize(("alpha", "s"), [(a, s) for a in (0.05, 0.2) for s in (0.3, 0.5, 0.62)])


def after(budgets: Row, side: int, count: int, successes: int, horizon: int, pot: float, s: float) -> Row:
    """Return the budgets of the class on which a query acts, through the public step."""
    below = successes if side < 0 else count - successes
    before = Classes(np.zeros(1), np.repeat(budgets[:, None], 2, axis=1))
    return heard(before, Evidence(0.0, side, count, below, horizon, pot), s).budgets[:, 0 if side < 0 else 1]


def chances(probabilities: Sequence[float]) -> Row:
    """Return the distribution of the number of successes of independent reports, not always alike."""
    result = np.ones(1)
    for p in probabilities:
        result = np.append(result, 0.0) * (1 - p) + np.append(0.0, result) * p
    return result


class Plans:
    """Every adaptive plan of so many reports: portion, horizon, pot and label may depend on all that was said.

    What matters of the past is the budget of the true class and the reports left, so that the largest probability of
    ever rejecting it follows from the end backwards. Budgets that agree in twelve digits are one state. A world says
    with which probabilities the reports of a portion succeed.
    """

    def __init__(self, s: float, sides: Sequence[int], pots: Sequence[float], lifts: Iterable[float] = (0.0,)) -> None:
        self.s, self.sides, self.pots, self.lifts = s, sides, pots, tuple(lifts)

    def moves(self, left: int) -> Iterable[tuple[int, int, int, float]]:
        for count in range(1, left + 1):
            for horizon in range(count, left + 1):
                for side in self.sides:
                    for pot in self.pots if horizon > count else (0.0,):
                        yield side, count, horizon, pot

    def worlds(self, side: int, count: int) -> Iterable[Row]:
        p = self.s if side < 0 else 1 - self.s
        for lift in self.lifts:
            for lifted in range(count + 1) if lift else (0,):
                yield chances([p] * (count - lifted) + [p + lift * (1 - p)] * lifted)

    def worst(self, alpha: float, reports: int) -> float:
        """Return the largest probability, over all plans and worlds, of rejecting the true class."""
        found: dict[int, list[Row]] = {left: [] for left in range(reports)}
        found[reports] = [np.array([alpha])]
        keys: dict[int, Row] = {}
        moves: dict[int, list[tuple[int, int, list[Row]]]] = {}
        for left in range(reports, 0, -1):
            every = np.concatenate(found.pop(left))
            keys[left], first = np.unique(np.round(every, 12), return_index=True)
            moves[left] = []
            for side, count, horizon, pot in self.moves(left):
                ends = [after(every[first], side, count, j, horizon, pot, self.s) for j in range(count + 1)]
                moves[left].append((side, count, ends))
                found[left - count] += ends if left > count else []
        values: dict[int, Row] = {}
        for left in range(1, reports + 1):
            values[left] = (keys[left] >= DONE).astype(np.float64)
            for side, count, ends in moves[left]:
                rest = left - count
                known = [
                    values[rest][np.searchsorted(keys[rest], np.round(end, 12))] if rest else 1.0 * (end >= DONE)
                    for end in ends
                ]
                for weights in self.worlds(side, count):
                    values[left] = np.maximum(values[left], weights @ np.array(known))
        return float(values[reports][0])


@every_setting
@pytest.mark.parametrize(
    ("reports", "sides", "pots"),
    [(5, (-1, 1), (0.0, 0.25)), (6, (-1, 1), (0.0,)), (6, (-1,), (0.1, 0.5)), (7, (1,), (0.0,)), (8, (-1,), (0.0,))],
)
def test_no_plan_rejects_the_truth_more_often_than_alpha(
    alpha: float, s: float, reports: int, sides: tuple[int, ...], pots: tuple[float, ...]
) -> None:
    assert Plans(s, sides, pots).worst(alpha, reports) <= alpha * (1 + 1e-9)


@pytest.mark.parametrize(
    ("alpha", "s", "most"), [(0.05, 0.3, 0.0498), (0.05, 0.62, 0.0499), (0.2, 0.3, 0.1994), (0.2, 0.62, 0.1999)]
)
def test_some_plan_comes_close_to_alpha(alpha: float, s: float, most: float) -> None:
    assert most < Plans(s, (-1, 1), (0.0,)).worst(alpha, 6) <= alpha


def test_with_a_fair_coin_some_plan_attains_the_largest_multiple_of_its_probabilities() -> None:
    assert Plans(0.5, (-1,), (0.0,)).worst(0.05, 8) == 12 / 256  # 13 / 256 is more than alpha
    assert Plans(0.5, (-1,), (0.0,)).worst(0.2, 8) == 51 / 256
    assert Plans(0.5, (-1, 1), (0.0, 0.25)).worst(0.25, 5) == 0.25


@every_setting
def test_reports_that_succeed_more_often_and_differ_are_no_worse(alpha: float, s: float) -> None:
    plain = Plans(s, (-1, 1), (0.0, 0.25)).worst(alpha, 5)
    assert Plans(s, (-1, 1), (0.0, 0.25), lifts=(0.0, 0.2, 0.7, 1.0)).worst(alpha, 5) == pytest.approx(plain, rel=1e-9)
    assert Plans(s, (-1, 1), (0.0, 0.25), lifts=(0.3,)).worst(alpha, 5) <= alpha
    assert Plans(s, (-1, 1), (0.0,), lifts=(-0.3,)).worst(alpha, 5) > alpha  # below s, it is no longer the truth


def missed(seed: int, alpha: float, s: float, reports: int) -> float:
    """Return how likely a random adaptive plan over many points leaves the truth, 0, where every report says s."""

    def go(classes: Classes, left: int, said: int) -> float:
        if left == 0:
            low, high = hull(classes)
            return 0.0 if low < 0 <= high else 1.0
        plan = sv.sim.dice(said).generator()  # whatever was said so far
        point, count = float(plan.integers(-2, 3)), int(plan.integers(1, left + 1))
        side = int(plan.choice([-1, 1]))
        horizon, pot = int(plan.integers(count, left + 2)), float(plan.choice([0.0, 0.3]))
        return sum(
            float(weight)
            * go(heard(classes, Evidence(point, side, count, k, horizon, pot), s), left - count, 9 * said + k)
            for k, weight in enumerate(chances([s] * count))
        )

    return go(opened(np.array([alpha])), reports, seed)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_random_plans_over_many_points_cover_a_truth_in_a_flat_stretch(alpha: float) -> None:
    found = [missed(seed, alpha, s, 7) for seed in range(1, 31) for s in (0.3, 0.5, 0.62)]
    assert max(found) <= alpha * (1 + 1e-9)
    assert max(found) > 0.6 * alpha


queries = st.tuples(
    st.sampled_from([-1, 1]), st.integers(1, 30), st.integers(0, 40), st.sampled_from([0.0, 0.1, 0.5, 1.0])
)


@settings(deadline=None)
@given(budget=st.floats(1e-9, 1, exclude_max=True), query=queries, s=st.floats(0.05, 0.95))
def test_at_the_boundary_a_budget_keeps_its_mean(budget: float, query: tuple[int, int, int, float], s: float) -> None:
    side, count, beyond, pot = query
    p = s if side < 0 else 1 - s
    new = np.array([after(np.array([budget]), side, count, k, count + beyond, pot, s)[0] for k in range(count + 1)])
    weights = np.array([math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)])
    assert np.all((new >= 0) & (new <= 1))
    assert np.all(np.diff(new) <= 1e-12)  # more successes, less evidence
    mean = float(weights @ new)
    assert mean <= budget + 2e-12
    if pot == 0 or beyond == 0:
        assert mean == pytest.approx(budget, rel=1e-10)


def below(k: int, n: int, p: Fraction) -> Fraction:
    """Return the binomial probability of at most k, in whole numbers."""
    a, b = p.numerator, p.denominator - p.numerator
    return Fraction(sum(math.comb(n, j) * a**j * b ** (n - j) for j in range(k + 1)), p.denominator**n)


def tail(k: int, n: int, p: float) -> mpmath.mpf:
    """Return the binomial probability of at most k: the largest term by loggamma, the others in 200-bit integers."""
    with mpmath.workdps(50):
        q = mpmath.mpf(p)
        log_term = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        first = mpmath.exp(log_term + k * mpmath.log(q) + (n - k) * mpmath.log(1 - q))
        odds, term, total = int((1 - q) / q * 2**100), 1 << 200, 0
        for j in range(k, -1, -1):
            total += term
            term = term * j * odds // (n - j + 1) >> 100
            if term < 1 << 120:  # what is left out is less than 2^-80 n of the first
                break
        return first * total / mpmath.mpf(2) ** 200


@settings(deadline=None)
@given(n=st.integers(1, 60), p=st.floats(0.02, 0.98), level=st.floats(1e-12, 1, exclude_max=True))
def test_critical_counts_in_whole_numbers(n: int, p: float, level: float) -> None:
    k = int(critical_count(np.array([level]), n, p)[0])
    room = Fraction(1, 10**13)
    assert -1 <= k < n
    assert below(k, n, Fraction(p)) <= Fraction(level) * (1 + room)
    assert below(k + 1, n, Fraction(p)) > Fraction(level) * (1 - room)


@settings(deadline=None)
@given(n=st.integers(1, 10**6), p=st.floats(0.02, 0.98), level=st.floats(1e-12, 1 - 1e-9))
def test_critical_counts_beside_another_code(n: int, p: float, level: float) -> None:
    k = critical_count(np.array([level]), n, p)
    assert k[0] < 0 or binom.cdf(k[0], n, p) <= level * (1 + 1e-11)
    assert binom.cdf(k[0] + 1, n, p) >= level * (1 - 1e-11)


@pytest.mark.parametrize("n", [10**3, 10**5, 10**7, 10**8])
@pytest.mark.parametrize("p", [0.05, 0.31, 0.5, 0.88])
def test_critical_counts_of_large_studies(n: int, p: float) -> None:
    levels = np.array([1e-12, 0.001, 0.05, 0.4, 0.5])
    for level, k in zip(levels, critical_count(levels, n, p), strict=True):
        assert tail(int(k), n, p) <= level < tail(int(k) + 1, n, p)


@pytest.mark.parametrize("n", [40, 10**4, 10**6, 10**7, 10**8])
def test_tails_are_exact_at_the_centre_too(n: int) -> None:  # scipy's bdtr is off by a fifth there at 1e8
    for p in (0.27, 0.5, 0.62):
        spread = math.sqrt(n * p * (1 - p))
        for z in (-6, -3, -1, 0):
            k = max(0, math.floor(n * p + z * spread))
            assert binomial_below(np.array([float(k)]), n, p)[0] == pytest.approx(float(tail(k, n, p)), rel=1e-12)


def test_tails_beyond_the_ends() -> None:
    assert binomial_below(np.array([-3.0, -1.0, 4.0, 9.0]), 4, 0.3).tolist() == [0, 0, 1, 1]
    assert binomial_below(np.array([-1.0, 0.0, 1.0]), 0, 0.3).tolist() == [0, 1, 1]
    assert critical_count(np.array([0.0, 1e-300, 1.0]), 4, 0.3).tolist() == [-1, -1, 4]


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    portions=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    side=st.sampled_from([-1, 1]),
)
def test_all_queries_heard_end_as_the_binomial_test_of_the_pooled_count(
    seed: int, portions: list[int], side: int
) -> None:
    draw = sv.sim.dice(seed).generator()
    s, alpha, total = draw.uniform(0.2, 0.8), draw.uniform(0.01, 0.5), sum(portions)
    p = s if side < 0 else 1 - s
    budgets, left, pooled = np.array([alpha]), total, 0
    for count in portions:
        successes = int(draw.binomial(count, p * (1 - draw.uniform(0, 1) / math.sqrt(total))))
        budgets, left, pooled = after(budgets, side, count, successes, left, 0.0, s), left - count, pooled + successes
    k = int(binom.ppf(alpha, total, p))  # the first count whose probability reaches alpha
    if pooled != k:
        assert budgets[0] == (1.0 if pooled < k else 0.0)
    else:  # the count between: what a randomised test would reject with
        under = binom.cdf(k - 1, total, p)
        assert budgets[0] == pytest.approx((alpha - under) / binom.pmf(k, total, p), abs=1e-3)


def story(seed: int) -> tuple[list[Evidence], float]:
    """Return random queries at a dozen points, some of them twice, about a quantile near zero."""
    draw = sv.sim.dice(seed).generator()
    s, result = float(draw.uniform(0.25, 0.75)), []
    for _ in range(int(draw.integers(1, 14))):
        point, count = float(draw.integers(-6, 7)), int(draw.integers(1, 120))
        ones = int(draw.binomial(count, min(max(s + 0.04 * point, 0.01), 0.99)))
        side, horizon = int(draw.choice([-1, 1])), count + int(draw.integers(0, 200))
        result.append(Evidence(point, side, count, ones, horizon, float(draw.choice([0.0, 0.1]))))
    return result, s


stories = st.integers(0, 10**9).map(story)


@settings(deadline=None)
@given(told=stories, alphas=st.lists(st.floats(1e-6, 1 - 1e-6), min_size=2, max_size=6))
def test_budgets_grow_with_alpha_and_sets_are_nested(told: tuple[list[Evidence], float], alphas: list[float]) -> None:
    classes = folded(told[0], told[1], np.sort(alphas))
    assert np.all(np.diff(classes.budgets, axis=0) >= -1e-9)
    assert len(classes.edges) == len({query.point for query in told[0]})
    alive = [row for row in range(len(alphas)) if np.any(classes.budgets[row] < DONE)]
    assert alive == list(range(len(alive)))  # where a larger alpha leaves a class, so does a smaller one
    lows, highs = np.array([hull(classes, row) for row in alive]).reshape(-1, 2).T
    assert np.all(lows < highs)
    assert np.all(lows[1:] >= lows[:-1])
    assert np.all(highs[1:] <= highs[:-1])


@settings(deadline=None)
@given(told=stories, value=st.floats(-7, 7), alpha=st.floats(1e-6, 0.999))
def test_p_values_agree_with_intervals(told: tuple[list[Evidence], float], value: float, alpha: float) -> None:
    evidence, s = told
    at_most, at_least = (p_value(evidence, s, value, side) for side in (-1, 1))
    assert min(at_most, at_least) >= SMALLEST
    assert max(at_most, at_least) <= 1
    if np.all(folded(evidence, s, np.array([alpha])).budgets >= DONE):
        assert max(at_most, at_least) <= alpha * 1.002
        return
    low, high = interval(evidence, s, alpha)
    for p, inside in ((at_most, low < value), (at_least, value <= high)):
        assert inside or p <= alpha * 1.002  # p-values are told to .1 %, from above
        assert p > alpha or not inside


@settings(max_examples=40, deadline=None)
@given(told=stories, values=st.lists(st.floats(-7, 7), min_size=2, max_size=2))
def test_p_values_are_monotone(told: tuple[list[Evidence], float], values: list[float]) -> None:
    (one, other), (three, four) = ([p_value(*told, value, side) for side in (-1, 1)] for value in sorted(values))
    assert one <= three
    assert other >= four


def test_a_p_value_of_one_query_is_the_binomial_one() -> None:
    for ones in (10, 14, 19):
        at_most = p_value([Evidence(1.0, -1, 40, ones, 40)], 0.5, 1.0, -1)
        assert at_most == pytest.approx(binom.cdf(ones, 40, 0.5), rel=1.1e-3)
        assert at_most >= binom.cdf(ones, 40, 0.5)
    nothing = [Evidence(1.0, -1, 40, 40, 40)]  # the query says nothing about 2
    assert p_value(nothing, 0.5, 2.0, -1) == p_value(nothing, 0.5, 2.0, 1) == 1.0
    assert p_value([Evidence(1.0, -1, 400, 0, 400)], 0.5, 1.0, -1) == SMALLEST
    assert math.log(1 / SMALLEST) / 1.1e-3 < ALPHAS**3  # as fine as the tests above say


def test_a_last_portion_decides() -> None:
    level = np.array([0.05])
    critical = int(critical_count(level, 40, 0.5)[0])
    ends = [after(level, -1, 40, k, 40, 0.0, 0.5)[0] for k in range(41)]
    assert ends[: critical + 1] == [1.0] * (critical + 1)
    assert 0 < ends[critical + 1] < 1
    assert ends[critical + 2 :] == [0.0] * (40 - critical - 1)
    assert [after(level, -1, 40, k, 30, 0.0, 0.5)[0] for k in range(41)] == ends  # a horizon already passed


def test_nothing_said_moves_nothing() -> None:
    classes = folded([Evidence(1.0, -1, 0, 0, 50), Evidence(2.0, 1, 0, 0, 0, 0.3)], 0.4, np.array([0.05, 0.3]))
    assert classes.edges.tolist() == [1.0, 2.0]
    assert classes.budgets.tolist() == [[0.05] * 3, [0.3] * 3]
    assert hull(classes) == (-math.inf, math.inf)
    assert hull(opened(np.array([0.05]))) == (-math.inf, math.inf)
    assert interval([], 0.5, 0.05) == (-math.inf, math.inf)


def test_a_point_asked_twice_is_one_edge() -> None:
    twice = [Evidence(1.0, -1, 20, 4, 40), Evidence(1.0, -1, 20, 3, 20), Evidence(1.0, 1, 20, 4, 20)]
    classes = folded(twice, 0.5, np.array([0.05]))
    assert classes.edges.tolist() == [1.0]
    assert classes.budgets.tolist() == [[1.0, 0.0]]
    assert hull(classes) == (1.0, math.inf)


def test_a_query_acts_on_its_own_side_and_a_point_belongs_to_the_class_below() -> None:
    low = folded([Evidence(1.0, -1, 40, 2, 40)], 0.5, np.array([0.05]))
    assert low.budgets.tolist() == [[1.0, 0.05]]
    high = folded([Evidence(1.0, 1, 40, 38, 40)], 0.5, np.array([0.05]))
    assert high.budgets.tolist() == [[0.05, 1.0]]
    assert (hull(low), hull(high)) == ((1.0, math.inf), (-math.inf, 1.0))
    new = heard(low, Evidence(0.0, 1, 10, 5, 40), 0.5)  # divides a rejected class: both parts stay rejected
    assert new.edges.tolist() == [0.0, 1.0]
    assert new.budgets[0, :2].tolist() == [1.0, 1.0]
    assert low.budgets.tolist() == [[1.0, 0.05]]  # what went in is as it was


def test_when_every_class_is_rejected_nothing_is_said() -> None:
    evidence = [Evidence(1.0, -1, 40, 2, 40), Evidence(1.0, 1, 40, 38, 40)]
    assert folded(evidence, 0.5, np.array([0.05])).budgets.tolist() == [[1.0, 1.0]]
    assert interval(evidence, 0.5, 0.05) == (-math.inf, math.inf)
    assert max(p_value(evidence, 0.5, 1.0, side) for side in (-1, 1)) < 1e-6


def test_a_hole_of_rejected_classes_is_inside_the_hull() -> None:
    classes = Classes(np.array([0.0, 1.0]), np.array([[0.2, 1.0, 0.3], [1.0, 1.0, 0.3], [1.0, 0.3, 1.0]]))
    assert [hull(classes, row) for row in range(3)] == [(-math.inf, math.inf), (1.0, math.inf), (0.0, 1.0)]


@settings(deadline=None)
@given(budget=st.floats(0.5, 1 - 1e-6), count=st.integers(1, 40), beyond=st.integers(0, 40))
def test_budgets_above_one_half(budget: float, count: int, beyond: int) -> None:
    ends = [after(np.array([budget]), -1, count, k, count + beyond, 0.0, 0.5)[0] for k in range(count + 1)]
    assert ends[0] >= budget >= ends[-1]
    assert max(ends) <= 1
