"""Audits people of a regression: the blocks of a channel one by one, and bits about moments and beside the point."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.auditing.bound import Transcript, noise_of, shown_by
from sottovoce.auditing.parts import cost_of, parts_of
from sottovoce.auditing.subject import STUDY, Answering, AuditSubject, InputPair, said_by
from sottovoce.client.door import Door
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.messages import PersonQuery, PersonReport
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.wire import seal, unseal

MOST_LETTERS = 8  # that are counted one by one; of larger alphabets it counts in whose box a letter lies
PeopleDoor = Callable[[Rows, RegressionChannel], Answering]


def honest_people(rows: Rows, channel: RegressionChannel) -> Door:
    """Open people as the library does, with the system's entropy."""
    return Door(Persons(rows, channel), STUDY)


class Telling(NamedTuple):
    """What letters tell of two rows, and how likely each is under either."""

    read: Callable[[int], int]
    laws: tuple[Sequence[float], Sequence[float]]


class _Row(NamedTuple):
    """A row as the audit makes it: whether its response lies at or below every fit, and all of its covariates."""

    below: bool
    covariate: float


def people_of(
    channel: RegressionChannel, asked: float, door: PeopleDoor = honest_people, name: str = "library, regression"
) -> list[AuditSubject]:
    """Return the audits of a regression channel's blocks, and of its bit about moments and beside the point."""
    levels, p = len(channel.taus), channel.p
    at, moment = ((0.0,) * (p + 1),) * levels, PersonQuery(0, 0, (), (), (0, 1))
    found = []
    for k, block in enumerate(channel.blocks):
        if not isinstance(block.channel, BoxChannel | Channel):
            continue
        slopes = tuple(range(1, block.count + 1)) if block.slopes is None else block.slopes
        rows = rows_of(block.channel)
        told: Telling | None = told_of(block.channel, [corner_of(block.channel, row, channel) for row in rows])
        if isinstance(block.channel, BoxChannel) and block.channel.kinds == 1 and channel.taus != (0.5,):
            told = None  # its cells are rounded at random, and no row is sure of its box
        query = PersonQuery(0, k, slopes, at)
        found.append(_subject(channel, block.channel, asked, door, f"{name}, block {k + 1}", rows, told, query, moment))
    if p > 0:
        rows, told = (_Row(False, -1.0), _Row(True, 1.0)), told_of(channel.bit, [(0, 0), (0, 1)])
        other, side = PersonQuery(0, 0, (), (), (1, 1)), ((1.0, *(0.0,) * p),) * 2
        beside = PersonQuery(0, 0, (), at[:1], (), side, (-1.0, 1.0))
        for query, what in ((moment, "bit about moments"), (beside, "bit beside the point")):
            found.append(_subject(channel, channel.bit, asked, door, f"{name}, {what}", rows, told, query, other))
    return found


def _subject(
    channel: RegressionChannel,
    block: BoxChannel | Channel,
    asked: float,
    door: PeopleDoor,
    name: str,
    rows: tuple[_Row, _Row],
    told: Telling | None,
    query: PersonQuery,
    other: PersonQuery,
) -> AuditSubject:
    """Return the audit of one question to one person, who is asked again, and then something else."""
    first, second = seal(STUDY, 1, query), seal(STUDY, 1, other)

    def sample(_: int, side: int, trials: int) -> list[Transcript]:
        row = rows[side]
        features, response = np.full((1, channel.p), row.covariate), np.array([-1.0 if row.below else 1.0])
        doors = (door(Rows(features.copy(), response.copy()), channel) for _ in range(trials))
        return [said_by(each, first, first, second) for each in doors]

    def read(said: Transcript) -> int:
        try:
            message = unseal(said[0], STUDY, [PersonReport]).message
        except ValueError:
            return -1
        letter = getattr(message, "letter", -1)
        return told.read(letter) if told is not None else letter

    [part] = parts_of(block, asked)
    laws = None if told is None else told.laws
    collision = 1.0 if laws is None else noise_of(laws)
    return AuditSubject(name, cost_of(part), (InputPair("two rows far apart", laws),), sample, read, collision)


