"""The wire of one round: every message against its literal bytes, and nothing rides along."""

import math
from typing import Any

import msgspec
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol import calibration
from sottovoce.protocol.calibration import CellQuery, CellReport, OrderQuery, OrderReport
from sottovoce.protocol.messages import Message, from_bytes, to_bytes

GOLDEN: dict[str, tuple[Message, str]] = {
    "orders": (OrderQuery((92, 95)), "81a66f7264657273925c5f"),
    "values": (OrderReport((1.5, math.inf)), "81a676616c75657392cb3ff8000000000000cb7ff0000000000000"),
    "cell asked": (
        CellQuery("sparse-vector", 182, 1.0, (0.5, 1.0)),
        "84a96d656368616e69736dad7370617273652d766563746f72a56f72646572ccb6a7657073696c6f6ecb3ff0000000000000"
        "a5656467657392cb3fe0000000000000cb3ff0000000000000",
    ),
    "cell": (CellReport(100), "81a463656c6c64"),
}
every = pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)


def test_every_kind_of_message_is_here() -> None:
    kinds = {kind for kind in vars(calibration).values() if isinstance(kind, type) and issubclass(kind, Message)}
    assert kinds - {Message} == {type(message) for message, _ in GOLDEN.values()}


@every
def test_bytes_are_as_written_down(message: Message, wire: str) -> None:
    assert to_bytes(message).hex() == wire
    assert from_bytes(bytes.fromhex(wire), type(message)) == message


def fields(message: Message) -> dict[str, Any]:
    plain = msgspec.msgpack.decode(to_bytes(message))
    assert isinstance(plain, dict)
    return plain


@every
def test_a_field_too_many_or_too_few_is_refused(message: Message, wire: str) -> None:
    with pytest.raises(BadInput, match="unknown field"):
        from_bytes(msgspec.msgpack.encode({**fields(message), "scores": [123456.789]}), type(message))
    for name in fields(message):
        less = {key: value for key, value in fields(message).items() if key != name}
        with pytest.raises(BadInput, match="missing required field"):
            from_bytes(msgspec.msgpack.encode(less), type(message))


@every
def test_a_wrong_type_is_refused(message: Message, wire: str) -> None:
    for name in fields(message):
        for wrong in (None, b"x", {"a": 1}, 1.5 if name in ("orders", "order", "cell") else True):
            with pytest.raises(BadInput, match=f"not a {type(message).__name__}"):
                from_bytes(msgspec.msgpack.encode({**fields(message), name: wrong}), type(message))


def test_a_report_holds_one_cell_and_no_more() -> None:
    assert [field.name for field in msgspec.structs.fields(CellReport)] == ["cell"]
    assert msgspec.structs.fields(CellReport)[0].type is int
    with pytest.raises(AttributeError):
        CellReport(1).cell = 2  # type: ignore[misc]
