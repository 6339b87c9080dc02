"""What a device needs to answer a regression: the channels' integers on the card, its own question, and its letter.

The question of a device follows from its own random id: eight bytes of HMAC-SHA256 over round and id, keyed by the
card's nonce, are its public word, so that nobody can choose the question for it and the collector keeps nothing.
Everything here is whole numbers and a few doubles in a fixed order, so that a page computes the same
(`collector/web/device.js`) as the compiled loops do (`client.regression.randomize_row`).
"""

import hashlib
import hmac
import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.regression.box_channel import BoxChannel

LETTERS = 1 << 24  # of an alphabet: a report has three bytes for its letter
MOST_COLUMNS = 200
LARGEST = 1e100  # of a combination's coefficients: their products stay finite
FARTHEST = 1e200  # of points and steps, and of the ends of ranges: sums and twice of them stay finite
KIND, PRODUCT_OF, SIGN, CHANNEL_OF = 1 << 20, 1 << 21, 1 << 22, 1 << 23  # draws of a public word
WORD, WHOLE = 2.0**-53, (1 << 64) - 1
TIGHT, PRODUCT = -1, 0  # cells: at the point, and a bit about a product of two covariates
Rows = tuple[tuple[float, ...], ...]


class DeviceBlock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One block: a box's kinds, slopes, cells and width, or a matrix; weights as decimal texts.

    A box has one row of weights (low, extra, spare), a matrix one a symbol; ``slopes`` None: drawn for each person.
    """

    weights: tuple[tuple[str, ...], ...]
    box: tuple[int, int, int, int] | None = None
    slopes: tuple[int, ...] | None = None


class DeviceChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The levels that a channel is for, how often each block is asked (cumulative), and the bit about a moment."""

    taus: tuple[float, ...]
    upto: tuple[float, ...]
    blocks: tuple[DeviceBlock, ...]
    bit: tuple[str, str, str]


class RegressionTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The columns of a row, their public bounds, and the channels, one of which each person answers through."""

    response: str
    columns: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    channels: tuple[DeviceChannel, ...]
    two_valued: tuple[int, ...] = ()  # columns, from 0, that take their two bounds alone

    @property
    def widest(self) -> int:
        """Return how many words of rounding a letter may need: of the most slopes, and at least one."""
        return max(1, *(_slopes(block) for channel in self.channels for block in channel.blocks))

    def scaled(self, row: Sequence[float]) -> list[float]:
        """Return covariates scaled to [-1, 1]; what lies beyond its bounds is moved to them, as privacy needs it.

        What lies between the two values of its column is moved to the nearer one.
        """
        found = []
        for k, (value, low, high) in enumerate(zip(row, self.low, self.high, strict=True)):
            place = (value - (low / 2.0 + high / 2.0)) / (high / 2.0 - low / 2.0)
            if k in self.two_valued:
                place = 1.0 if place >= 0 else -1.0
            found.append(min(max(place, -1.0), 1.0))
        return found


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Under what the people of one channel are asked: the point, pairs and ranges, ways, and the cells' shares.

    The same as `protocol.regression.questions.QueryDesign`.
    """

    point: Rows  # (levels, d)
    pairs: tuple[Rows, ...]  # (pairs, 2, d)
    ranges: Rows  # (2 pairs, 2)
    ways: tuple[Rows, ...]  # (ways, 2, d)
    steps: Rows  # (ways, 3)
    upto: tuple[float, ...]  # (1 + 2 pairs + ways,)

    @property
    def beyond(self) -> int:
        """Return how many cells ask for a bit about moments: the first ones, before those beside the point."""
        return len(self.upto) - len(self.ways)


