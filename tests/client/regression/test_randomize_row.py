"""One person's letter: its law, what it does not depend on, and how it rounds."""

import math
import os
from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special
from tests.protocol.written_out import matrix

from sottovoce.client.regression.randomize_row import randomize_row, rounded, show, side_of
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.regression.blocks import INSIDE, Block, RegressionChannel, Tables, tables_of
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.box_channel import BoxChannel, box_channel
from sottovoce.protocol.regression.lp import lp_pair
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
FALSE_ALARM = 1e-6
DRAWS = 2_000 if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else 8_000


def pair(epsilon: float) -> RegressionChannel:
    return RegressionChannel(
        "lp", (0.75,), 2, (Block(1.0, lp_pair(0.75, epsilon, 9.0), None, np.array([[1.0, 2.0, 2.0]])),)
    )


def wasteful(kinds: int, alone: float) -> RegressionChannel:
    """A box whose die leaves a sixteenth of its faces over, so that it shows where they go."""
    low = OUTCOMES // (32 * kinds)
    waste = BoxChannel("waste", kinds, 1, 4, 2, low, (OUTCOMES - OUTCOMES // 16 - 4 * kinds * low) // 2, OUTCOMES // 16)
    first = Block(1 - alone, waste, (1,), np.array([[float(kinds > 1), 1 / (1 - alone)]]))
    face = Block(alone, box_channel("face", 1.0, 2), (), np.array([[1.0 if kinds > 1 else 1 / alone, 0.0]]))
    return RegressionChannel("wasteful", (0.75,), 1, (first, face))


CHANNELS: dict[str, Callable[[float], RegressionChannel]] = {
    "cq": lambda epsilon: cq(0.75, 2, epsilon, q=3, s=2),
    "cq, one coordinate": lambda epsilon: cq(0.25, 2, epsilon, q=4, s=1),
    "boxes": lambda epsilon: box((0.25,), 3, epsilon, slopes=2, cells=5, width=2, alone=0.2),
    "two levels": lambda epsilon: box((0.25, 0.75), 2, epsilon, slopes=2, cells=4, width=3),
    "pair": pair,
    "faces left over": lambda _epsilon: wasteful(2, 0.5),
    "faces left over, no face": lambda _epsilon: wasteful(1, 0.5),
}
BLOCKS = [(name, i) for name, make in CHANNELS.items() for i in range(len(make(2.0).blocks))]
every_block = pytest.mark.parametrize(("name", "block"), BLOCKS)
# one record above the lower of two fits and below the upper, others on either side
FEATURES = np.array([[0.3, -0.55, 0.8], [-1.0, 1.0, 0.0], [0.11, 0.62, -0.37]])
RESPONSE = np.array([0.1, -3.0, 4.0])
POINTS = np.array([[[-0.5, 0.2, -0.3, 0.1], [0.5, 0.2, -0.3, 0.1]], [[0.0, 0.0, 0.0, 0.0], [0.7, 0.1, 0.0, 0.0]]])


def letter(
    channel: RegressionChannel, tables: Tables, block: int, chosen: list[int], who: int, words: Words, i: int = 0
) -> int:
    p, levels = channel.p, len(channel.taus)
    _, plan, faces, steps, score, *_, radius = tables
    points = np.ascontiguousarray(POINTS[:, :levels, : p + 1])
    slopes = np.array([*chosen, 0], dtype=np.int64)
    features = np.ascontiguousarray(FEATURES[:, :p])
    return int(
        randomize_row(plan, faces, steps, score, radius, block, slopes, features, RESPONSE, who, points, 0, words, i)
    )  # fmt: skip


def chosen_of(channel: RegressionChannel, block: int) -> list[int]:
    return list(range(channel.p, 0, -1))[: channel.blocks[block].count]


def face(channel: RegressionChannel, who: int) -> int:
    p = channel.p
    fits = [POINTS[0, k, 0] + POINTS[0, k, 1 : p + 1] @ FEATURES[who, :p] for k in range(len(channel.taus))]
    return sum(RESPONSE[who] <= fit for fit in fits)


def law_of(channel: RegressionChannel, block: int, chosen: list[int], who: int) -> Floats:
    """The law that the integers of the channel give this record, rounding included."""
    distribution, at = channel.blocks[block].channel, face(channel, who)
    if isinstance(distribution, BoxChannel):
        rows, positions = matrix(distribution), distribution.positions
        scale = 1.0 if distribution.kinds > 1 else float(channel.side_scores(0)[at]) / channel.radius
        first = at if distribution.kinds > 1 else 0
    else:
        assert isinstance(distribution, Channel)
        rows, positions, scale, first = distribution.weights, len(distribution.weights) // 2, 1.0, at
    spots = [0.5 * (scale * FEATURES[who, j - 1] + 1) * (positions - 1) for j in chosen]
    total = np.zeros(len(rows[0]))
    for place in product(range(positions), repeat=len(chosen)):
        chance = math.prod(max(0.0, 1 - abs(spot - k)) for spot, k in zip(spots, place, strict=True))
        row = first
        for k in place:
            row = row * positions + k
        total += chance * np.array([w / OUTCOMES for w in rows[row]])
    return total


@every_block
@pytest.mark.parametrize("who", [0, 1, 2])
def test_letters_have_the_law_of_the_channel(name: str, block: int, who: int) -> None:
    channel = CHANNELS[name](2.0)
    tables, chosen = tables_of(channel), chosen_of(channel, block)
    expected = DRAWS * law_of(channel, block, chosen, who)
    assert expected.sum() == pytest.approx(DRAWS, rel=1e-12)
    words = dice(77 + who).words(DRAWS * 4).reshape(DRAWS, 4)
    seen = np.bincount(
        [letter(channel, tables, block, chosen, who, words, i) for i in range(DRAWS)], minlength=len(expected)
    )
    assert len(seen) == len(expected)
    # letters too rare for chi-square go together
    rare = expected < 8
    groups = [np.append(x[~rare], x[rare].sum()) if rare.any() else x for x in (seen, expected)]
    kept = groups[1] > 5
    statistic = float(np.sum((groups[0] - groups[1])[kept] ** 2 / groups[1][kept]))
    assert special.chdtrc(int(kept.sum()) - 1, statistic) > FALSE_ALARM, (seen, expected)


def edges(tables: Tables, block: int) -> list[int]:
    low, common, _, inside = (int(x) for x in tables.outcomes[block])
    return [low, common, inside]


@every_block
def test_below_the_common_faces_no_record_speaks(name: str, block: int) -> None:
    channel = CHANNELS[name](1.0)
    tables, chosen = tables_of(channel), chosen_of(channel, block)
    common = edges(tables, block)[1] or int(tables.steps[block, 0, -1])
    rest = np.arange(1, 4, dtype=np.uint64) << np.uint64(62)
    above = set()
    for die in (0, 1, common // 3, common // 2, common - 1):
        words = np.array([[0, *rest, die << 2]], dtype=np.uint64)
        assert len({letter(channel, tables, block, chosen, who, words) for who in range(3)}) == 1
    for die in range(common, OUTCOMES, (OUTCOMES - common) // 50):
        words = np.array([[0, *np.roll(rest, die), die << 2]], dtype=np.uint64)
        above.add(len({letter(channel, tables, block, chosen, who, words) for who in range(3)}))
    assert max(above) > 1


@every_block
def test_at_epsilon_zero_letters_do_not_depend_on_the_record(name: str, block: int) -> None:
    channel = CHANNELS[name](1.0)
    tables, chosen = tables_of(channel), chosen_of(channel, block)
    distribution = channel.blocks[block].channel
    faces, steps = tables.outcomes.copy(), tables.steps.copy()
    if isinstance(distribution, BoxChannel):
        low = OUTCOMES // distribution.letters
        faces[block] = (low, low * distribution.letters, 0, 0)
    else:
        steps[block, 0] += steps[block, 1]
        steps[block, 1:] = 0
    silent = tables._replace(outcomes=faces, steps=steps)
    words = dice(3).words(200 * 4).reshape(200, 4)
    said = [[letter(channel, silent, block, chosen, who, words, i) for i in range(200)] for who in range(3)]
    assert said[0] == said[1] == said[2]
    assert len(set(said[0])) > 1
    aloud = [[letter(channel, tables, block, chosen, who, words, i) for i in range(200)] for who in range(3)]
    assert aloud[0] != aloud[1]
    assert aloud[1] != aloud[2]


def test_every_face_of_a_box_is_dealt_out() -> None:
    channel = box((0.75,), 1, 1.0, slopes=1, cells=3, width=2)
    tables = tables_of(channel)
    low, common, inside = edges(tables, 0)
    top = {0: 0, low - 1: 0, low: 1, common - 1: 5}
    # record 2 lies above the fit at z = 0.11, rounded down to the first of two places with this word
    words = np.array([[0, (1 << 64) - 1, 0]], dtype=np.uint64)
    top |= {common: 0, common + inside // 2 - 1: 0, common + inside // 2: 1, common + inside - 1: 1}
    for die, expected in top.items():
        words[0, -1] = die << 2
        for low_bits in (0, 3):
            words[0, -1] |= np.uint64(low_bits)
            assert letter(channel, tables, 0, [1], 2, words) == expected
    spare = OUTCOMES - common - inside
    assert 0 <= spare < 2


def test_every_face_of_a_matrix_is_dealt_out() -> None:
    channel = pair(1.0)
    tables = tables_of(channel)
    common = int(tables.steps[0, 0, -1])
    distribution = channel.blocks[0].channel
    assert isinstance(distribution, Channel)
    # record 1 lies at z = 1, at or below the fit: the last symbol; it speaks from the first face that is not common
    lows = [min(column) for column in zip(*distribution.weights, strict=True)]
    own = [w - low for w, low in zip(distribution.weights[-1], lows, strict=True)]
    first, last = (next(i for i in order if own[i]) for order in (range(len(own)), range(len(own) - 1, -1, -1)))
    of_all = next(i for i in range(len(own) - 1, -1, -1) if lows[i])
    assert first != of_all
    for die, expected in (
        (common - 1, of_all),
        (common, first),
        (common + own[first] - 1, first),
        (OUTCOMES - 1, last),
    ):
        words = np.array([[0, 1 << 63, die << 2]], dtype=np.uint64)
        assert letter(channel, tables, 0, [2], 1, words) == expected


def test_a_response_on_the_fit_lies_at_or_below_it() -> None:
    features, points = np.array([[0.5]]), np.array([[[1.0, 2.0], [3.0, 0.0]]])
    faces = [side_of(features, 0, y, points, 0) for y in (2.0, np.nextafter(2.0, 9), 3.0, np.nextafter(3.0, 9))]
    assert faces == [2, 1, 1, 0]


def test_rounding_is_right_on_average_and_stays_inside() -> None:
    even = [np.uint64(((2 * k + 1) << 63) // 1000) for k in range(1000)]
    for place in (0.0, 0.25, 1.0, 1.9, 3.0):
        spots = [rounded(place, 4, word) for word in even]
        assert set(spots) <= {math.floor(place), math.ceil(place)}
        assert np.mean(spots) == pytest.approx(place, abs=1e-3)
    assert rounded(-1e-17, 4, np.uint64(0)) == 0
    assert rounded(3.0000000001, 4, np.uint64(0)) == 3


@pytest.mark.parametrize("who", [0, 1, 2])
def test_the_exact_score(who: int) -> None:
    taus, p = (0.25, 0.75), 3
    score = np.array([[-0.25, -0.25, 0.75], [-0.75, 0.25, 0.25]])
    index, values = np.zeros(p + 1, dtype=np.int64), np.zeros((2, p + 1))
    assert show(score, FEATURES, RESPONSE, who, POINTS, 1, index, values) == p + 1
    x = np.array([1.0, *FEATURES[who]])
    for level, tau in enumerate(taus):
        assert values[level] == pytest.approx(x * (float(RESPONSE[who] <= x @ POINTS[1, level]) - tau))
    assert index.tolist() == [0, 1, 2, 3]


def test_words_before_the_die_only_round() -> None:
    channel = CHANNELS["boxes"](2.0)
    tables = tables_of(channel)
    _, common, inside = edges(tables, 0)
    seen = set()
    for word in range(0, 1 << 64, 1 << 59):
        words = np.array([[word, word, word, (common + inside // 2) << 2]], dtype=np.uint64)
        seen.add(letter(channel, tables, 0, [1, 2], 1, words))
    assert len(seen) == 1  # covariates -1 and 1 need no rounding
    assert int(tables.outcomes[0, INSIDE]) == inside
