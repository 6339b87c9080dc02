"""Limits of a mixture cover for every sizes, weights, shares and noise; measured where they are long or short."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.inference import conformal as of_counts
from sottovoce.inference.conformal import mixture_limits as limits


def distribution(n: int, share: float, ratio: float = 0.0, reach: int = 0) -> dict[int, float]:
    found = dict.fromkeys(range(-reach, n + reach + 1), 0.0)
    for x in range(n + 1):
        chance = math.comb(n, x) * share**x * (1 - share) ** (n - x)
        for step in range(-reach, reach + 1):
            found[x + step] += chance * (ratio ** abs(step) * (1 - ratio) / (1 + ratio) if reach else 1.0)
    return found


def missed(
    sizes: Sequence[int], weights: Sequence[float], shares: Sequence[float], level: float, ratio: float, reach: int
) -> tuple[float, float]:
    """Return how often each limit is on the wrong side, by enumeration."""
    truth = sum(w * p for w, p in zip(weights, shares, strict=True))
    distributions = [distribution(n, share, ratio, reach) for n, share in zip(sizes, shares, strict=True)]
    low_errs = high_errs = 0.0
    for counts in itertools.product(*distributions):
        low, high = kept(counts, tuple(sizes), tuple(weights), level, (ratio,) * len(sizes))
        chance = math.prod(each[count] for each, count in zip(distributions, counts, strict=True))
        low_errs += chance * (low > truth + 1e-12)
        high_errs += chance * (high < truth - 1e-12)
    return low_errs, high_errs


kept = lru_cache(maxsize=None)(limits)
SHARES = (0.0, 0.03, 0.5, 0.9, 1.0)


@pytest.mark.parametrize(
    ("sizes", "weights"),
    [((3, 6), (1 / 2, 1 / 2)), ((2, 5), (0.9, 0.1)), ((1, 2, 4), (1 / 3, 1 / 3, 1 / 3))],
    ids=["sites", "given", "three"],
)
def test_each_limit_errs_at_most_half_of_the_rest(sizes: tuple[int, ...], weights: tuple[float, ...]) -> None:
    for level in (0.7, 0.95):
        for shares in itertools.product(SHARES, repeat=len(sizes)):
            assert max(missed(sizes, weights, shares, level, 0.0, 0)) <= (1 - level) / 2 + 1e-9


def test_so_it_does_where_every_record_weighs_the_same() -> None:
    for sizes in ((1, 1), (2, 3), (1, 2, 2)):
        weights = [n / sum(sizes) for n in sizes]
        for level in (0.6, 0.95):
            tail = (1 - level) / 2
            for shares in itertools.product((*SHARES, tail, 1 - tail, 0.999 * tail), repeat=len(sizes)):
                assert max(missed(sizes, weights, shares, level, 0.0, 0)) <= tail + 1e-9


def test_at_a_total_of_one_the_binomial_limit_would_err_too_often() -> None:
    tail, sizes = 0.2, (1, 1)
    low, _ = of_counts.exact_limits(1, 2, 1 - 2 * tail)
    share = 2 * low * 0.9999  # all of it at one site: a total of one or more has this probability
    assert low > share / 2
    assert share > tail
    assert limits([1, 0], sizes, [0.5, 0.5], 1 - 2 * tail, [0, 0])[0] <= share / 2


def test_noise_is_accounted_for() -> None:
    ratio = math.exp(-1.5)
    for shares in itertools.product((0.0, 0.3, 0.95, 1.0), repeat=2):
        # noise beyond the reach has a probability of 2e-5
        assert max(missed((1, 2), (0.5, 0.5), shares, 0.9, ratio, 7)) <= 0.05 - 2e-5


def test_the_worst_shares_are_found() -> None:
    # a fine search over two shares and the bend may not do better for the bound than the closed form
    counts, sizes, weights, tail = (9, 14), (10, 30), (0.6, 0.4), 0.05
    low, _ = limits(counts, sizes, weights, 1 - 2 * tail, (0, 0))
    mean = sum(w * x / n for w, x, n in zip(weights, counts, sizes, strict=True))
    bend = np.geomspace(0.1, 1000, 4000)

    def bound(theta: float) -> float:
        """Return the least over the bend of the largest log probability over the shares."""
        first = np.linspace(max(0.0, (theta - weights[1]) / weights[0]), min(1.0, theta / weights[0]), 801)
        second = (theta - weights[0] * first) / weights[1]
        value = -bend[:, None] * mean
        for share, w, n in ((first, weights[0], sizes[0]), (second, weights[1], sizes[1])):
            value = value + n * np.log1p(share * np.expm1(bend * w / n)[:, None])
        return float(value.max(axis=1).min())

    assert bound(low) == pytest.approx(math.log(tail), abs=2e-3)
    assert bound(low * 1.02) > math.log(tail) + 0.01


def test_alone_a_site_has_its_own_interval_and_no_weight_no_say() -> None:
    assert limits([88], [100], [1.0], 0.95, [0.4]) == of_counts.limits(88, 100, 0.95, 0.4)
    assert limits([88, 3], [100, 90], [1.0, 0.0], 0.95, [0, 0]) == of_counts.exact_limits(88, 100, 0.95)
    assert limits([88, 3], [100, 90], [100 / 190, 90 / 190], 0.95, [0, 0]) == of_counts.exact_limits(91, 190, 0.95)


def test_covered_and_missed_are_mirrored() -> None:
    low, high = limits([9, 27, 55], [10, 30, 60], [0.5, 0.3, 0.2], 0.95, [0, 0.2, 0.1])
    other = limits([1, 3, 5], [10, 30, 60], [0.5, 0.3, 0.2], 0.95, [0, 0.2, 0.1])
    assert list(other) == pytest.approx([1 - high, 1 - low], abs=1e-9)


def test_all_or_nothing_and_wild_noise_stay_within_bounds() -> None:
    low, high = limits([5, 7], [5, 7], [0.5, 0.5], 0.95, [0, 0])
    assert 0.6 < low < high == 1.0
    assert limits([0, 0], [5, 7], [0.5, 0.5], 0.95, [0, 0])[0] == 0.0
    low, high = limits([900, 700], [5, 7], [0.5, 0.5], 0.95, [0.5, 0.5])
    assert 0 <= low < high == 1.0
    assert limits([3, 4], [5, 7], [0.5, 0.5], 0.95, [0.9999, 0.9999]) == (0.0, 1.0)


def test_in_use_it_covers_and_is_two_thirds_longer_than_by_the_normal_law() -> None:
    # 36 sites of different sizes and coverages. Were a limit to err as often as allowed, 0.025, more than 20 of 200
    # would be wrong with probability 5e-8; measured in 2,000 runs: two of each
    draw = sv.sim.dice(5).generator()
    sizes = draw.integers(40, 400, 36)
    shares = np.clip(0.9 + 0.08 * draw.standard_normal(36), 0.3, 1.0)
    weights = np.full(36, 1 / 36)
    truth, runs = float(weights @ shares), 200
    found = np.array(
        [
            limits(x, sizes.tolist(), weights.tolist(), 0.95, [0.0] * 36)
            for x in draw.binomial(sizes, shares, (runs, 36)).tolist()
        ]
    )
    assert max(np.sum(found[:, 0] > truth), np.sum(found[:, 1] < truth)) <= 20
    normal = 2 * 1.96 * math.sqrt(float(np.sum(weights**2 * shares * (1 - shares) / sizes)))
    assert 1.2 < float(np.mean(found[:, 1] - found[:, 0])) / normal < 1.8
