"""The pair channel: exact whatever the solver says, better than what it started from, and the same from cache."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.optimize import linprog
from tests.protocol.written_out import dense_channel

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.exact import within
from sottovoce.protocol.regression.box_channel import box_channel
from sottovoce.protocol.regression.lp import chances, lp_pair, rounded, solve_pair, whole_channel

Floats = npt.NDArray[np.float64]


def seconds(channel: Channel, tau: float, second: float = 1 / 3) -> Floats:
    places = len(channel.vertices) // 2
    letters = np.outer([1 - tau, tau], chances(places, second)).ravel() @ channel.distribution
    return np.asarray(letters @ channel.table**2)


@pytest.mark.parametrize(
    # trace(H^-1 Omega H^-1) f^2 of an independent implementation, on a grid of outputs: 720 and 584.5 at f = .375
    ("epsilon", "weight", "known"),
    [(0.5, 9.0, 720 * 0.375**2), (1.0, 36.0, 584.5 * 0.375**2)],
)
def test_it_reaches_the_optimum_that_is_known(epsilon: float, weight: float, known: float) -> None:
    found = seconds(lp_pair(0.75, epsilon, weight), 0.75) @ [1.0, weight]
    assert 0.98 * known < found < 1.0005 * known


@pytest.mark.parametrize(("tau", "epsilon"), [(0.75, 1.0), (0.5, 2.0)])
def test_new_letters_beat_the_whole_program_on_a_grid(tau: float, epsilon: float) -> None:
    """All letters of a grid at once, with b <= Q <= e^epsilon b as inequalities; column generation has more of them."""
    vertices = np.array([(side, side * z) for side in (-tau, 1 - tau) for z in (-1, 0, 1)])
    odds = np.outer([1 - tau, tau], chances(3)).ravel()
    side = np.linspace(-1, 1, 13) / math.tanh(epsilon / 2) * 1.2
    outputs = np.array([(x, y) for x in side for y in side])
    m, symbols, one = len(outputs), 6, sparse.identity(len(outputs))
    distribution = [
        sparse.hstack([one if s == u else 0 * one for s in range(symbols)] + [0 * one]) for u in range(symbols)
    ]
    mass = sparse.hstack([0 * one] * symbols + [one])
    above = sparse.vstack(
        [mass - distribution[u] for u in range(symbols)]
        + [distribution[u] - math.exp(epsilon) * mass for u in range(6)]
    )
    rows = np.vstack([np.ones(m), outputs.T])
    equal = sparse.vstack([sparse.csr_matrix(rows) @ distribution[u] for u in range(symbols)])
    right = np.hstack([np.ones((symbols, 1)), vertices]).ravel()
    cost = np.concatenate([*np.outer(odds, outputs**2 @ [1.0, 9.0]), np.zeros(m)])
    grid = linprog(cost, A_ub=above, b_ub=np.zeros(above.shape[0]), A_eq=equal, b_eq=right, method="highs-ipm")
    letters = solve_pair(tau, epsilon, (1.0, 9.0), 1 / 3, 3)
    sent = np.where(letters.patterns, math.exp(epsilon), 1.0) * letters.masses[:, None]
    assert sent.sum(axis=0) == pytest.approx(np.ones(symbols), abs=1e-9)
    found = (sent @ odds) @ (letters.values**2 @ [1.0, 9.0])
    assert 0.95 * grid.fun < found < 1.0005 * grid.fun


@pytest.mark.parametrize(
    ("tau", "epsilon"), [(0.75, 0.05), (0.99, 0.5), (0.5, 2.0), (0.5, 4.0), (0.5, 8.0), (0.6, 16.0)]
)
def test_it_is_never_worse_than_randomised_response(tau: float, epsilon: float) -> None:
    pair = seconds(lp_pair(tau, epsilon, 9.0), tau) @ [1.0, 9.0]
    for steps in (2, 3, 5, 9):
        side = np.array([-tau, 1 - tau])
        response = dense_channel(box_channel("rr", epsilon, 2, 1, steps), side)
        assert pair < seconds(response, tau) @ [1.0, 9.0] * 1.01


@pytest.mark.parametrize(("tau", "epsilon"), [(0.25, 1.0), (0.1, 0.5)])
def test_levels_below_the_median_mirror_those_above(tau: float, epsilon: float) -> None:
    low, high = lp_pair(tau, epsilon, 9.0), lp_pair(1 - tau, epsilon, 9.0)
    assert seconds(low, tau) == pytest.approx(seconds(high, 1 - tau), rel=1e-12)
    places = len(low.vertices) // 2
    sides = np.repeat([-tau, 1 - tau], places)
    assert low.vertices[:, 0] == pytest.approx(sides, abs=1e-15)
    assert low.vertices[:, 1] == pytest.approx(sides * np.tile(np.linspace(-1, 1, places), 2), abs=1e-15)


def test_the_slope_and_the_intercept_are_uncorrelated_for_symmetric_covariates() -> None:
    channel = lp_pair(0.75, 1.0, 9.0)
    letters = np.outer([0.25, 0.75], chances(5)).ravel() @ channel.distribution
    assert abs(letters @ (channel.table[:, 0] * channel.table[:, 1])) < 1e-6


def test_the_second_call_is_the_first_ones_answer() -> None:
    first = lp_pair(0.75, 1.0, 9.0)
    assert lp_pair(0.75, 1.0, 9.0) is first


@pytest.mark.parametrize("tau", [1e-9, 1e-6, 1 - 1e-6])
@pytest.mark.parametrize(("epsilon", "weight"), [(0.5, 9.0), (1.0, 9.0), (0.5, 1e12)])
def test_extreme_levels_and_weights_have_a_channel_too(tau: float, epsilon: float, weight: float) -> None:
    channel = lp_pair(tau, epsilon, weight)
    assert within(channel.ratio, epsilon)
    assert np.abs(channel.distribution @ channel.table - channel.vertices).max() < 1e-12 * np.abs(channel.table).max()


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.5, math.nan])
def test_levels_that_are_none_are_refused_in_a_sentence(tau: float) -> None:
    with pytest.raises(BadInput, match=r"strictly between 0 and 1|must be a number"):
        lp_pair(tau, 1.0, 9.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 23.0])
def test_budgets_that_it_cannot_serve_are_refused_in_a_sentence(epsilon: float) -> None:
    with pytest.raises(BadInput, match="; give"):
        lp_pair(0.5, epsilon, 9.0)


def test_whole_weights_survive_a_law_that_is_slightly_off() -> None:
    noise = 1 + 1e-8 * np.sin(np.arange(3))
    values = np.array([[-1.0], [0.0], [1.0]])
    masses = noise / (math.e + 2)
    channel = whole_channel("rr", 1.0, values, 3.5 * values, np.eye(3, dtype=bool), masses)
    assert within(channel.ratio, 1.0)
    assert {sum(row) for row in channel.weights} == {1 << 62}
    assert np.abs(channel.distribution @ channel.table - values).max() < 1e-14


@pytest.mark.parametrize("places", [2, 3, 5, 9, 33])
@pytest.mark.parametrize("stretch", [1.0, 1 / 3, -1 / 3])
def test_rounded_uniform_covariates_in_closed_form(places: int, stretch: float) -> None:
    at, middles = np.linspace(-1, 1, places), (np.arange(100_000) + 0.5) / 50_000 - 1
    hats = [np.maximum(1 - np.abs(stretch * middles - g) * (places - 1) / 2, 0).mean() for g in at]
    assert chances(places, 1 / 3, 0.0, stretch) == pytest.approx(hats, abs=1e-8)
    assert rounded(places, 1 / 3, 0.0, stretch) == pytest.approx(float(at**2 @ hats), abs=1e-8)


@pytest.mark.parametrize(("second", "mean"), [(0.05, 0.0), (0.5, 0.3), (1.0, 0.0), (0.9, -0.5)])
def test_rounding_keeps_the_mean_and_adds_at_most_a_quarter_step(second: float, mean: float) -> None:
    for places in (2, 5, 20):
        odds, at = np.array(chances(places, second, mean)), np.linspace(-1, 1, places)
        assert odds.sum() == pytest.approx(1.0, abs=1e-12)
        assert odds @ at == pytest.approx(mean, abs=1e-9)
        added = rounded(places, second, mean) - second
        assert -1e-9 <= added <= 1 / (places - 1) ** 2 + 1e-12
