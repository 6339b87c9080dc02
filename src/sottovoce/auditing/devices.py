"""Audits people's devices in Python: the bytes of an upload, of one value or one row, sent and then sent again."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sottovoce.auditing.bound import Transcript, noise_of
from sottovoce.auditing.parts import ExactCost, cost_of, parts_of
from sottovoce.auditing.people import Telling, corner_of, rows_of, told_of
from sottovoce.auditing.subject import AuditSubject, InputPair
from sottovoce.client.device import Device, Value, make_report
from sottovoce.collector.regression_study import device_channel
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.device import IDENTITY, SIZE, DeviceCard, card_text, identity
from sottovoce.protocol.device_regression import RegressionTerms
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel

URL = "https://localhost/v1/studies/"
MakeReport = Callable[[DeviceCard, bytes, dict[str, Any], Value], bytes]
LARGE = 1e6
KEPT = 50  # devices that answer twice, each with a folder on disk


def value_card(channel: Channel, asked: float) -> DeviceCard:
    """Return the card of a study of one value, which the audit makes itself."""
    return DeviceCard("audit of privacy", (0.5,), asked, str(flips_of(channel)), nonce="audit")


def row_card(channel: RegressionChannel, asked: float) -> DeviceCard:
    """Return the card of a regression on a row, which the audit makes itself."""
    names = tuple(f"x{k + 1}" for k in range(channel.p))
    terms = RegressionTerms("y", names, (-1.0,) * channel.p, (1.0,) * channel.p, (device_channel(channel),))
    flips = str(flips_of(binary(asked)))
    return DeviceCard("audit of privacy", channel.taus, asked, flips, nonce="audit", regression=terms)


def value_query(text: str) -> dict[str, Any]:
    """Return what a collector asks in a round, as its answer to a device has it."""
    said = {"study": identity(text).hex(), "round": 3, "group": 0}
    return {**said, "points": [0.0], "periods": [0.0], "needs": [9], "over": False}


def row_query(text: str, channel: RegressionChannel) -> dict[str, Any]:
    """Return what a collector asks of rows: all at one point."""
    levels, d = len(channel.taus), channel.p + 1
    asked = {
        "point": [[0.0] * d] * levels,
        "pairs": [],
        "ranges": [],
        "ways": [],
        "steps": [],
        "upto": [0.0],
    }
    return {"study": identity(text).hex(), "round": 3, "group": 0, "channels": [asked], "needs": [9], "over": False}


def value_device(
    channel: Channel, asked: float, report: MakeReport | None = None, device: type[Device] = Device
) -> AuditSubject:
    """Return the audit of Python devices with one value each."""
    text = card_text(card := value_card(channel, asked))
    flip = channel.weights[0][1] / channel.total
    pair = InputPair("one value below and above the point", ((1 - flip, flip), (flip, 1 - flip)))
    [part] = parts_of(channel, asked)
    values: tuple[Value, Value] = (-LARGE, LARGE)
    return _subject("Python device, one value", cost_of(part), card, value_query(text), values, pair,
                    letter_of_upload, report, device)  # fmt: skip


def row_device(
    channel: RegressionChannel, asked: float, report: MakeReport | None = None, device: type[Device] = Device
) -> AuditSubject:
    """Return the audit of Python devices with one row each; the channel has one block."""
    told, values, cost = row_told(channel, asked)
    card = row_card(channel, asked)
    pair = InputPair("two rows far apart", told.laws)
    return _subject("Python device, one row", cost, card, row_query(card_text(card), channel), values, pair,
                    lambda said: told.read(letter_of_upload(said)), report, device)  # fmt: skip


def row_told(channel: RegressionChannel, asked: float) -> tuple[Telling, tuple[Value, Value], ExactCost]:
    """Return what letters tell, the two rows, and the cost of a regression channel of one block."""
    [block] = channel.blocks
    assert isinstance(block.channel, BoxChannel | Channel)
    rows = rows_of(block.channel)
    told = told_of(block.channel, [corner_of(block.channel, row, channel) for row in rows])
    values = [
        {"y": -LARGE if row.below else LARGE} | {f"x{k + 1}": row.covariate for k in range(channel.p)} for row in rows
    ]
    [part] = parts_of(block.channel, asked)
    return told, (values[0], values[1]), cost_of(part)


def letter_of_upload(said: Transcript) -> int:
    """Return the letter of an upload, which point and letter are together; -1 where it is no upload."""
    body = said[0]
    return int.from_bytes(body[-3:], "big") if len(body) == IDENTITY + SIZE else -1


def _subject(
    name: str,
    cost: ExactCost,
    card: DeviceCard,
    query: dict[str, Any],
    values: tuple[Value, Value],
    pair: InputPair,
    read: Callable[[Transcript], int],
    report: MakeReport | None,
    device: type[Device],
) -> AuditSubject:
    """Return the audit of an upload, and of a device that is asked to answer twice."""
    text, making = card_text(card), report or make_report
    study = identity(text)

    def fetch(url: str, body: bytes | None = None) -> bytes:
        if body is not None:
            return b'{"accepted": 1}'
        return text.encode() if url.endswith("/card") else json.dumps(query).encode()

    def sample(number: int, side: int, trials: int) -> list[Transcript]:
        if number == 0:
            return [(making(card, study, query, values[side]),) for _ in range(trials)]
        found = []
        with tempfile.TemporaryDirectory() as folder:
            for k in range(min(trials, KEPT)):
                own = device(Path(folder) / str(k), card.epsilon, fetch=fetch)
                found.append(tuple(own.answer(URL + study.hex(), values[side]).body for _ in range(2)))
        return found

    assert pair.laws is not None
    again = InputPair("the same, asked to answer twice", pair.laws)
    return AuditSubject(name, cost, (pair, again), sample, read, noise_of(pair.laws))