def is_design(asked: Asked, levels: int, d: int) -> bool:
    """Tell whether what a channel asks has the shapes of so many levels and coefficients, and can be answered."""
    pairs, ways, products = len(asked.pairs), len(asked.ways), (*asked.pairs, *asked.ways)
    shaped = _has(asked.point, levels, d) and _has(asked.ranges, 2 * pairs, 2) and _has(asked.steps, ways, 3)
    shaped = shaped and len(asked.upto) == 1 + 2 * pairs + ways and ways % levels == 0
    shaped = shaped and all(_has(two, 2, d) for two in products)
    small = all(abs(each) <= LARGEST for two in products for row in two for each in row)
    near = all(abs(each) <= FARTHEST for row in (*asked.point, *asked.ranges, *asked.steps) for each in row)
    return (
        shaped
        and small
        and near
        and all(0 < high - low < math.inf for *_, low, high in (*asked.ranges, *asked.steps))
        and all(low <= high for low, high in pairwise((0.0, *asked.upto, 1.0)))
    )


def _has(rows: Rows, length: int, width: int) -> bool:
    """Tell whether rows have a shape, and finite numbers."""
    return len(rows) == length and all(len(row) == width and all(map(math.isfinite, row)) for row in rows)


def check_terms(terms: RegressionTerms, taus: Sequence[float]) -> list[Fraction | None]:
    """Refuse terms that are none; return the likelihood ratio of every block, None where it is unbounded."""
    p = len(terms.columns)
    ends = list(zip(terms.low, terms.high, strict=False))
    named = (
        len({terms.response, *terms.columns}) == p + 1
        and p == len(terms.low) == len(terms.high)
        and 1 <= p <= MOST_COLUMNS
    )
    bounded = all(math.isfinite(low) and math.isfinite(high) and high / 2 - low / 2 > 0 for low, high in ends)
    levels = [tau for channel in terms.channels for tau in channel.taus]
    bounded = bounded and all(0 <= column < p for column in terms.two_valued)
    try:
        if named and bounded and levels == list(taus):
            return [ratio for channel in terms.channels for ratio in _ratios(channel, p)]
    except (ValueError, ArithmeticError):
        pass
    raise BadInput("the card's channels do not make a regression; fetch it from the collector again.")


def _ratios(channel: DeviceChannel, p: int) -> list[Fraction | None]:
    """Return the likelihood ratios of a channel's blocks, and last of its bit."""
    upto, levels = channel.upto, len(channel.taus)
    ascends = all(a <= b for a, b in zip((0.0, *upto), upto, strict=False))
    if not (upto and upto[-1] == 1.0 and ascends and len(upto) == len(channel.blocks)):
        raise ValueError("no shares of blocks")
    found = []
    for block in channel.blocks:
        count = _slopes(block)
        fixed = block.slopes is None or (len(set(block.slopes)) == count and set(block.slopes) <= set(range(1, p + 1)))
        if not (count <= p and fixed):
            raise ValueError("no slopes")
        found.append(_ratio(block, levels))
    return [*found, _box((1, 1, 2, 1), channel.bit).ratio]


def _slopes(block: DeviceBlock) -> int:
    """Return how many slopes a block speaks of."""
    return 1 if block.box is None else block.box[1]


def _ratio(block: DeviceBlock, levels: int) -> Fraction | None:
    """Return the largest likelihood ratio of a block, from its integers."""
    if block.box is not None:
        (row,) = block.weights
        box = _box(block.box, row)
        if box.kinds not in (1, levels + 1) or box.letters > LETTERS:
            raise ValueError("no box of these levels")
        return box.ratio
    rows = [[_whole(weight) for weight in row] for row in block.weights]
    even = rows and len(rows) % 2 == 0 and len({len(row) for row in rows}) == 1 and levels == 1
    if not even or any(sum(row) != OUTCOMES for row in rows) or len(rows[0]) > LETTERS:
        raise ValueError("no matrix")
    columns = list(zip(*rows, strict=True))
    if any(min(column) == 0 < max(column) for column in columns):
        return None
    return max(Fraction(max(column), min(column)) for column in columns if max(column))


def _box(shape: tuple[int, int, int, int], weights: Sequence[str]) -> BoxChannel:
    """Return a box of a card, or refuse one whose outcomes do not add up to the die."""
    low, extra, spare = (_whole(weight) for weight in weights)
    return BoxChannel("card", *shape, low, extra, spare)


