"""The coverage to expect of sites that differ: the promise where they do not, and simulation where they do."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

import sottovoce as sv
from sottovoce.server.conformal.coverage.equal import moments
from sottovoce.server.conformal.coverage.voting import AREA, STEP, AskedVotes, covered, curve

Floats = npt.NDArray[np.float64]


def brute(asked: AskedVotes, shares: list[float]) -> float:
    """Count every way in which the sites' scores may lie about a score."""
    total = 0.0
    for counts in itertools.product(*(range(n + 1) for n in asked.sizes)):
        chance = math.prod(
            math.comb(n, c) * p**c * (1 - p) ** (n - c) for n, c, p in zip(asked.sizes, counts, shares, strict=True)
        )
        below = sum(
            votes * sum(count >= order for order in orders)
            for votes, orders, count in zip(asked.votes, asked.orders, counts, strict=True)
        )
        total += chance * (below <= asked.rank - 1)
    return total


@pytest.mark.parametrize(
    "asked",
    [
        AskedVotes((3, 4, 5), ((3,), (2,), (5,)), (1, 1, 1), 2),
        AskedVotes((3, 4, 5), ((3,), (4,), (4,)), (2, 3, 5), 6),
        AskedVotes((3, 4, 5), ((2, 3), (4,), (3, 4, 5)), (1, 2, 1), 4),
        AskedVotes((3, 2), ((4,), (2,)), (1, 1), 2),  # the first is asked for more than it has: never below
    ],
    ids=["one", "votes", "several", "beyond"],
)
def test_votes_are_counted(asked: AskedVotes) -> None:
    for shares in ([0.2, 0.9, 0.6], [0.0, 1.0, 0.5], [1.0, 1.0, 1.0], [0.95, 0.9, 0.99]):
        given = shares[: len(asked.sizes)]
        assert covered(asked, np.array(given)[:, None])[0] == pytest.approx(brute(asked, given), abs=1e-12)


def test_sites_alike_get_what_was_promised() -> None:
    asked = AskedVotes((100,) * 10, ((92,),) * 10, (1,) * 10, 4)
    count = 20_000
    ranks, chance = curve(asked, lambda ranks: np.tile((ranks + 0.5) / count, (10, 1)), count)
    mean = np.interp(np.arange(count), ranks, chance).mean()
    assert mean == pytest.approx(float(moments(10, 100, 92, 4)[0][0]), abs=1e-6)


def test_few_scores_are_enough() -> None:
    asked = AskedVotes((60, 400, 9), ((55,), (360,), (9,)), (8, 20, 3), 24)
    count = 5_000
    powers = np.array([[1.0], [1.5], [0.4]])

    def shares_at(ranks: npt.NDArray[np.int64]) -> Floats:
        return np.asarray(((ranks + 0.5) / count) ** powers)

    ranks, chance = curve(asked, shares_at, count)
    whole = covered(asked, shares_at(np.arange(count)))
    assert len(ranks) < 250
    assert np.all(np.diff(ranks) > 0)
    assert ranks[[0, -1]].tolist() == [0, count - 1]
    apart = np.diff(ranks) > 1
    assert np.max(-np.diff(chance)[apart]) <= STEP
    assert np.max((-np.diff(chance) * np.diff(ranks))[apart]) <= AREA * count
    between = np.interp(np.arange(count), ranks, chance)
    assert np.max(np.abs(between - whole)) < STEP
    for distribution in (np.ones(count), np.arange(count) < 2500, np.arange(count) > 4000):
        assert np.average(between, weights=distribution) == pytest.approx(
            np.average(whole, weights=distribution), abs=5e-5
        )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_handful_of_scores_is_looked_at_one_by_one(count: int) -> None:
    asked = AskedVotes((9,), ((9,),), (1,), 1)
    ranks, chance = curve(asked, lambda ranks: (ranks[None, :] + 0.5) / count, count)
    assert ranks.tolist() == list(range(count))
    assert chance == pytest.approx([1 - ((i + 0.5) / count) ** 9 for i in range(count)])


def test_new_calibrations_cover_as_expected() -> None:
    # three sites with normal scores of different scale; 20,000 calibrations, so an average of probabilities with a
    # standard deviation below 0.3 misses by 5 standard errors, 0.011, less often than 1e-6
    scales, asked = np.array([1.0, 1.3, 2.0]), AskedVotes((30, 50, 20), ((27,), (45,), (18,)), (5, 7, 4), 11)
    draw = sv.sim.dice(11).generator()
    runs = 20_000
    values = np.array(
        [
            np.sort(scale * np.abs(draw.standard_normal((runs, n))), axis=1)[:, orders[0] - 1]
            for scale, n, orders in zip(scales, asked.sizes, asked.orders, strict=True)
        ]
    )
    order = np.argsort(values, axis=0)
    votes = np.cumsum(np.array(asked.votes)[order], axis=0)
    taken = np.argmax(votes >= asked.rank, axis=0)
    thresholds = np.take_along_axis(values, order, axis=0)[taken, np.arange(runs)]
    points = np.linspace(0, 8, 4001)
    erf = np.vectorize(math.erf)
    chance = covered(asked, erf(points[None, :] / scales[:, None] / math.sqrt(2)))
    for scale in scales:
        density = np.exp(-((points / scale) ** 2) / 2)
        expected = float(np.average(chance, weights=density))
        simulated = float(erf(thresholds / scale / math.sqrt(2)).mean())
        assert abs(simulated - expected) < 0.011
        assert (
            abs(simulated - expected) < 5 * float(erf(thresholds / scale / math.sqrt(2)).std()) / math.sqrt(runs) + 5e-4
        )
