"""The table of coverages against exact rationals, its symmetry, and the closed form of its last row."""

from typing import Any

import mpmath
import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.coverage import equal
from sottovoce.server.conformal.coverage.table import conformal_coverage, nodes

TO_12 = [(m, n) for m in range(1, 13) for n in range(1, 13)]
LARGE = [(10, 1_000_000), (1_000_000, 10), (10_000, 10_000), (1_000_000, 1_000_000)]


def choose(n: int) -> list[int]:
    row = [1]
    for k in range(n):
        row.append(row[-1] * (n - k) // (k + 1))
    return row


def exact(m: int, n: int) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """Return mean and standard deviation of the coverage for all orders and ranks, rounded once from exact integers.

    The number below t at a site is binomial, so P(C >= t) = sum_a N_a t^a (1 - t)^(mn - a) for whole N_a: in how many
    ways a scores lie below t, and the l-th smallest score at k - 1 sites or fewer does. They are the
    coefficients of sums of products of two polynomials, held in one large integer with a field for each coefficient.
    """
    total, field = m * n, 2 * m * n // 8 + 1  # bytes: no coefficient reaches 2^(mn)
    ways, sites = choose(total), choose(m)
    of_site = choose(n)
    common = np.lcm.reduce(np.array([(total + 1) * (total + 2), *ways], dtype=object)) * (total + 1) * (total + 2)
    # int t^a (1 - t)^(mn - a) dt = 1 / ((mn + 1) C(mn, a)), and with another t (a + 1) / (mn + 2) of it
    first = [int(common) // ((total + 1) * way) for way in ways]
    second = [2 * each * (a + 1) // (total + 2) for a, each in enumerate(first)]
    means, spreads = {}, {}
    for order in range(1, n + 1):
        above = sum(of_site[c] << 8 * field * c for c in range(order, n + 1))
        below = sum(of_site[c] << 8 * field * c for c in range(order))
        held = 0
        for rank in range(1, m + 1):
            held += sites[rank - 1] * above ** (rank - 1) * below ** (m - rank + 1)
            data = held.to_bytes(field * (total + 1), "little")
            counts = [int.from_bytes(data[field * a : field * (a + 1)], "little") for a in range(total + 1)]
            mean = sum(a * b for a, b in zip(counts, first, strict=True))
            square = sum(a * b for a, b in zip(counts, second, strict=True))
            means[order, rank] = mean / int(common)
            spreads[order, rank] = float(mpmath.sqrt(mpmath.mpf(square * int(common) - mean**2)) / int(common))
    return means, spreads


def test_the_rationals_are_right_where_they_can_be_written_down() -> None:
    means, spreads = exact(1, 3)  # Beta(l, 4 - l)
    assert means == {(1, 1): 1 / 4, (2, 1): 1 / 2, (3, 1): 3 / 4}
    assert spreads[2, 1] == pytest.approx((1 / 20) ** 0.5, rel=1e-15)
    assert exact(2, 1)[0] == {(1, 1): 1 / 3, (1, 2): 2 / 3}
    assert exact(5, 10)[0][10, 3] == pytest.approx(0.9256259546, abs=5e-11)  # the paper's own notebook


def test_every_cell_of_small_tables() -> None:
    worst = dict.fromkeys(("table", "mean", "spread"), 0.0)
    for m, n in TO_12:
        means, spreads = exact(m, n)
        orders, ranks = (np.array(part) for part in zip(*means, strict=True))
        table = conformal_coverage(m, n)
        mean, spread = equal.moments(m, n, orders, ranks)
        true_mean, true_spread = (np.array([distribution[pair] for pair in means]) for distribution in (means, spreads))
        for name, error in (
            ("table", table[orders - 1, ranks - 1] - true_mean),
            ("mean", mean - true_mean),
            ("spread", spread - true_spread),
        ):
            worst[name] = max(worst[name], float(np.abs(error).max()))
    assert worst["table"] < 1e-12
    assert worst["mean"] < 1e-12
    assert worst["spread"] < 1e-12


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 7), (7, 1), (10, 100), (100, 10), (137, 301), (301, 137), (64, 129)])
def test_a_table_is_symmetric_and_grows(m: int, n: int) -> None:
    table = conformal_coverage(m, n)
    assert table.shape == (n, m)
    np.testing.assert_allclose(table + table[::-1, ::-1], 1, rtol=0, atol=1e-14)
    assert (np.diff(table, axis=0) > 0).all()
    assert (np.diff(table, axis=1) > 0).all()
    assert table.min() > 0
    assert table.max() < 1


