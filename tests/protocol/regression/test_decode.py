"""Public draws, the block and slopes they choose, and letters decoded without bias."""

import math
import os
from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special
from tests.protocol.written_out import matrix

from sottovoce.client.regression.randomize_row import show
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.regression.blocks import Block, RegressionChannel, tables_of
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.box_channel import BoxChannel, box_channel
from sottovoce.protocol.regression.decode import decode
from sottovoce.protocol.regression.lp import lp_pair
from sottovoce.protocol.regression.questions import KIND, choose, public, uniform
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
FALSE_ALARM = 1e-6
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
wraps = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # not compiled, words wrap round aloud


@wraps
def test_public_draws_are_splitmix64() -> None:
    # the published sequence of splitmix64 from seed 1234567
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(public(np.uint64(1234567), k)) for k in range(1, 5)] == known


@wraps
def test_uniform_draws_lie_in_the_unit_interval() -> None:
    draws = np.array([uniform(word, k) for word in dice(1).words(2000) for k in (1, 62)])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert abs(draws.mean() - 0.5) < 4.9 / math.sqrt(12 * 4000)


def chi_square(seen: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    seen, expected = np.asarray(seen), np.asarray(expected, dtype=float)
    return float(special.chdtrc(len(expected) - 1, np.sum((seen - expected) ** 2 / expected)))


def draws(channel: RegressionChannel, n: int, seed: int) -> list[tuple[int, tuple[int, ...]]]:
    tables, drawn = tables_of(channel), []
    chosen = np.zeros(max(channel.p, 1), dtype=np.int64)
    for word in dice(seed).words(n):
        block = int(choose(tables.upto, tables.plan, channel.p, word, chosen))
        drawn.append((block, tuple(int(j) for j in chosen[: channel.blocks[block].count])))
    return drawn


@wraps
@pytest.mark.parametrize(("p", "slopes"), [(4, 1), (4, 2), (5, 3), (3, 3)])
def test_every_subset_of_slopes_is_as_likely(p: int, slopes: int) -> None:
    n = 2000 if PLAIN else 10_000
    channel = box((0.5,), p, 2.0, slopes=slopes, cells=3, width=1, alone=0.3)
    drawn = draws(channel, n, 5)
    subsets = [*combinations(range(1, p + 1), slopes)]
    assert {which for block, which in drawn if block == 0} == set(subsets)  # distinct, and ascending
    seen = [sum(block == 0 and which == subset for block, which in drawn) for subset in subsets]
    seen.append(sum(block == 1 for block, _ in drawn))
    expected = [*[0.7 * n / len(subsets)] * len(subsets), 0.3 * n]
    assert chi_square(seen, expected) > FALSE_ALARM
    assert {which for block, which in drawn if block == 1} == {()}


@wraps
def test_a_block_with_its_own_slopes_asks_for_them() -> None:
    distribution = lp_pair(0.5, 1.0, 9.0)
    two = (
        Block(0.5, distribution, (2,), np.array([[1.0, 0.0, 2.0]])),
        Block(0.5, distribution, (1,), np.array([[1.0, 2.0, 0.0]])),
    )
    drawn = set(draws(RegressionChannel("pairs", (0.5,), 2, two), 200, 6))
    assert drawn == {(0, (2,)), (1, (1,))}


def pair(epsilon: float) -> RegressionChannel:
    gains = np.array([[1.0, 2.0, 2.0]])
    return RegressionChannel("lp", (0.75,), 2, (Block(1.0, lp_pair(0.75, epsilon, 9.0), None, gains),))


def wasteful(kinds: int, alone: float) -> RegressionChannel:
    """A box whose die leaves a sixteenth of its faces over, so that it shows where they go."""
    low = OUTCOMES // (32 * kinds)
    waste = BoxChannel("waste", kinds, 1, 4, 2, low, (OUTCOMES - OUTCOMES // 16 - 4 * kinds * low) // 2, OUTCOMES // 16)
    first = Block(1 - alone, waste, (1,), np.array([[float(kinds > 1), 1 / (1 - alone)]]))
    face = Block(alone, box_channel("face", 1.0, 2), (), np.array([[1.0 if kinds > 1 else 1 / alone, 0.0]]))
    return RegressionChannel("wasteful", (0.75,), 1, (first, face))


CHANNELS: dict[str, Callable[[float], RegressionChannel]] = {
    "cq": lambda epsilon: cq(0.75, 3, epsilon, q=3, s=2),
    "cq, one coordinate": lambda epsilon: cq(0.25, 2, epsilon, q=4, s=1),
    "boxes": lambda epsilon: box((0.25,), 3, epsilon, slopes=2, cells=5, width=2, alone=0.2),
    "no face": lambda epsilon: box((0.75,), 3, epsilon, slopes=2, cells=4, width=2, side=False, alone=0.4),
    "three levels": lambda epsilon: box((0.25, 0.5, 0.9), 2, epsilon, slopes=2, cells=4, width=3),
    "pair": pair,
    "faces left over": lambda _epsilon: wasteful(2, 0.5),
    "faces left over, no face": lambda _epsilon: wasteful(1, 0.5),
    "no slope": lambda epsilon: cq(0.5, 0, epsilon, q=2, s=1),
}
FEATURES = np.array([[0.3, -0.55, 0.8], [-1.0, 1.0, 0.0], [0.11, 0.62, -0.37]])
RESPONSE = np.array([0.1, -3.0, 4.0])
HEIGHTS = (-0.5, 0.5, 0.9)


def law_of(channel: RegressionChannel, block: Block, chosen: tuple[int, ...], who: int, face: int) -> Floats:
    """The law of the letters of one record, from the integers of its channel."""
    distribution = block.channel
    if isinstance(distribution, BoxChannel):
        rows, positions = matrix(distribution), distribution.positions
        scale = 1.0 if distribution.kinds > 1 else float(channel.side_scores(0)[face]) / channel.radius
        first = face if distribution.kinds > 1 else 0
    else:
        assert isinstance(distribution, Channel)
        rows, positions, scale, first = distribution.weights, len(distribution.weights) // 2, 1.0, face
    spots = [0.5 * (scale * FEATURES[who, j - 1] + 1) * (positions - 1) for j in chosen]
    total = np.zeros(len(rows[0]))
    for place in product(range(positions), repeat=len(chosen)):
        chance = math.prod(max(0.0, 1 - abs(spot - k)) for spot, k in zip(spots, place, strict=True))
        row = first
        for k in place:
            row = row * positions + k
        total += chance * np.array([w / OUTCOMES for w in rows[row]])
    return total


@pytest.mark.parametrize("epsilon", [0.3, 4.0])
@pytest.mark.parametrize("name", CHANNELS)
def test_what_is_heard_is_the_score_on_average(name: str, epsilon: float) -> None:
    channel = CHANNELS[name](epsilon)
    p, levels = channel.p, len(channel.taus)
    tables = tables_of(channel)
    points = np.zeros((1, levels, p + 1))
    points[0, :, 0], points[0, :, 1:] = HEIGHTS[:levels], np.array([0.2, -0.3, 0.1])[:p]
    features = np.ascontiguousarray(FEATURES[:, :p])
    index, values = np.zeros(p + 1, dtype=np.int64), np.zeros((levels, p + 1))
    for who in range(3):
        exact, heard, largest = np.zeros((levels, p + 1)), np.zeros((levels, p + 1)), 1.0
        show(tables.score, features, RESPONSE, who, points, 0, index, exact)
        face = int((exact[:, 0] > 0).sum())
        for i, block in enumerate(channel.blocks):
            subsets = [block.slopes] if block.slopes is not None else [*combinations(range(1, p + 1), block.count)]
            for subset in subsets:
                chosen = np.array([*subset, 0], dtype=np.int64)
                for letter, chance in enumerate(law_of(channel, block, subset, who, face)):
                    found = decode(
                        tables.plan, tables.score, tables.read, tables.matrix, tables.radius, i, chosen, letter, index,
                        values,
                    )  # fmt: skip
                    assert found == block.side + len(subset)
                    assert index[:found].tolist() == [0, *subset][1 - block.side :]
                    weight = block.probability * chance / len(subsets)
                    heard[:, index[:found]] += weight * values[:, :found]
                    largest = max(largest, float(np.abs(values[:, :found]).max()))
        assert np.abs(heard - exact).max() < 1e-13 * largest * 10


@wraps
def test_subsets_of_many_slopes_do_not_depend_on_the_dither() -> None:
    p, n = 62, 3000
    channel = box((0.5,), p, 8.0, slopes=2, cells=2, width=1)
    tables = tables_of(channel)
    chosen = np.zeros(p, dtype=np.int64)
    beside = [word for word in dice(3).words(22 * n) if uniform(word, KIND) < 0.05][:n]
    last = 0
    for word in beside:
        choose(tables.upto, tables.plan, p, word, chosen)
        last += int(61 in chosen[:2])
    assert last < n * 2 / p + 6 * math.sqrt(n * 2 / p)
