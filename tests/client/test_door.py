"""The door: bytes in, bytes out; what is not a query of this study is refused, and nothing is spent."""

import pickle  # noqa: TID251 - to see that it is refused

import msgspec
import numpy as np
import pytest

from sottovoce.client.door import Door, SiteLimits
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Query, Study, Tally
from sottovoce.protocol.wire import seal, unseal
from sottovoce.sim.randomness import dice

STUDY, OTHER = b"0123456789abcdef", b"another study..."
QUERY = Query(1, (50.0,), (40,))


def opened(**limits: int) -> tuple[Site, Door]:
    site = Site(Records(np.arange(100.0)), Study(0.5, 1.0), dice(1))
    return site, Door(site, STUDY, SiteLimits(**limits))


def test_a_retry_gets_the_same_bytes() -> None:
    site, door = opened()
    said = door.answer(seal(STUDY, 1, QUERY))
    assert door.answer(seal(STUDY, 1, QUERY)) == said
    assert site.spent == 40
    assert isinstance(unseal(said, STUDY, [Tally], 1).message, Tally)


def test_asking_without_bytes_is_the_same() -> None:
    through, direct = opened()[1], opened()[1]
    assert unseal(through.answer(seal(STUDY, 1, QUERY)), STUDY, [Tally]).message == direct.ask(1, QUERY)


def changed(**fields: object) -> bytes:
    plain = msgspec.msgpack.decode(seal(STUDY, 1, QUERY))
    return msgspec.msgpack.encode({**plain, **fields})


REFUSED = {
    "another study": (seal(OTHER, 1, QUERY), "belongs to another study"),
    "an older version": (changed(version=0), "another protocol version than 1"),
    "a newer version": (changed(version=2), "another protocol version than 1"),
    "another kind": (seal(STUDY, 1, Tally(1, (3,))), "another kind; query or walk-query is expected"),
    "two rounds": (seal(STUDY, 2, QUERY), "name different rounds"),
    "round zero": (changed(round=0), "another round; a round from 1 on"),
    "a field more": (changed(secret=123456.789), "not a message of this protocol"),
    "a field more inside": (
        changed(body={"round": 1, "points": [50.0], "counts": [40], "secret": 123456.789}),
        "not a whole query: a field is missing, too many or of another type",
    ),
    "no message": (b"\x00\xff", "not a message of this protocol"),
    "nothing": (b"", "not a message of this protocol"),
    "trailing bytes": (seal(STUDY, 1, QUERY) + b"\x00", "not a message of this protocol"),
    "too large": (seal(STUDY, 1, Query(1, (0.0,) * 200, (0,) * 200)), "larger than 1,000 bytes"),
    "too late": (seal(STUDY, 9, Query(9, (50.0,), (40,))), "rounds 1 to 8"),
}


@pytest.mark.parametrize(("data", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_named_and_nothing_is_spent(data: bytes, sentence: str) -> None:
    site, door = opened(size=1_000, rounds=8)
    with pytest.raises(BadInput, match=sentence) as caught:
        door.answer(data)
    assert "123456" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert site.spent == 0
    door.answer(seal(STUDY, 1, QUERY))


def test_a_door_is_not_copied() -> None:
    with pytest.raises(TypeError, match="records do not leave the site"):
        pickle.dumps(opened()[1])
