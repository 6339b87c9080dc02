"""The message loop asks each record at most once, and only through queries.

Mixing matrices keep the weighted average; the printed ring does not.
"""

import numpy as np
import pytest

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.local.runner import run_to_end
from sottovoce.protocol.messages import Study
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.quantile.recursion.method import WalkMethod, metropolis, ring
from sottovoce.server.quantile.recursion.schedule import decay, elapsed
from sottovoce.server.quantile.recursion.walk import WalkStudy
from sottovoce.sim.randomness import dice

STAR = [[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize("schedule", ["every:1", "every:9", "log"])
def test_every_record_answers_once(schedule: str) -> None:
    sizes = np.array([40, 25, 3])
    study = WalkStudy(
        np.full(3, 0.5), np.full(3, 1 / 3), (binary(1.0),) * 3, sizes, elapsed(schedule, 40), 0.0, decay([0.5])
    )
    with np.errstate(over="ignore"):
        sites = [
            Site(Records(np.linspace(-1, 1, n)), Study(0.5, 1.0), die)
            for n, die in zip(sizes.tolist(), dice(1).split(3), strict=True)
        ]
        method = WalkMethod(study)
        end = run_to_end(method, [Door(site, b"study") for site in sites])
        state, seen = method.outcome(end), [state.round for state in end.seen.states]
    assert [site.spent for site in sites] == sizes.tolist()
    assert state.round == len(study.elapsed) == seen[-1]
    assert state.iteration == 40


@pytest.mark.parametrize("graph", [ring(4), STAR, np.ones((4, 4))])
@pytest.mark.parametrize("shares", [[0.25] * 4, [0.1, 0.2, 0.3, 0.4], [0.97, 0.01, 0.01, 0.01]])
def test_rows_sum_to_one_and_the_shares_are_kept(graph: list[list[int]], shares: list[float]) -> None:
    mixing = metropolis(graph, shares)
    assert np.allclose(mixing.sum(axis=1), 1, atol=1e-15)
    assert np.allclose(np.array(shares) @ mixing, shares, atol=1e-15)
    assert mixing.min() >= 0
    assert np.all(mixing[~(np.array(graph, dtype=bool) | np.eye(4, dtype=bool))] == 0)


def test_mixing_reaches_the_weighted_average() -> None:
    shares, points = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, -2.0, 5.0, 3.0])
    assert np.allclose(np.linalg.matrix_power(metropolis(ring(4), shares), 500) @ points, shares @ points, atol=1e-9)


def test_the_printed_weights_collapse_to_zero() -> None:
    mixing = metropolis(ring(10), [0.1] * 10)
    printed = mixing * 0.1  # w_kj p_j
    assert np.allclose(printed.sum(axis=1), 0.1)
    assert np.allclose(np.linalg.matrix_power(printed, 12) @ np.full(10, 1e6), 1e-6)


def test_graph_in_pieces_is_refused() -> None:
    with pytest.raises(BadInput, match="2 sites of the graph cannot be reached"):
        metropolis([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], [0.25] * 4)


@pytest.mark.parametrize(
    ("graph", "shares", "why"),
    [
        ([[0, 1], [0, 0]], [0.5, 0.5], "not symmetric"),
        ([[0, 1, 1], [1, 0, 1]], [0.5, 0.5], "square"),
        ([[0, 1], [1, 0]], [1.0, 0.0], "positive"),
        ([[0, 1], [1, 0]], [1.0], "one a site"),
    ],
)
def test_what_is_no_graph_is_refused(graph: list[list[int]], shares: list[float], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        metropolis(graph, shares)


def test_a_ring_of_one_is_refused() -> None:
    with pytest.raises(BadInput, match="two sites"):
        ring(1)