def _whole(text: str) -> int:
    """Read a decimal text of up to 19 digits."""
    if not re.fullmatch(r"0|[1-9]\d{0,18}", text, re.ASCII):
        raise ValueError("no whole number")
    return int(text)


def word_of(nonce: str, round: int, id: bytes) -> int:
    """Return the public word of whoever answers a round under an id.

    >>> hex(word_of("00", 1, bytes(16)))
    '0xde83b7c643047b1e'
    """
    told = round.to_bytes(4, "big") + id
    return int.from_bytes(hmac.digest(nonce.encode(), told, hashlib.sha256)[:8], "big")


def public(word: int, k: int) -> int:
    """Return the k-th draw of a public word; the same as `protocol.regression.questions.public`."""
    z = (word + k * 0x9E3779B97F4A7C15) & WHOLE
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WHOLE
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WHOLE
    return z ^ (z >> 31)


def uniform(word: int, k: int) -> float:
    """Return the k-th draw of a public word as a number in [0, 1)."""
    return (public(word, k) >> 11) * WORD


def channel_of_word(word: int, channels: int) -> int:
    """Return which channel a public word gives to its person."""
    return int(uniform(word, CHANNEL_OF) * channels) if channels > 1 else 0


def cell_of_word(word: int, upto: Sequence[float]) -> int:
    """Return the cell that a public word puts its person in."""
    u = uniform(word, KIND)
    return TIGHT if u >= upto[-1] else bisect_right(upto, u)


def block_of_word(word: int, upto: Sequence[float]) -> int:
    """Return the block that a public word gives to its person."""
    return bisect_right(upto, uniform(word, 1)) if len(upto) > 1 else 0


def slopes_of_word(word: int, block: DeviceBlock, p: int) -> list[int]:
    """Return the slopes, from 1, that a person is asked about."""
    count = _slopes(block)
    if block.slopes is not None:
        return list(block.slopes)
    if count == p:
        return list(range(1, p + 1))
    if count == 1:
        return [1 + int(uniform(word, 2) * p)]
    found: list[int] = []
    for j in range(p):
        if len(found) < count and uniform(word, 2 + j) * (p - j) < count - len(found):
            found.append(j + 1)
    return found


