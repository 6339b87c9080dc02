"""People behind one door: each answers one query of a regression, once; a retry gets the same reply."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import NoReturn, SupportsIndex

import numpy as np

from sottovoce.client.door import SiteLimits
from sottovoce.client.ledger import PeopleStorage, PersonLedger
from sottovoce.client.order import Key, bits_for, places
from sottovoce.client.regression.randomize_row import (
    count_above,
    randomize_beside,
    randomize_pair,
    randomize_people,
    randomize_product,
    randomize_row,
)
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats, Words
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.messages import Message, PeopleQuery, PeopleReport, PersonQuery, PersonReport, PilotQuery, Tally
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.protocol.regression.blocks import Open, RegressionChannel, tables_of
from sottovoce.protocol.regression.questions import (
    FARTHEST,
    KEY,
    LARGEST,
    LEAST,
    QueryDesign,
    choose,
    public_words,
    which_product,
)


class Persons:
    """Holds rows and answers for each of them once; person ``i`` is the i-th of a random order, or of the rows' own.

    ``epsilon`` is the budget of a report, which the one bit of a pilot may use (None: the channel's). ``order`` is the
    key of a random order. ``key`` is the public key of the study, if it was agreed on: no question is answered that was
    not drawn with it. Without ``dice`` the operating system's entropy is used, without ``storage`` the ledger stays in
    memory.
    """

    __slots__ = (
        "_channel",
        "_dice",
        "_epsilon",
        "_key",
        "_ledger",
        "_limits",
        "_order",
        "_rows",
        "_tables",
    )

    kinds: tuple[type[Message], ...] = (PersonQuery, PeopleQuery, PilotQuery)

    def __init__(
        self,
        rows: Rows,
        channel: RegressionChannel,
        dice: RandomSource | None = None,
        *,
        epsilon: float | None = None,
        storage: PeopleStorage | None = None,
        order: Key | None = None,
        key: bytes | None = None,
        limits: SiteLimits | None = None,
    ) -> None:
        self._limits = SiteLimits() if limits is None else limits
        self._epsilon = channel.epsilon if epsilon is None else epsilon
        self._limits.check_budget(self._epsilon)
        if channel.epsilon > self._epsilon:
            raise BadInput("the channel costs a person more than the study says; make it of the study's epsilon.")
        if rows.p != channel.p:
            raise BadInput(f"the rows have {rows.p} covariates and the channel is for {channel.p}; give both the same.")
        self._rows, self._channel, self._order, self._key = rows, channel, order, key
        self._tables = tables_of(channel)
        self._dice: RandomSource = SystemEntropy() if dice is None else dice
        self._ledger = PersonLedger(storage)

    def __repr__(self) -> str:
        return f"Persons({self._rows.size:,} rows, {self._ledger.spent:,} answered, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("Persons cannot be pickled or copied: records do not leave the site")

    @property
    def size(self) -> int:
        """Return how many people there are."""
        return self._rows.size

    def reply(self, round: int, query: Message) -> Message:
        """Check, spend and answer a query; the same again gets the same again."""
        if isinstance(query, PersonQuery):
            return self.answer(query)
        if not isinstance(query, PeopleQuery | PilotQuery) or query.round != round:
            raise BadInput(f"round {round} asks nothing that these people understand; correct the query.")
        return self.letters(query) if isinstance(query, PeopleQuery) else self.pilot(query)

    def answer(self, query: PersonQuery) -> PersonReport:
        """Answer a query for the person it names; the same query again gets the same letter, any other is refused."""
        self._check_person(query)

        def draw(person: int) -> PersonReport:
            words = np.concatenate((np.zeros(1, dtype=np.uint64), self._throw(1)[0]))[None]
            return PersonReport(person, self._letter(query, int(self._where(person, 1)[0]), words))

        return self._ledger.group(query.person, 1, query, PersonReport, draw)

    def letters(self, query: PeopleQuery) -> PeopleReport:
        """Answer a query for a batch of people, each with the question that their public word gives them."""
        asked = self._check_people(query)

        def draw(first: int) -> PeopleReport:
            own = public_words(query.key, first, query.count)
            words = np.concatenate((own[:, None], self._throw(query.count)), axis=1)
            letters = np.empty(query.count, dtype=np.int64)
            with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
                randomize_people(
                    self._tables, *asked, self._rows.features(), self._rows.response(),
                    self._where(first, query.count), words, letters,
                )  # fmt: skip
            return PeopleReport(query.round, tuple(letters.tolist()))

        return self._ledger.group(query.first, query.count, query, PeopleReport, draw)

    def pilot(self, query: PilotQuery) -> Tally:
        """Answer with one bit a person about their response; only the sums are told."""
        self._limits.check_points(max(len(query.points), len(query.counts)))
        if len(query.points) != len(query.counts) or min(query.counts) < 0 or not all(map(math.isfinite, query.points)):
            raise BadInput("the query needs one count of at least zero for each finite point; correct the query.")
        total = sum(query.counts)
        self._check_range(query.first, total)

        def draw(first: int) -> Tally:
            die, where, done, ones = self._dice.words(total), self._where(first, total), 0, []
            flips = flips_of(binary(self._epsilon))
            for point, count in zip(query.points, query.counts, strict=True):
                part = slice(done, done + count)
                ones.append(count_above(self._rows.response(), where[part], die[part], flips, point))
                done += count
            return Tally(query.round, tuple(ones))

        return self._ledger.group(query.first, total, query, Tally, draw)

    def _throw(self, count: int, channel: RegressionChannel | None = None) -> Words:
        """Throw the dice of some people: one word for the rounding of each slope, and the die last."""
        throws = 1 + max((self._channel if channel is None else channel).widest, 1)
        words = self._dice.words(count * throws).reshape(count, throws)
        words.setflags(write=False)  # whoever threw the dice: the loop is compiled for such words alone
        return words

    def _where(self, first: int, count: int) -> Words:
        """Return which rows some people are."""
        where = np.arange(first, first + count, dtype=np.uint64)
        if self._order is not None:
            places(self.size, bits_for(self.size), self._order, first, where)
        return where

    def _letter(self, query: PersonQuery, who: int, words: Words) -> int:
        """Return the letter of one person."""
        _, plan, faces, steps, score, *_, radius = self._tables
        features, response = self._rows.features(), self._rows.response()
        if query.factors:
            first, second = query.factors
            return int(randomize_product(faces, len(plan), features, who, first, second, words, 0))
        if query.pair:
            pairs, ranges = np.array([query.pair], dtype=np.float64), np.array([query.within], dtype=np.float64)
            if query.points:  # the point lies where they are asked already
                points, aside = np.array([query.points]), np.array([[0.0, *query.within]])
                return int(
                    randomize_beside(
                        faces, len(plan), features, response[who], who, points, 0, 0, pairs, aside, 0, words, 0
                    )
                )
            return int(randomize_pair(faces, len(plan), features, who, pairs, 0, ranges, 0, words, 0))
        points = np.array([query.points])
        chosen = np.array([*query.slopes, 0], dtype=np.int64)
        return int(
            randomize_row(
                plan, faces, steps, score, radius, query.block, chosen, features, response, who, points, 0, words, 0
            )
        )

    def _check_person(self, query: PersonQuery) -> None:
        """Refuse what cannot be answered, before anything is spent."""
        p = self._channel.p
        if not 0 <= query.person < self.size or not 0 <= query.block < len(self._channel.blocks):
            raise BadInput("the person or the block does not exist; correct the query.")
        self._check_channel()
        if query.factors or query.pair:
            known = not query.slopes and query.block == 0
            known = known and _is_product(query, p) != _is_pair(query, p)
        else:
            block = self._channel.blocks[query.block]
            known = len(query.slopes) == block.count and all(1 <= slope <= p for slope in query.slopes)
            known = known and len(set(query.slopes)) == len(query.slopes)
            known = known and _shaped(query.points, (len(self._channel.taus), p + 1)) and _near(query.points)
        if not known:
            raise BadInput("the query to a person does not fit the channel; correct the query.")
        if self._key is not None and not self._drawn(self._key, query):
            raise BadInput("the question is not drawn with the public key of this study; correct the query.")

    def _drawn(self, key: bytes, query: PersonQuery) -> bool:
        """Tell whether the block and its slopes, or the product, are those of the person's public word."""
        word, p = public_words(key, query.person, 1)[0], self._channel.p
        with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
            if query.factors:
                return query.factors == tuple(int(factor) for factor in which_product(p + 1, word))
            if query.pair:  # which combinations, is the design's, as the point is
                return True
            chosen = np.zeros(max(p, 1), dtype=np.int64)
            block = choose(self._tables.upto, self._tables.plan, p, word, chosen)
        return (query.block, query.slopes) == (block, tuple(chosen[: len(query.slopes)].tolist()))

    def _check_people(self, query: PeopleQuery) -> tuple[Floats, QueryDesign]:
        """Refuse a batch that cannot be answered, before anything is spent; return its points and its design."""
        self._check_range(query.first, query.count)
        self._check_channel()
        if len(query.key) != KEY or self._key not in (None, query.key):
            raise BadInput("the questions are not drawn with the public key of this study; correct the query.")
        levels, d = len(self._channel.taus), self._channel.p + 1
        pairs, ways = len(query.pairs), len(query.ways)
        shapes = (
            (query.points, (levels, d)),
            (query.pairs, (pairs, 2, d)),
            (query.ranges, (2 * pairs, 2)),
            (query.ways, (ways, 2, d)),
            (query.steps, (ways, 3)),
            (query.upto, (1 + 2 * pairs + ways,)),
        )
        if not all(_shaped(values, shape) for values, shape in shapes):
            raise BadInput("the points or the design do not fit the channel; correct the query.")
        small = all(abs(each) <= LARGEST for two in (*query.pairs, *query.ways) for row in two for each in row)
        small = small and ways % levels == 0 and _near((*query.points, *query.steps))
        if not small or not all(map(_is_range, (*query.ranges, *(each[LEAST:] for each in query.steps)))):
            raise BadInput("a combination of a design is too large, or a range has no length; correct the query.")
        if not all(low <= high for low, high in pairwise((0.0, *query.upto, 1.0))):
            raise BadInput("the shares of a design must ascend from 0 to 1 at most; correct the query.")
        points = np.array([query.points], dtype=np.float64)
        design = QueryDesign(
            np.array(query.pairs, dtype=np.float64).reshape(pairs, 2, d),
            np.array(query.ranges, dtype=np.float64).reshape(2 * pairs, 2),
            np.array(query.ways, dtype=np.float64).reshape(ways, 2, d),
            np.array(query.steps, dtype=np.float64).reshape(ways, 3),
            np.array(query.upto, dtype=np.float64),
        )
        return points, design

    def _check_range(self, first: int, count: int) -> None:
        """Refuse people who do not exist."""
        if not (first >= 0 and 1 <= count <= self.size and first + count <= self.size):
            raise BadInput("the query asks people who do not exist; correct the query.")

    def _check_channel(self) -> None:
        """Refuse to send exact scores."""
        if any(isinstance(block.channel, Open) for block in self._channel.blocks):
            raise BadInput("exact scores are not letters, and are not sent; give a channel with a finite epsilon.")


def _is_product(query: PersonQuery, p: int) -> bool:
    """Tell whether a query asks about a product of two covariates, and nothing else."""
    first, second = query.factors if len(query.factors) == 2 else (1, 0)
    return 0 <= first <= second <= p and second > 0 and not (query.pair or query.within or query.points)


def _is_pair(query: PersonQuery, p: int) -> bool:
    """Tell whether a query asks about a pair of combinations, and nothing else."""
    small = _shaped(query.pair, (2, p + 1)) and all(abs(each) <= LARGEST for row in query.pair for each in row)
    turned = not query.points or (_shaped(query.points, (1, p + 1)) and _near(query.points))
    return not query.factors and small and turned and _is_range(query.within)


def _is_range(ends: tuple[float, ...]) -> bool:
    """Tell whether two numbers make a range that can be computed with."""
    return _shaped(ends, (2,)) and _near((ends,)) and ends[1] > ends[0]


def _near(rows: Iterable[tuple[float, ...]]) -> bool:
    """Tell whether numbers are so small that nothing computed with them overflows."""
    return all(abs(each) <= FARTHEST for row in rows for each in row)


def _shaped(values: object, shape: tuple[int, ...]) -> bool:
    """Tell whether nested tuples of finite numbers have a shape."""
    if not isinstance(values, tuple) or len(values) != shape[0]:
        return False
    if len(shape) > 1:
        return all(_shaped(value, shape[1:]) for value in values)
    return all(isinstance(value, float | int) and math.isfinite(value) for value in values)
