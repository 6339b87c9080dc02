"""The regression's root: exact on exact lines, equivariant, and honest about sites with few reports."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.core.errors import Infeasible
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.quantile.recursion import regression_root
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.schedule import decay, elapsed
from sottovoce.server.quantile.recursion.walk import WalkState, WalkStudy

RATES = (0.5, 0.8)
STUDY = WalkStudy(
    np.array([0.4, 0.4]),
    np.array([0.25, 0.75]),
    tuple(binary(epsilon_of_rate(rate)) for rate in RATES),
    np.array([4000, 2000]),
    elapsed("every:1", 4000),
    0.0,
    decay(RATES),
)


def ended(lines: list[tuple[float, float]], n: tuple[int, int] = (4000, 2000), centre: float = 0.0) -> WalkState:
    """Return a state in which site k's share above q is exactly level - slope (q - centre)."""
    sums: npt.NDArray[np.float64] = np.zeros((2, 5))
    for k, (level, slope) in enumerate(lines):
        queries = np.linspace(-1, 1, n[k])
        above = level - slope * queries
        ones = RATES[k] * above + (1 - RATES[k]) / 2
        sums[k] = n[k], queries.sum(), (queries**2).sum(), (queries * ones).sum(), ones.sum()
    clock = np.full(2, 4000)
    return sgd.init(STUDY)._replace(sums=sums, origin=centre, clock=clock)


def test_exact_lines_give_the_exact_root() -> None:
    # .25 (.5 - .2 x) + .75 (.7 - .3 x) = .6 at x = .05 / .275
    found = regression_root.estimate(STUDY, ended([(0.5, 0.2), (0.7, 0.3)]))
    assert found.point == pytest.approx(0.05 / 0.275, rel=1e-12)
    assert found.low < found.point < found.high
    assert found.n == 6000


def test_the_root_moves_with_the_origin_at_a_hundred_million() -> None:
    near, far = (regression_root.estimate(STUDY, ended([(0.5, 0.2), (0.7, 0.3)], centre=c)) for c in (0.0, 1e8))
    assert far.point - 1e8 == pytest.approx(near.point, abs=3e-8)
    assert far.length == pytest.approx(near.length, abs=3e-8)


def test_error_without_slope_noise_is_that_of_the_theorem() -> None:
    state = ended([(0.6, 0.3), (0.6, 0.3)])
    fitted = regression_root.line(STUDY, state)
    s = np.array(RATES) * 0.6 + (1 - np.array(RATES)) / 2
    expected = np.sum(STUDY.shares**2 * s * (1 - s) / np.array(RATES) ** 2 / STUDY.sizes)
    assert fitted.floor == pytest.approx(expected, rel=1e-3)


def test_a_site_with_few_reports_borrows_the_others_slope() -> None:
    whole = ended([(0.5, 0.2), (0.7, 0.2)])
    thin = ended([(0.5, 0.2), (0.7, 9.0)], n=(4000, 5))
    assert regression_root.estimate(STUDY, thin).point == pytest.approx(regression_root.estimate(STUDY, whole).point)
    assert regression_root.line(STUDY, thin).floor > 10 * regression_root.line(STUDY, whole).floor


def test_sites_in_another_order_give_the_same() -> None:
    state = ended([(0.5, 0.2), (0.7, 0.3)])
    turned = replace(STUDY, shares=STUDY.shares[::-1], sizes=STUDY.sizes[::-1], channels=STUDY.channels[::-1])
    other = regression_root.estimate(turned, state._replace(sums=state.sums[::-1]))
    mine = regression_root.estimate(STUDY, state)
    assert (other.point, other.low, other.high) == pytest.approx((mine.point, mine.low, mine.high), rel=1e-12)


def test_p_value_inverts_the_interval() -> None:
    state = ended([(0.5, 0.2), (0.7, 0.3)])
    found = regression_root.estimate(STUDY, state, 0.9)
    assert regression_root.p_value(STUDY, state, found.low) == pytest.approx(0.1, rel=1e-9)
    assert regression_root.p_value(STUDY, state, found.high, "less") == pytest.approx(0.05, rel=1e-9)


def test_no_report_or_no_spread_is_refused() -> None:
    with pytest.raises(Infeasible, match="site 0 has no report"):
        regression_root.line(STUDY, sgd.init(STUDY))
    state = ended([(0.5, 0.2), (0.7, 0.3)], n=(5, 5))
    with pytest.raises(Infeasible, match="no site has 10 reports"):
        regression_root.line(STUDY, state)
