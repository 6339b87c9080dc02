"""The messages of an open site against their literal bytes, and the records that a rank interval needs."""

import math

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol import summaries
from sottovoce.protocol.messages import Message, from_bytes, to_bytes
from sottovoce.protocol.summaries import SummaryQuery, SummaryReport, records_needed
from sottovoce.protocol.wire import kind_of

GOLDEN: dict[str, tuple[Message, str]] = {
    "summary-query": (
        SummaryQuery(1, 0.5, 0.95),
        "83a5726f756e6401a3746175cb3fe0000000000000a56c6576656ccb3fee666666666666",
    ),
    "summary-report": (
        SummaryReport(1, 400, 2.5, 0.25, 19.5, 2.0, math.inf, True),
        "88a5726f756e6401a16ecd0190a8657374696d617465cb4004000000000000a97374645f6572726f72cb3fd0000000000000"
        "a26466cb4033800000000000a36c6f77cb4000000000000000a468696768cb7ff0000000000000a474696564c3",
    ),
}


def test_every_kind_of_message_is_here() -> None:
    kinds = {kind for kind in vars(summaries).values() if isinstance(kind, type) and issubclass(kind, Message)}
    assert kinds - {Message} == {type(message) for message, _ in GOLDEN.values()}


@pytest.mark.parametrize("kind", GOLDEN)
def test_bytes_are_as_written_down(kind: str) -> None:
    message, wire = GOLDEN[kind]
    assert kind_of(type(message)) == kind
    assert to_bytes(message).hex() == wire
    assert from_bytes(bytes.fromhex(wire), type(message)) == message


@pytest.mark.parametrize("kind", GOLDEN)
def test_nothing_rides_along(kind: str) -> None:
    message, wire = GOLDEN[kind]
    first = int(wire[:2], 16)
    with pytest.raises(BadInput, match="unknown field"):
        from_bytes(bytes.fromhex(f"{first + 1:02x}{wire[2:]}a17801"), type(message))


def test_records_needed_have_two_ends() -> None:
    for tau in (0.05, 0.5, 0.9):
        n = records_needed(tau, 0.9)
        tail = min(tau, 1 - tau)
        assert (1 - tail) ** n <= 0.05 * (1 + 1e-9) < (1 - tail) ** (n - 1)