@pytest.mark.parametrize(("m", "n"), [(150, 400), (400, 150), (1000, 5), (5, 1000)])
def test_interpolated_cells_are_those_of_the_law(m: int, n: int) -> None:
    table = conformal_coverage(m, n)
    orders, ranks = np.array([(order, rank) for order in range(1, n + 1, 7) for rank in range(1, m + 1, 7)]).T
    np.testing.assert_allclose(table[orders - 1, ranks - 1], equal.moments(m, n, orders, ranks)[0], rtol=0, atol=2e-13)


@pytest.mark.parametrize(("m", "n"), LARGE)
def test_large_tables_are_symmetric(m: int, n: int) -> None:
    orders = np.unique(np.clip([1, 2, n // 10, n // 2, n - n // 10, n - 1, n], 1, n))
    ranks = np.unique(np.clip([1, 2, m // 10, m // 2, m - m // 10, m - 1, m], 1, m))
    pairs = np.array([(order, rank) for order in orders for rank in ranks]).T
    mean, spread = equal.moments(m, n, *pairs)
    mirror, mirrored_spread = equal.moments(m, n, n - pairs[0] + 1, m - pairs[1] + 1)
    np.testing.assert_allclose(mean + mirror, 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(spread, mirrored_spread, rtol=1e-6, atol=1e-16)
    if m * n <= 10_000_000:
        table = conformal_coverage(m, n)
        np.testing.assert_allclose(table[pairs[0] - 1, pairs[1] - 1], mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("m", "n"), LARGE)
def test_the_largest_score_of_each_site_has_a_closed_form(m: int, n: int) -> None:
    """Proposition A.1: M[n, k] = Gamma(k + 1 / n) / Gamma(k) Gamma(m + 1) / Gamma(m + 1 / n + 1)."""
    ranks = np.unique(np.clip([1, 2, 3, m // 7, m // 2, m - 1, m], 1, m))
    found = equal.moments(m, n, np.full(len(ranks), n), ranks)[0]
    with mpmath.workdps(40):
        part = mpmath.mpf(1) / n
        known = [
            mpmath.exp(
                mpmath.loggamma(int(k) + part)
                - mpmath.loggamma(int(k))
                + mpmath.loggamma(m + 1)
                - mpmath.loggamma(m + part + 1)
            )
            for k in ranks
        ]
        errors = [abs(float(a - mpmath.mpf(float(b)))) for a, b in zip(known, found, strict=True)]
    assert max(errors) < 5e-12


def test_nodes_are_symmetric_and_dense_enough() -> None:
    for m in (1, 10, 1000, 1_000_000):
        y, width = nodes(m)
        np.testing.assert_array_equal(y, -y[::-1])
        assert (np.diff(y) > 0).all()
        assert width.max() <= 0.27
        assert width.min() <= 2 / m**0.5


def test_the_public_name_is_this_one() -> None:
    assert sv.conformal_coverage is conformal_coverage


@pytest.mark.parametrize(
    ("m", "n", "sentence"),
    [
        (0, 5, "m, the number of sites, must be at least 1, not 0"),
        (5, -1, "n, the number of scores per site, must be at least 1, not -1"),
        (True, 5, "m, the number of sites, must be at least 1, not True"),
        (5.0, 5, "m, the number of sites, must be a whole number, not 5.0"),
        ("5", 5, "must be a whole number"),
        (None, 5, "must be a whole number"),
        (5, float("nan"), "must be a whole number"),
        (10**6, 10**6, "does not fit in memory; conformal_threshold finds its orders without one"),
        (10**30, 1, "does not fit in memory"),
    ],
)
def test_what_is_no_number_of_sites_or_scores_is_refused(m: Any, n: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        conformal_coverage(m, n)


def test_whole_numbers_of_numpy_are_taken() -> None:
    np.testing.assert_array_equal(conformal_coverage(np.int64(3), np.uint8(4)), conformal_coverage(3, 4))  # type: ignore[arg-type]