def product_of_word(word: int, d: int) -> tuple[int, int]:
    """Return the product of covariates that a person is asked about, 0 being the constant."""
    rest, first = 1 + int(uniform(word, PRODUCT_OF) * (d * (d + 1) // 2 - 1)), 0
    while rest >= d - first:
        rest, first = rest - (d - first), first + 1
    return first, first + rest


def row_letter(
    channel: DeviceChannel, asked: Asked, features: Sequence[float], response: float, word: int, dice: Sequence[int]
) -> int:
    """Return the letter of one row: its question is the word's, its noise the dice's (rounding, and the die last)."""
    cell, die = cell_of_word(word, asked.upto), dice[-1] >> 2
    if cell != TIGHT:
        return _bit(channel, asked, cell, features, response, word, dice)
    at = asked.point
    block = channel.blocks[block_of_word(word, channel.upto)]
    chosen = slopes_of_word(word, block, len(features))
    if block.box is not None:
        return _boxed(channel, block, chosen, at, features, response, die, dice)
    rows = [[int(weight) for weight in row] for row in block.weights]
    common, letter = [min(column) for column in zip(*rows, strict=True)], 0
    if die >= sum(common):
        die -= sum(common)
        positions = len(rows) // 2
        place = 0.5 * (features[chosen[0] - 1] + 1.0) * (positions - 1)
        own = rows[_side(at, features, response) * positions + _rounded(place, positions, dice[0])]
        common = [weight - shared for weight, shared in zip(own, common, strict=True)]
    while die >= common[letter]:
        die -= common[letter]
        letter += 1
    return letter


def _bit(
    channel: DeviceChannel,
    asked: Asked,
    cell: int,
    features: Sequence[float],
    response: float,
    word: int,
    dice: Sequence[int],
) -> int:
    """Return one bit about a product of two covariates, or of two combinations of them, or beside the point."""
    (low, extra, _), die = map(int, channel.bit), dice[-1] >> 2
    if die < 2 * low:
        return die // low
    if die - 2 * low >= extra:
        return 0
    if cell < asked.beyond:
        return _rounded(_product(asked, cell, features, word), 2, dice[0])
    return _rounded(0.5 * (_turned(asked, cell - asked.beyond, features, response, word) + 1.0), 2, dice[0])


def _product(asked: Asked, cell: int, features: Sequence[float], word: int) -> float:
    """Return the product that a cell asks about, from 0 to 1 over its range."""
    if cell == PRODUCT:
        first, second = product_of_word(word, len(features) + 1)
        product = features[second - 1]
        if first == second:
            return product * product
        return 0.5 * ((product * features[first - 1] if first > 0 else product) + 1.0)
    one, other = (_fitted(combination, features) for combination in asked.pairs[(cell - 1) % len(asked.pairs)])
    low, high = asked.ranges[cell - 1]
    return (min(max(one * other, low), high) - low) / (high - low)


def _fitted(combination: Sequence[float], features: Sequence[float]) -> float:
    """Return a combination of (1, z)."""
    fit = combination[0]
    for slope, value in zip(combination[1:], features, strict=True):
        fit += slope * value
    return fit


def _boxed(
    channel: DeviceChannel,
    block: DeviceBlock,
    chosen: Sequence[int],
    at: Rows,
    features: Sequence[float],
    response: float,
    die: int,
    dice: Sequence[int],
) -> int:
    """Return the letter of a box: the first faces are every letter's alike, then those of the record's box."""
    assert block.box is not None
    kinds, slopes, cells, width = block.box
    low, extra, _ = map(int, block.weights[0])
    letters = kinds * cells**slopes
    if die < low * letters:
        return die // low
    rest = die - low * letters
    if rest >= extra * width**slopes:
        return 0
    offset, side, positions = rest // extra, _side(at, features, response), cells - width + 1
    score = (1.0 if side >= len(channel.taus) else 0.0) - channel.taus[0]
    scale = 1.0 if kinds > 1 else score / max(max(tau, 1 - tau) for tau in channel.taus)
    letter, radix = 0, 1
    for k in range(slopes):
        place = 0.5 * (scale * features[chosen[k] - 1] + 1.0) * (positions - 1)
        letter += radix * (_rounded(place, positions, dice[k]) + offset % width)
        offset //= width
        radix *= cells
    return letter + radix * side if kinds > 1 else letter


def _turned(asked: Asked, way: int, features: Sequence[float], response: float, word: int) -> float:
    """Return a product, its range turned to [-1, 1], with the sign of the side beside the point on which one lies."""
    step, low, high = asked.steps[way]
    point = asked.point[way // (len(asked.ways) // len(asked.point))]
    fit = _fitted((point[0] + (step if public(word, SIGN) & 1 else -step), *point[1:]), features)
    one, other = (_fitted(combination, features) for combination in asked.ways[way])
    told = (2.0 * min(max(one * other, low), high) - low - high) / (high - low)
    return told if response <= fit else -told


def _side(at: Rows, features: Sequence[float], response: float) -> int:
    """Return how many of the fitted quantiles lie at or above the response, the highest of them being meant."""
    wrong = least = side = 0
    for level in range(len(at) - 1, -1, -1):
        wrong += -1 if response <= _fitted(at[level], features) else 1
        if wrong < least:
            least, side = wrong, len(at) - level
    return side


def _rounded(place: float, positions: int, word: int) -> int:
    """Round a place up or down at random, so that it is right on average."""
    below = math.floor(place)
    if (word >> 11) * WORD < place - below:
        below += 1
    return min(max(below, 0), positions - 1)
