"""The dithered regression as a method: queries to people behind one door, replies checked, a plain state.

People are asked one by one, which is the compiled loop bit for bit, or in batches that grow with the people so far. In
a batch everybody is asked under one point and design, and booked under them; a new point every 3 % of the people costs
0 to 3 % of error, with coverage unchanged, where one fixed batch would be dangerous among the first people.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message, PeopleQuery, PeopleReport, PersonQuery, PersonReport
from sottovoce.protocol.regression.blocks import SLOPES
from sottovoce.protocol.regression.decode import checked_letters
from sottovoce.protocol.regression.dithered.state import AskedUnder, DitheredState, init, take
from sottovoce.protocol.regression.dithered.step import which_blocks
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import (
    LEAST,
    PRODUCT,
    STEP,
    TIGHT,
    choose,
    is_up,
    public_words,
    which_cell,
    which_product,
)
from sottovoce.server.method import Queries, Replies
from sottovoce.server.regression.dithered.fit import DitheredFit


class BatchRule(NamedTuple):
    """How many people are asked under one query: a share of those so far, and no fewer than some."""

    least: int = 16
    share: float = 0.03

    def size(self, people: int) -> int:
        """Return how many are asked after so many people."""
        return max(self.least, int(self.share * people))


ONE_BY_ONE, BY_SHARE = BatchRule(1, 0.0), BatchRule()


class DitheredRounds(NamedTuple):
    """How many rounds were answered, and what they came to."""

    round: int
    run: DitheredState


@dataclass(frozen=True, eq=False)
class DitheredMethod:
    """A study, how many people will be asked, and the public key that draws their questions.

    ``first`` is the number of the first of them, and ``before`` the rounds of the conversation before theirs.
    """

    study: DitheredStudy
    people: int
    key: bytes
    batches: BatchRule = BY_SHARE
    first: int = 0
    before: int = 0

    replies: ClassVar[tuple[type[Message], ...]] = (PersonReport, PeopleReport)
    state: ClassVar[type[DitheredRounds]] = DitheredRounds

    def init(self) -> DitheredRounds:
        """Return the state before the first person."""
        return DitheredRounds(0, init(self.study))

    def query(self, state: DitheredRounds) -> Queries | None:
        """Return what the next people are asked; None once all were."""
        run, count = state.run, self._count(state.run)
        if count == 0:
            return None
        round, first = self.before + state.round + 1, self.first + run.people
        if self.batches == ONE_BY_ONE:
            return Queries(round, [self._one(run, first)], 1)
        design = run.design
        batch = PeopleQuery(
            round, first, count, self.key, _tuples(run.point), *map(_tuples, design),
        )  # fmt: skip
        return Queries(round, [batch], count)

    def step(self, state: DitheredRounds, replies: Replies) -> DitheredRounds:
        """Return the state after the people's letters, or refuse them."""
        run, count, round = state.run, self._count(state.run), self.before + state.round + 1
        if count == 0 or len(replies) != 1:
            raise BadInput(f"round {round} awaits one reply of its people, or is over; send what was asked for.")
        reply = replies[0]
        if reply is None:
            return state
        first = self.first + run.people
        if self.batches == ONE_BY_ONE:
            if not isinstance(reply, PersonReport) or reply.person != first:
                raise BadInput(f"round {round} asked another person; answer for the one who was asked.")
            letters: tuple[int, ...] = (reply.letter,)
        else:
            if not isinstance(reply, PeopleReport) or reply.round != round:
                raise BadInput(f"round {round} asked a batch of people; answer with their letters.")
            letters = reply.letters
        words = public_words(self.key, first, count)
        checked = checked_letters(letters, self._sizes(run, words), round)
        asked = AskedUnder(run.point, run.design)
        return DitheredRounds(state.round + 1, take(self.study, run, asked, words, checked))

    def outcome(self, state: DitheredRounds) -> DitheredFit:
        """Return the fit to all people so far."""
        return DitheredFit.of(self.study, state.run)

    def _count(self, run: DitheredState) -> int:
        """Return how many people are asked next: never beyond a look, which changes the design."""
        return min(self.batches.size(run.people), run.until - run.people, self.people - run.people)

    def _sizes(self, run: DitheredState, words: Words) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return how many letters each person could have said."""
        blocks = np.empty(len(words), dtype=np.int64)
        with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
            which_blocks(self.study.tables, run.design.upto, words, self.study.channel.p, blocks)
        return self.study.alphabets[blocks]

    def _one(self, run: DitheredState, person: int) -> PersonQuery:
        """Return what one person is asked."""
        tables, p = self.study.tables, self.study.channel.p
        word, chosen = public_words(self.key, person, 1)[0], np.zeros(max(p, 1), dtype=np.int64)
        with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
            design, cell = run.design, which_cell(run.design.upto, word)
            beyond = len(design.upto) - len(design.ways)
            if cell == PRODUCT:
                j, k = which_product(p + 1, word)
                return PersonQuery(person, 0, (), (), (int(j), int(k)))
            if cell >= beyond:
                way = cell - beyond
                point, step = run.point[way // (len(design.ways) // self.study.levels)].copy(), design.steps[way]
                point[0] += step[STEP] if is_up(word) else -step[STEP]
                pair = _tuples(design.ways[way])
                return PersonQuery(person, 0, (), (_tuples(point),), (), pair, _tuples(step[LEAST:]))
            if cell != TIGHT:
                pair = _tuples(design.pairs[(cell - 1) % len(design.pairs)])
                return PersonQuery(person, 0, (), (), (), pair, _tuples(design.ranges[cell - 1]))
            block = int(choose(tables.upto, tables.plan, p, word, chosen))
        slopes = tuple(chosen[: tables.plan[block, SLOPES]].tolist())
        return PersonQuery(person, block, slopes, _tuples(run.point))


def _tuples(array: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple:  # type: ignore[type-arg]
    """Return an array as nested tuples of numbers, as messages have them."""
    return tuple(array.tolist() if array.ndim == 1 else map(_tuples, array))
