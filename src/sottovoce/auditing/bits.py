"""Audits a site that answers with one bit a record: tallies, letters of a walk, phases, dithered records, a round."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sottovoce.auditing.bound import Transcript, noise_of
from sottovoce.auditing.parts import cost_of, parts_of
from sottovoce.auditing.subject import STUDY, Answering, AuditSubject, InputPair, said_by
from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.messages import Query, Reports, Study, Tally, WalkQuery
from sottovoce.protocol.wire import seal, unseal

BitDoor = Callable[[Records, Study, Channel], Answering]


class _Asked(NamedTuple):
    """A pair of populations, the resolution, and what is asked first, again, and then once too often."""

    words: str
    records: tuple[tuple[float, ...], tuple[float, ...]]
    queries: tuple[Query, ...]
    resolution: float = 0.0


_ASKED = (
    _Asked("one record below and above the point", ((-1.0,), (1.0,)), (Query(1, (0.0,), (1,)),)),
    _Asked("the same, sent as letters", ((-9e15,), (9e15,)), (WalkQuery(1, (0.0,), (1,), 0.25),)),
    _Asked("one record in either half of a period", ((3.25,), (2.75,)), (Query(1, (0.0,), (1,), 0.0, (1.0,)),)),
    _Asked("one record on either side, dithered", ((-2.0,), (2.0,)), (Query(1, (0.0,), (1,)),), 1.0),
    _Asked(
        "one of six records replaced, in two rounds",
        ((-1.0, -1.0, -1.0, 1.0, 1.0, -9.0), (-1.0, -1.0, -1.0, 1.0, 1.0, 9.0)),
        (Query(1, (0.0,), (3,)), Query(2, (0.0, 5.0), (1, 2))),
    ),
)


def honest_door(records: Records, study: Study, channel: Channel) -> Door:
    """Open a site as the library does, with the system's entropy."""
    return Door(Site(records, study, channel=channel), STUDY)


def bit_site(
    channel: Channel, asked: float, door: BitDoor = honest_door, name: str = "library, one bit"
) -> AuditSubject:
    """Return the audit of sites that answer through a binary channel."""
    [part] = parts_of(channel, asked)
    flip = channel.weights[0][1] / channel.total
    laws = (1 - flip, flip), (flip, 1 - flip)
    cost = cost_of(part)

    def sample(pair: int, side: int, trials: int) -> list[Transcript]:
        given = _ASKED[pair]
        values, study = np.array(given.records[side]), Study(0.5, asked, given.resolution)
        once = [seal(STUDY, query.round, query) for query in given.queries]
        later = Query(len(once) + 1, (0.0,), (1,))
        queries = (once[0], once[0], *once[1:], seal(STUDY, later.round, later))
        return [said_by(door(Records(values.copy()), study, channel), *queries) for _ in range(trials)]

    pairs = tuple(InputPair(each.words, laws if len(each.records[0]) == 1 else None) for each in _ASKED)
    return AuditSubject(name, cost, pairs, sample, read_bit, noise_of(laws))


def read_bit(said: Transcript) -> int:
    """Return how many ones the first reply tells, -1 where it is no reply."""
    try:
        message = unseal(said[0], STUDY, [Tally, Reports]).message
    except ValueError:
        return -1
    return (
        sum(message.ones)
        if isinstance(message, Tally)
        else sum(message.letters)
        if isinstance(message, Reports)
        else -1
    )
