"""A site in a regression: it asks its people one after the other, in a loop, and tells their letters at the end.

The recursion that says where each person is asked follows from public words and letters alone, so the site goes on with
it by itself and one message leaves: a letter a person, in a random order.
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.client.door import SiteLimits
from sottovoce.client.ledger import PeopleStorage
from sottovoce.client.order import Key
from sottovoce.client.regression.loop import ask_piece
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.messages import LoopQuery, Message, PilotQuery, Reports
from sottovoce.protocol.regression.blocks import RegressionChannel, tables_of
from sottovoce.protocol.regression.carried import most_people, packed, run_of, whose
from sottovoce.protocol.regression.questions import public_words

NOWHERE = "where the regression stands leads nowhere; correct the query."
CHUNK = 1 << 13  # people whose dice are thrown at once


class SitePeople(Persons):
    """Holds rows, and answers for all of them in one loop; before, some answer the one bit of a pilot.

    ``before`` is how many people stand before this site's in the study: a public word is a person's own.
    """

    __slots__ = ("_before", "_channels")

    kinds: tuple[type[Message], ...] = (LoopQuery, PilotQuery)

    def __init__(
        self,
        rows: Rows,
        channels: Sequence[RegressionChannel],
        dice: RandomSource | None,
        *,
        epsilon: float,
        key: bytes,
        before: int,
        storage: PeopleStorage | None = None,
        order: Key | None = None,
        limits: SiteLimits | None = None,
    ) -> None:
        super().__init__(rows, channels[0], dice, epsilon=epsilon, storage=storage, order=order, key=key, limits=limits)
        if any(channel.p != rows.p or channel.epsilon > epsilon for channel in channels):
            raise BadInput("a channel is for other columns, or costs a person more than the study says; correct it.")
        self._channels, self._before = tuple(channels), before

    def reply(self, round: int, query: Message) -> Message:
        """Check, spend and answer a query; the same again gets the same again."""
        if isinstance(query, LoopQuery) and query.round == round:
            return self.loop(query)
        return super().reply(round, query)

    def loop(self, query: LoopQuery) -> Reports:
        """Ask people one after the other, each at the point that the one before has moved; return their letters."""
        self._check_range(query.first, query.count)
        channels = self._channels
        alphabet = max(channel.letters for channel in channels)
        if len(query.runs) != len(channels) or query.count > most_people(alphabet):
            raise BadInput("the query does not say where the regression stands, or asks too many; correct the query.")
        for data, channel in zip(query.runs, channels, strict=True):
            run_of(data, channel)

        def draw(first: int) -> Reports:
            own = public_words(self._key or b"", self._before + first, query.count)
            where, drawn = self._where(first, query.count), whose(own, len(channels))
            letters = np.zeros(query.count, dtype=np.int64)
            for number, (data, channel) in enumerate(zip(query.runs, channels, strict=True)):
                study, state = run_of(data, channel)
                tables, mine = tables_of(channel), np.flatnonzero(drawn == number)
                for start in range(0, len(mine), CHUNK):
                    part = mine[start : start + CHUNK]
                    words = np.concatenate((own[part][:, None], self._throw(len(part), channel)), axis=1)
                    words.setflags(write=False)  # the loop is compiled for such words alone
                    told = np.empty(len(part), dtype=np.int64)
                    try:
                        state = ask_piece(study, tables, state, self._rows, where[part], words, told)
                    except (np.linalg.LinAlgError, ValueError, ArithmeticError):
                        raise BadInput(NOWHERE) from None
                    letters[part] = told
            return Reports(query.round, packed(letters, alphabet))

        return self._ledger.group(query.first, query.count, query, Reports, draw)
