"""The wire of one round: every message against its literal bytes, and nothing rides along."""

import math
from typing import Any

import msgspec
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol import calibration
from sottovoce.protocol.calibration import (
    CellQuery,
    CellReport,
    CoverageCount,
    CoverageQuery,
    OrderQuery,
    OrderReport,
    SumQuery,
    SumShare,
)
from sottovoce.protocol.messages import Message, from_bytes, to_bytes
from sottovoce.protocol.wire import kind_of, seal, unseal

GOLDEN: dict[str, tuple[Message, str]] = {
    "orders": (OrderQuery((92, 95)), "81a66f7264657273925c5f"),
    "values": (OrderReport((1.5, math.inf)), "81a676616c75657392cb3ff8000000000000cb7ff0000000000000"),
    "cell asked": (
        CellQuery("sparse-vector", 182, 1.0, (0.5, 1.0)),
        "84a96d656368616e69736dad7370617273652d766563746f72a56f72646572ccb6a7657073696c6f6ecb3ff0000000000000"
        "a5656467657392cb3fe0000000000000cb3ff0000000000000",
    ),
    "cell": (CellReport(100), "81a463656c6c64"),
    "share asked": (
        SumQuery((0.5, 1.0), 2**63, 12),
        "83a5656467657392cb3fe0000000000000cb3ff0000000000000a56e6f697365cf8000000000000000a573697465730c",
    ),
    "share": (SumShare((7, 2**32 - 1)), "81a6636f756e74739207ceffffffff"),
    "count asked": (
        CoverageQuery(1.5, 2**63),
        "83a97468726573686f6c64cb3ff8000000000000a56e6f697365cf8000000000000000a66f726465727390",
    ),
    "count and quantile asked": (
        CoverageQuery(1.5, 0, (92,)),
        "83a97468726573686f6c64cb3ff8000000000000a56e6f69736500a66f7264657273915c",
    ),
    "count": (CoverageCount(-3), "82a7636f7665726564fda676616c75657390"),
    "count and quantile": (CoverageCount(91, (1.5,)), "82a7636f76657265645ba676616c75657391cb3ff8000000000000"),
}
WHOLE = ("orders", "order", "cell", "noise", "sites", "counts", "covered")
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
    for name in [field.name for field in msgspec.structs.fields(message) if field.required]:
        less = {key: value for key, value in fields(message).items() if key != name}
        with pytest.raises(BadInput, match="missing required field"):
            from_bytes(msgspec.msgpack.encode(less), type(message))


@every
def test_a_wrong_type_is_refused(message: Message, wire: str) -> None:
    for name in fields(message):
        for wrong in (None, b"x", {"a": 1}, 1.5 if name in WHOLE else True):
            with pytest.raises(BadInput, match=f"not a {type(message).__name__}"):
                from_bytes(msgspec.msgpack.encode({**fields(message), name: wrong}), type(message))


def test_a_report_holds_one_cell_and_no_more() -> None:
    assert [field.name for field in msgspec.structs.fields(CellReport)] == ["cell"]
    assert msgspec.structs.fields(CellReport)[0].type is int
    with pytest.raises(AttributeError):
        CellReport(1).cell = 2  # type: ignore[misc]


def test_kinds_have_names_of_their_own_on_the_wire() -> None:
    assert [kind_of(type(message)) for message, _ in GOLDEN.values()] == [
        "order-query",
        "order-report",
        "cell-query",
        "cell-report",
        "sum-query",
        "sum-share",
        "coverage-query",
        "coverage-query",
        "coverage-count",
        "coverage-count",
    ]


@every
def test_every_message_travels_in_an_envelope(message: Message, wire: str) -> None:
    data = seal(b"0123456789abcdef", 1, message)
    assert data.hex() == (
        "85a776657273696f6e01a57374756479c41030313233343536373839616263646566a5726f756e6401a46b696e64"
        + msgspec.msgpack.encode(kind_of(type(message))).hex()
        + "a4626f6479"
        + wire
    )
    assert unseal(data, b"0123456789abcdef", [type(message)], 1).message == message
