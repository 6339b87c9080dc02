"""What a collector and a device agree on: the card as text, a report as 25 bytes, and budgets compared as integers.

A study's card is canonical JSON, so that a web page can read it and hash it as it came; its identity is 16 bytes of
SHA-256 over that text. The flip weight of the channel stands in it as a decimal text, because numbers in a browser end
at 2^53. A report is all that leaves a device: a random id, where it belongs (round, group, point), and one letter.

    16 bytes study | 25 bytes a report: 16 id, 4 round, 2 group, 2 point, 1 letter, most significant byte first

In a regression the point follows from the id, and point and letter together are one letter of 24 bits.
"""

import hashlib
import json
import math
import re
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.device_regression import RegressionTerms, check_terms
from sottovoce.protocol.exact import within
from sottovoce.protocol.randomised_response import binary, flips_of, with_flips

VERSION = 1
IDENTITY, ID = 16, 16  # bytes
REPORT = np.dtype([("id", "V16"), ("round", ">u4"), ("group", ">u2"), ("point", ">u2"), ("letter", "u1")])
SIZE = REPORT.itemsize
MOST_REPORTS = 10_000  # in one upload
_LATER = ("regression", "tokens")  # words that cards have had since, and without which earlier cards keep their text
Reports = npt.NDArray[np.void]


class DeviceCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The public terms of a study of people's devices.

    ``flips`` is the channel's flip weight as a decimal text; ``nonce`` keeps equal studies apart; with ``tokens`` the
    id of a report must be one that was issued. A regression asks its first people through that channel where the
    responses lie, and the others through its own.

    >>> card = DeviceCard("waits", (0.5,), 1.0, str(flips_of(binary(1.0))), nonce="00")
    >>> read_card(card_text(card)) == card, identity(card_text(card)).hex()
    (True, '60c3bb6564736a13ed662a04b79b29a3')
    """

    name: str
    taus: tuple[float, ...]
    epsilon: float
    flips: str
    resolution: float = 0.0
    bounds: tuple[float, float] | None = None
    groups: tuple[str, ...] = ("all",)
    question: str = ""
    nonce: str = ""
    tokens: bool = False
    version: int = VERSION
    regression: RegressionTerms | None = None

    @property
    def channel(self) -> Channel:
        """Return the channel of the card's integers, whose epsilon is computed from them."""
        return with_flips(int(self.flips))


def card_text(card: DeviceCard) -> str:
    """Return the one text of a card: sorted keys, no blanks; of later words those that say something."""
    whole = msgspec.to_builtins(card)
    for name in _LATER:
        if not whole[name]:
            del whole[name]
    return json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def identity(text: str) -> bytes:
    """Return the 16 bytes that name a study."""
    return hashlib.sha256(text.encode()).digest()[:IDENTITY]


def read_card(text: str) -> DeviceCard:
    """Read a card, or refuse one that is not written as it must be or does not keep to the budget that it states."""
    try:
        card = msgspec.json.decode(text, type=DeviceCard)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadInput("this is not the card of a study; fetch it from the collector again.") from None
    if card.version != VERSION:
        raise BadInput(f"the card is of another version than {VERSION}; use a client of the same version.")
    plain = re.fullmatch(r"[1-9]\d{0,18}", card.flips, re.ASCII) is not None
    numbers = (*card.taus, card.epsilon, card.resolution, *(card.bounds or ()))
    if not (plain and card.taus and all(map(math.isfinite, numbers)) and card.groups and card.resolution >= 0):
        raise BadInput("the card's numbers do not make a study; fetch it from the collector again.")
    if card_text(card) != text:
        raise BadInput("the card is not in its one canonical form; fetch it from the collector again.")
    check_cap(card, card.epsilon)
    return card


def check_cap(card: DeviceCard, cap: float) -> None:
    """Refuse a card whose channel may cost more than a device's own cap; integers are compared, not logarithms.

    >>> check_cap(DeviceCard("waits", (0.5,), 1.0, str(flips_of(binary(1.0)))), 1.0)
    """
    if not cap > 0:
        raise BadInput("a device's cap must be a positive epsilon; give one such as 1.")
    ratios = [] if card.regression is None else check_terms(card.regression, card.taus)
    if int(card.flips) < flips_of(binary(cap)) or not all(within(ratio, cap) for ratio in ratios):
        raise BadInput("the study's channel costs more epsilon than this device allows; nothing was answered.")
    card.channel  # refuses what is no channel  # noqa: B018


def pack(id: bytes, round: int, group: int, point: int, letter: int) -> bytes:
    """Return a report as it leaves the device.

    >>> pack(bytes(16), 3, 0, 1, 1).hex()
    '00000000000000000000000000000000000000030000000101'
    """
    if len(id) != ID:
        raise BadInput("the id of a report has 16 bytes; draw it from the system.")
    return id + round.to_bytes(4, "big") + group.to_bytes(2, "big") + point.to_bytes(2, "big") + bytes([letter])


def unpack(body: bytes, study: bytes) -> Reports:
    """Return the reports of an upload, or refuse bytes that are none of this study; each is checked by the fold.

    >>> unpack(b"s" * 16 + pack(bytes(16), 3, 0, 1, 1), b"s" * 16)["round"].tolist()
    [3]
    """
    count, rest = divmod(len(body) - IDENTITY, SIZE)
    if rest or not 1 <= count <= MOST_REPORTS:
        raise BadInput(f"an upload is 16 bytes of study and 1 to {MOST_REPORTS:,} reports of {SIZE} bytes; send these.")
    if body[:IDENTITY] != study:
        raise BadInput("the upload belongs to another study; send it to where that study is run.")
    return np.frombuffer(body, dtype=REPORT, offset=IDENTITY)


def score(value: float, point: float, period: float = 0.0) -> bool:
    """Tell whether a value lies above a point or, with a period, in the upper half of it.

    Of turns beyond all numbers it says no: an error there would tell whoever chose point and period where the value is.

    >>> score(3.0, 2.5), score(3.0, 2.75, 1.0), score(3.0, 2.5, 5e-324)
    (True, False, False)
    """
    if period == 0:
        return value > point
    turns = (value - point) / period
    return math.isfinite(turns) and turns - math.floor(turns) >= 0.5


def letter_of(value: float, point: float, flips: int, words: tuple[int, int], resolution: float, period: float) -> int:
    """Return the letter of one value: one throw of a die of 2^62 faces, and one of the dither.

    >>> letter_of(3.0, 2.5, 1 << 60, (1 << 63, 0), 0.0, 0.0), letter_of(3.0, 2.5, 1 << 60, (0, 0), 0.0, 0.0)
    (1, 0)
    """
    lowest, die = flips << 2, words[0]
    if resolution > 0:
        value += resolution * ((words[1] >> 11) * 2.0**-53 - 0.5)
    return int((score(value, point, period) and die >= lowest) or die > (1 << 64) - 1 - lowest)


def drawn(needs: Any, word: int) -> int:
    """Return the point that a word of lot falls on, by the answers that each still needs.

    >>> [drawn([2, 0, 1], word) for word in range(3)]
    [0, 0, 2]
    """
    left = word % sum(needs)
    for point, need in enumerate(needs):
        if left < need:
            return point
        left -= need
    raise BadInput("a lottery needs at least one answer to be open.")
