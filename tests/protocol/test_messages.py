"""The wire: every message against its literal bytes, and nothing rides along."""

import math
from typing import Any

import msgspec
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol import messages
from sottovoce.protocol.messages import (
    CellQuery,
    CellReport,
    CoverageCount,
    CoverageQuery,
    LoopQuery,
    Message,
    OrderQuery,
    OrderReport,
    PeopleQuery,
    PeopleReport,
    PersonQuery,
    PersonReport,
    PilotQuery,
    Query,
    Reports,
    Study,
    SumQuery,
    SumShare,
    Tally,
    WalkQuery,
    from_bytes,
    to_bytes,
)
from sottovoce.protocol.wire import kind_of, seal, unseal

STUDY = b"0123456789abcdef"
GOLDEN: dict[str, tuple[Message, str]] = {
    "study": (
        Study(0.9, 1.0, 0.5),
        "83a3746175cb3feccccccccccccda7657073696c6f6ecb3ff0000000000000aa7265736f6c7574696f6ecb3fe0000000000000",
    ),
    "query": (
        Query(3, (1.5, -2.0), (10, 300), 0.25),
        "85a5726f756e6403a6706f696e747392cb3ff8000000000000cbc000000000000000"
        "a6636f756e7473920acd012ca473746570cb3fd0000000000000a7706572696f647390",
    ),
    "phases asked": (
        Query(3, (1.5, -2.0), (10, 300), 0.0, (0.01, 0.0)),
        "85a5726f756e6403a6706f696e747392cb3ff8000000000000cbc000000000000000"
        "a6636f756e7473920acd012ca473746570cb0000000000000000a7706572696f647392cb3f847ae147ae147bcb0000000000000000",
    ),
    "walk's query": (
        WalkQuery(3, (1.5,), (10,), 0.25),
        "85a5726f756e6403a6706f696e747391cb3ff8000000000000a6636f756e7473910aa473746570cb3fd0000000000000"
        "a7706572696f647390",
    ),
    "reports": (Reports(3, b"\x00\x01\x01"), "82a5726f756e6403a76c657474657273c403000101"),
    "tally": (Tally(3, (10, 12)), "82a5726f756e6403a46f6e6573920a0c"),
    "person's query": (
        PersonQuery(7, 1, (2,), ((0.5, -1.0),)),
        "87a6706572736f6e07a5626c6f636b01a6736c6f7065739102a6706f696e74739192cb3fe0000000000000cbbff00000"
        "00000000a7666163746f727390a47061697290a677697468696e90",
    ),
    "person's report": (PersonReport(7, 70000), "82a6706572736f6e07a66c6574746572ce00011170"),
    "people's query": (
        PeopleQuery(
            3,
            64,
            16,
            bytes(range(16)),
            ((0.5, -1.0),),
            (((1.0, 0.0), (0.0, 2.0)),),
            ((-1.0, 1.0), (-2.0, 2.0)),
            (((0.25, 0.0), (0.0, 1.0)),),
            ((0.5, -1.0, 1.0),),
            (0.0, 0.1, 0.2, 0.3),
        ),
        "8aa5726f756e6403a5666972737440a5636f756e7410a36b6579c410000102030405060708090a0b0c0d0e0fa6706f696e"
        "74739192cb3fe0000000000000cbbff0000000000000a57061697273919292cb3ff0000000000000cb0000000000000000"
        "92cb0000000000000000cb4000000000000000a672616e6765739292cbbff0000000000000cb3ff000000000000092cbc0"
        "00000000000000cb4000000000000000a477617973919292cb3fd0000000000000cb000000000000000092cb0000000000"
        "000000cb3ff0000000000000a573746570739193cb3fe0000000000000cbbff0000000000000cb3ff0000000000000a475"
        "70746f94cb0000000000000000cb3fb999999999999acb3fc999999999999acb3fd3333333333333",
    ),
    "people's report": (PeopleReport(3, (0, 37, 70000)), "82a5726f756e6403a76c657474657273930025ce00011170"),
    "pilot's query": (
        PilotQuery(2, 40, (1.5, -2.0), (10, 300)),
        "84a5726f756e6402a5666972737428a6706f696e747392cb3ff8000000000000cbc000000000000000a6636f756e7473920acd012c",
    ),
    "turn": (
        LoopQuery(4, 40, 300, (b"here", b"")),
        "84a5726f756e6404a5666972737428a5636f756e74cd012ca472756e7392c40468657265c400",
    ),
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
WHOLE = ("orders", "order", "cell", "noise", "sites", "counts", "covered", "round", "first", "count", "letter")


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
    for name in [field.name for field in msgspec.structs.fields(message) if field.required]:
        less = {key: value for key, value in fields(message).items() if key != name}
        with pytest.raises(BadInput, match="missing required field"):
            from_bytes(msgspec.msgpack.encode(less), type(message))


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_a_wrong_type_is_refused_in_every_field(message: Message, wire: str) -> None:
    for name, right in fields(message).items():
        other = 1.5 if isinstance(right, bytes) else b"x"
        for wrong in (None, {"more": 1}, other, 1.5 if name in WHOLE else True):
            with pytest.raises(BadInput, match=f"not a {type(message).__name__}"):
                from_bytes(msgspec.msgpack.encode({**fields(message), name: wrong}), type(message))


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


def test_a_report_holds_one_cell_and_no_more() -> None:
    assert [field.name for field in msgspec.structs.fields(CellReport)] == ["cell"]
    assert msgspec.structs.fields(CellReport)[0].type is int
    with pytest.raises(AttributeError):
        CellReport(1).cell = 2  # type: ignore[misc]


def test_kinds_have_names_of_their_own_on_the_wire() -> None:
    assert list(dict.fromkeys(kind_of(type(message)) for message, _ in GOLDEN.values())) == [
        "study",
        "query",
        "walk-query",
        "reports",
        "tally",
        "person-query",
        "person-report",
        "people-query",
        "people-report",
        "pilot-query",
        "loop-query",
        "order-query",
        "order-report",
        "cell-query",
        "cell-report",
        "sum-query",
        "sum-share",
        "coverage-query",
        "coverage-count",
    ]


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_every_message_travels_in_an_envelope(message: Message, wire: str) -> None:
    round = getattr(message, "round", 1)
    data = seal(STUDY, round, message)
    assert data.hex() == (
        f"85a776657273696f6e01a57374756479c41030313233343536373839616263646566a5726f756e64{round:02x}a46b696e64"
        + msgspec.msgpack.encode(kind_of(type(message))).hex()
        + "a4626f6479"
        + wire
    )
    assert unseal(data, STUDY, [type(message)]).message == message


@pytest.mark.parametrize("letters", [[0.5], ["a"], [None], 3, [[1]]])
def test_letters_are_integers(letters: Any) -> None:
    data = msgspec.msgpack.encode({"round": 3, "letters": letters})
    with pytest.raises(BadInput, match="not a PeopleReport"):
        from_bytes(data, PeopleReport)
