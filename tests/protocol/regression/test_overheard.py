"""What letters tell of moments: right on average for every channel, with the variance that is stated."""

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from tests.protocol.written_out import dense_channel

from sottovoce.client.regression.randomize_row import randomize_people
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.blocks import RegressionChannel, open_channel, tables_of
from sottovoce.protocol.regression.box import box
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.regression.overheard import CROSS, MEAN, SELDOM, SQUARE, overhear, overheard_of
from sottovoce.protocol.regression.questions import QueryDesign, choose
from sottovoce.server.regression.design import parse
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
Floats = npt.NDArray[np.float64]
CHANNELS: dict[str, Callable[[], RegressionChannel]] = {
    "lp, a tail": lambda: parse("lp", 0.75, 3, 2.0).channel,
    "lp, the median": lambda: parse("lp", 0.5, 3, 2.0).channel,
    "two slopes": lambda: box((0.25,), 2, 4.0, slopes=2, cells=12, width=4),
    "three slopes, without a side": lambda: parse("auto", 0.5, 5, 4.0).channel,
    "two levels": lambda: box((0.25, 0.75), 2, 4.0, slopes=2, cells=10, width=3),
    "many slopes": lambda: parse("box", 0.5, 6, 8.0).channel,
}


def heard(channel: RegressionChannel, letters: npt.NDArray[np.int64], block: int) -> Floats:
    """Book letters of a block that speaks of slopes 1, 2, ...: sums for each letter."""
    tables, told, found = tables_of(channel), overheard_of(channel), []
    chosen = np.arange(1, max(channel.p, 1) + 1)
    for letter in letters:
        sums = np.zeros((2, channel.p + 1, channel.p + 1))
        overhear(
            tables.plan, told.precisions, told.table, told.scales, told.shifts, told.every, block, chosen, letter, 0,
            sums,
        )  # fmt: skip
        found.append(sums)
    return np.array(found)


def test_a_matrix_tells_z_and_its_square_whatever_the_side() -> None:
    channel = CHANNELS["lp, a tail"]()
    matrix = channel.blocks[0].channel
    assert isinstance(matrix, Channel)
    sums = heard(channel, np.arange(len(matrix.weights[0])), 0)
    law, places = matrix.distribution, len(matrix.weights) // 2
    grid, told = np.tile(np.linspace(-1, 1, places), 2), overheard_of(channel)
    assert law @ sums[:, 1, 0, 1] / told.precisions[0, MEAN] == pytest.approx(grid, abs=1e-8)
    rounding = (2 / (places - 1)) ** 2 / 6
    assert law @ sums[:, 1, 1, 1] / told.precisions[0, SQUARE] == pytest.approx(grid**2 - rounding, abs=1e-8)
    often = np.repeat([0.25, 0.75], places) / places
    values = sums[:, 1, 1, 1] / told.precisions[0, SQUARE]
    variance = (often @ law) @ values**2 - ((often @ law) @ values) ** 2
    assert 1 / variance == pytest.approx(told.precisions[0, SQUARE])


def test_a_symmetric_matrix_tells_no_mean() -> None:
    told = overheard_of(CHANNELS["lp, the median"]())
    assert told.precisions[0, MEAN] == 0 < told.precisions[0, SQUARE]


@pytest.mark.parametrize("name", ["two slopes", "two levels"])
def test_a_box_tells_slopes_squares_and_products(name: str) -> None:
    channel = CHANNELS[name]()
    one = channel.blocks[0].channel
    assert isinstance(one, BoxChannel)
    dense = dense_channel(one, np.arange(one.kinds, dtype=float))
    sums, told = heard(channel, np.arange(one.letters), 0), overheard_of(channel)
    grid = np.linspace(-1, 1, one.positions)
    rounding = (grid[1] - grid[0]) ** 2 / 6
    symbols = list(itertools.product(range(one.kinds), range(one.positions), range(one.positions)))
    assert len(symbols) == len(dense.distribution)
    for law, (_, a, b) in zip(dense.distribution, symbols, strict=True):
        means = law @ sums[:, 1].reshape(one.letters, -1)
        found = means.reshape(3, 3)
        slopes = sorted([grid[a], grid[b]])
        assert sorted(found[0, 1:] / told.precisions[0, MEAN]) == pytest.approx(slopes, abs=1e-6)
        squares = [z**2 - rounding for z in (grid[a], grid[b])]
        assert sorted(np.diag(found)[1:] / told.precisions[0, SQUARE]) == pytest.approx(sorted(squares), abs=1e-6)
        assert found[1, 2] / told.precisions[0, CROSS] == pytest.approx(grid[a] * grid[b], abs=1e-6)


def test_where_the_score_has_two_sizes_a_box_without_a_side_tells_nothing() -> None:
    told = overheard_of(box((0.75,), 3, 4.0, slopes=2, cells=8, width=3, alone=0.3, side=False))
    without = [i for i, each in enumerate(told.precisions) if not each.any()]
    assert without


def test_exact_scores_are_not_overheard() -> None:
    told = overheard_of(open_channel(0.5, 3))
    assert not told.precisions.any()
    assert told.every.tolist() == [SELDOM]


@pytest.mark.parametrize("name", CHANNELS)
def test_sums_of_people_lie_within_their_errors(name: str) -> None:
    """At most a false alarm in a million: 21 entries at most, 5.6 standard errors each, and what rounding may add."""
    channel, n = CHANNELS[name](), 40_000
    p, levels, source = channel.p, len(channel.taus), dice(3).generator()
    features = source.beta(2, 4, (n, p)) * 2 - 1
    features[:, 1] = 0.6 * features[:, 0] + 0.4 * features[:, 1]
    response = source.normal(size=n)
    points = np.zeros((1, levels, p + 1))
    points[0, :, 0] = np.quantile(response, channel.taus)
    nothing = QueryDesign(
        np.zeros((0, 2, p + 1)), np.zeros((0, 2)), np.zeros((0, 2, p + 1)), np.zeros((0, 3)), np.zeros(1)
    )
    words = dice(5).words(n * (2 + max(channel.widest, 1))).reshape(n, -1)
    letters, tables, told = np.empty(n, np.int64), tables_of(channel), overheard_of(channel)
    randomize_people(tables, points, nothing, features, response, np.arange(n, dtype=np.uint64), words, letters)
    sums, chosen = np.zeros((2, p + 1, p + 1)), np.zeros(max(p, 1), dtype=np.int64)
    for i in range(n):
        block = choose(tables.upto, tables.plan, p, words[i, 0], chosen)
        overhear(
            tables.plan, told.precisions, told.table, told.scales, told.shifts, told.every, block, chosen, letters[i],
            i, sums,
        )  # fmt: skip
    x = np.column_stack([np.ones(n), features])
    truth, heard_of = x.T @ x / n, sums[0] > 0
    assert heard_of.any()
    assert not heard_of[np.tril_indices(p + 1, -1)].any()
    off = np.abs(sums[1][heard_of] / sums[0][heard_of] - truth[heard_of])
    assert np.all(off < 5.6 / np.sqrt(sums[0][heard_of]) + 2.5 * told.rounding)