def rows_of(block: BoxChannel | Channel) -> tuple[_Row, _Row]:
    """Return the two rows whose letters differ most: of a matrix the most telling ones, of a box two corners."""
    if isinstance(block, BoxChannel):
        return _Row(False, -1.0), _Row(block.kinds > 1, 1.0)
    places, table = len(block.weights) // 2, block.distribution
    pairs = itertools.permutations(range(len(table)), 2)
    ends = max(pairs, key=lambda pair: shown_by(table[pair[0]], table[pair[1]]))
    first, second = (_Row(at >= places, 2 * (at % places) / max(places - 1, 1) - 1.0) for at in ends)
    return first, second


def corner_of(block: BoxChannel | Channel, row: _Row, channel: RegressionChannel) -> tuple[int, ...]:
    """Return the symbol of a row: of a matrix its number, of a box its side and the lowest cell of each slope."""
    if isinstance(block, Channel):
        places = len(block.weights) // 2
        return (row.below * places + round((row.covariate + 1) / 2 * (places - 1)),)
    last = block.positions - 1
    if block.kinds > 1:
        return (len(channel.taus) * row.below, *((last if row.covariate > 0 else 0,) * block.slopes))
    # without a side a slope's score is the product of both, and above every fit its sign is turned
    return (0, *((0 if row.covariate > 0 else last,) * block.slopes))


def told_of(block: BoxChannel | Channel, symbols: Sequence[tuple[int, ...]]) -> Telling:
    """Return what the letters of a block tell of two symbols.

    >>> from sottovoce.protocol.regression.box_channel import box_channel
    >>> told = told_of(box_channel("cq", 1.0, kinds=2, slopes=1, cells=2), [(0, 0), (1, 1)])
    >>> [round(chance, 3) for chance in told.laws[0]]
    [0.475, 0.175, 0.175, 0.175]
    """
    if isinstance(block, Channel):
        table = block.distribution
        first, second = (table[symbol[0]].tolist() for symbol in symbols)
        return Telling(int, (first, second))
    if block.letters <= MOST_LETTERS:
        chances = [
            [
                (block.low + block.extra * _inside(block, letter, symbol) + block.spare * (letter == 0)) / block.total
                for letter in range(block.letters)
            ]
            for symbol in symbols
        ]
        return Telling(int, (chances[0], chances[1]))
    # four kinds of letters: in neither box, in the first, in the second, in both; letter 0 has the spare outcomes
    alike = block.kinds == 1 or symbols[0][0] == symbols[1][0]
    common = [max(block.width - abs(a - b), 0) for a, b in zip(symbols[0][1:], symbols[1][1:], strict=True)]
    shared = math.prod(common) if alike else 0
    sizes = [block.letters - 2 * block.inside + shared, block.inside - shared, block.inside - shared, shared]

    def kind(letter: int) -> int:
        if not 0 <= letter < block.letters:
            return -1
        return _inside(block, letter, symbols[0]) + 2 * _inside(block, letter, symbols[1])

    spare = kind(0)
    first, second = (
        [
            (size * (block.low + block.extra * ((k >> side) & 1)) + block.spare * (k == spare)) / block.total
            for k, size in enumerate(sizes)
        ]
        for side in (0, 1)
    )
    return Telling(kind, (first, second))


def _inside(block: BoxChannel, letter: int, symbol: tuple[int, ...]) -> int:
    """Tell, as 0 or 1, whether a letter lies in the box of a symbol."""
    side, *cells = block.parts(letter)
    near = all(low <= cell < low + block.width for low, cell in zip(symbol[1:], cells, strict=True))
    return int(near and (block.kinds == 1 or side == symbol[0]))
