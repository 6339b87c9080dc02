"""The wire of a regression: every message against its literal bytes, and nothing rides along."""

from typing import Any

import msgspec
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message, from_bytes, to_bytes
from sottovoce.protocol.regression import messages
from sottovoce.protocol.regression.messages import PeopleQuery, PeopleReport, PilotQuery
from sottovoce.protocol.wire import kind_of, seal, unseal

STUDY = b"0123456789abcdef"
GOLDEN: dict[str, tuple[Message, str]] = {
    "people's query": (
        PeopleQuery(
            3, 64, 16, bytes(range(16)), ((0.5, -1.0),), (((1.0, 0.0), (0.0, 2.0)),), ((0.25,), (0.5,)), (0.0, 0.1, 0.2)
        ),
        "88a5726f756e6403a5666972737440a5636f756e7410a36b6579c410000102030405060708090a0b0c0d0e0fa6706f696e74"
        "739192cb3fe0000000000000cbbff0000000000000aa646972656374696f6e73919292cb3ff0000000000000cb0000000000"
        "00000092cb0000000000000000cb4000000000000000a573697a65739291cb3fd000000000000091cb3fe0000000000000a4"
        "7570746f93cb0000000000000000cb3fb999999999999acb3fc999999999999a",
    ),
    "people's report": (PeopleReport(3, (0, 37, 70000)), "82a5726f756e6403a76c657474657273930025ce00011170"),
    "pilot's query": (
        PilotQuery(2, 40, (1.5, -2.0), (10, 300)),
        "84a5726f756e6402a5666972737428a6706f696e747392cb3ff8000000000000cbc000000000000000a6636f756e7473920acd012c",
    ),
}


def test_every_kind_of_message_is_here() -> None:
    kinds = {kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)}
    assert kinds - {Message} == {type(message) for message, _ in GOLDEN.values()}
    assert {kind_of(kind) for kind in kinds - {Message}} == {"people-query", "people-report", "pilot-query"}


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_bytes_are_as_written_down(message: Message, wire: str) -> None:
    assert to_bytes(message).hex() == wire
    assert from_bytes(bytes.fromhex(wire), type(message)) == message
    assert unseal(seal(STUDY, 3, PeopleReport(3, (1,))), STUDY, [PeopleReport]).message == PeopleReport(3, (1,))


def fields(message: Message) -> dict[str, Any]:
    plain = msgspec.msgpack.decode(to_bytes(message))
    assert isinstance(plain, dict)
    return plain


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_a_field_too_many_or_too_few_is_refused(message: Message, wire: str) -> None:
    with pytest.raises(BadInput, match="unknown field") as caught:
        from_bytes(msgspec.msgpack.encode({**fields(message), "value": 123456.789}), type(message))
    assert "123456" not in str(caught.value)
    for name in fields(message):
        left = {key: value for key, value in fields(message).items() if key != name}
        with pytest.raises(BadInput, match="missing required field"):
            from_bytes(msgspec.msgpack.encode(left), type(message))


@pytest.mark.parametrize("letters", [[0.5], ["a"], [None], 3, [[1]]])
def test_letters_are_integers(letters: Any) -> None:
    data = msgspec.msgpack.encode({"round": 3, "letters": letters})
    with pytest.raises(BadInput, match="not a PeopleReport"):
        from_bytes(data, PeopleReport)
