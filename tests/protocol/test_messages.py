"""The wire: every message against its literal bytes, and nothing rides along."""

from typing import Any

import msgspec
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol import messages
from sottovoce.protocol.messages import (
    Message,
    PersonQuery,
    PersonReport,
    Query,
    Reports,
    Study,
    Tally,
    WalkQuery,
    from_bytes,
    to_bytes,
)

GOLDEN: dict[str, tuple[Message, str]] = {
    "study": (
        Study(0.9, 1.0, 0.5),
        "83a3746175cb3feccccccccccccda7657073696c6f6ecb3ff0000000000000aa7265736f6c7574696f6ecb3fe0000000000000",
    ),
    "query": (
        Query(3, (1.5, -2.0), (10, 300), 0.25),
        "84a5726f756e6403a6706f696e747392cb3ff8000000000000cbc000000000000000"
        "a6636f756e7473920acd012ca473746570cb3fd0000000000000",
    ),
    "walk's query": (
        WalkQuery(3, (1.5,), (10,), 0.25),
        "84a5726f756e6403a6706f696e747391cb3ff8000000000000a6636f756e7473910aa473746570cb3fd0000000000000",
    ),
    "reports": (Reports(3, b"\x00\x01\x01"), "82a5726f756e6403a76c657474657273c403000101"),
    "tally": (Tally(3, (10, 12)), "82a5726f756e6403a46f6e6573920a0c"),
    "person's query": (
        PersonQuery(7, 1, (2,), ((0.5, -1.0),)),
        "85a6706572736f6e07a5626c6f636b01a6736c6f7065739102a6706f696e74739192cb3fe0000000000000cbbff00000"
        "00000000a7666163746f727390",
    ),
    "person's report": (PersonReport(7, 70000), "82a6706572736f6e07a66c6574746572ce00011170"),
}


def test_every_kind_of_message_is_here() -> None:
    kinds = {kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)}
    assert kinds - {Message} == {type(message) for message, _ in GOLDEN.values()}


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_bytes_are_as_written_down(message: Message, wire: str) -> None:
    assert to_bytes(message).hex() == wire
    assert from_bytes(bytes.fromhex(wire), type(message)) == message


def fields(message: Message) -> dict[str, Any]:
    plain = msgspec.msgpack.decode(to_bytes(message))
    assert isinstance(plain, dict)
    return plain


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_a_field_too_many_is_refused(message: Message, wire: str) -> None:
    data = msgspec.msgpack.encode({**fields(message), "value": 123456.789})
    with pytest.raises(BadInput, match=f"not a {type(message).__name__}.*unknown field") as caught:
        from_bytes(data, type(message))
    assert "123456" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_a_field_too_few_is_refused(message: Message, wire: str) -> None:
    plain = fields(message)
    first = next(iter(plain))
    with pytest.raises(BadInput, match="missing required field"):
        from_bytes(msgspec.msgpack.encode({k: v for k, v in plain.items() if k != first}), type(message))


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_a_wrong_type_is_refused_in_every_field(message: Message, wire: str) -> None:
    for name in fields(message):
        with pytest.raises(BadInput, match=f"not a {type(message).__name__}"):
            from_bytes(msgspec.msgpack.encode({**fields(message), name: {"more": 1}}), type(message))


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_torn_or_trailing_bytes_are_refused(message: Message, wire: str) -> None:
    data = bytes.fromhex(wire)
    for broken in (b"", data[:-1], data + b"\x00", b"\xc1", b"plain text"):
        with pytest.raises(BadInput):
            from_bytes(broken, type(message))


def test_a_float_is_no_count_and_text_is_no_letters() -> None:
    with pytest.raises(BadInput):
        from_bytes(msgspec.msgpack.encode({"round": 1, "ones": [0.5]}), Tally)
    with pytest.raises(BadInput):
        from_bytes(msgspec.msgpack.encode({"round": 1, "letters": "01"}), Reports)


def test_a_letter_is_one_whole_number() -> None:
    for letter in (0.5, "1", [1, 2], None, True):
        with pytest.raises(BadInput):
            from_bytes(msgspec.msgpack.encode({"person": 1, "letter": letter}), PersonReport)
    with pytest.raises(BadInput):
        from_bytes(to_bytes(PersonReport(1, 0)) + to_bytes(PersonReport(2, 0)), PersonReport)


def test_points_of_a_person_are_a_table_of_numbers() -> None:
    plain = fields(PersonQuery(7, 1, (2,), ((0.5, -1.0),)))
    for points in ([0.5, -1.0], [[0.5, "x"]], [[[0.5]]], {"0": [0.5]}):
        with pytest.raises(BadInput):
            from_bytes(msgspec.msgpack.encode({**plain, "points": points}), PersonQuery)
    with pytest.raises(BadInput):
        from_bytes(msgspec.msgpack.encode({**plain, "slopes": [1.5]}), PersonQuery)


def test_one_message_is_not_another() -> None:
    with pytest.raises(BadInput):
        from_bytes(to_bytes(PersonReport(3, 1)), PersonQuery)
    with pytest.raises(BadInput):
        from_bytes(to_bytes(Reports(3, b"\x01")), Tally)


def test_messages_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Tally(3, (1,)).round = 4  # type: ignore[misc]
