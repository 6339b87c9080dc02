"""A person's device: it checks a study's card against its own cap, answers once, keeps the report, and then sends it.

The report is written to the device's folder before a byte of it is sent, so a device that is interrupted sends the same
bytes again: a second throw of the die would cost a second epsilon.
"""

import json
import math
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from sottovoce.client.kept_answers import KeptAnswers
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import ID, DeviceCard, check_cap, drawn, identity, letter_of, pack, read_card
from sottovoce.protocol.device_regression import (
    Asked,
    RegressionTerms,
    channel_of_word,
    is_design,
    row_letter,
    word_of,
)

LARGEST = 1 << 20  # bytes of an answer of the collector
STUDIES, GROUP = "/v1/studies/", slice(36, 38)  # of addresses; of the bytes of an upload
WAITS = 60  # times that a device asks again while a round waits


class DeviceAnswer(NamedTuple):
    """What became of a device's report: its bytes, whether they are kept, and why not."""

    body: bytes
    accepted: bool
    why: str = ""

    def __repr__(self) -> str:
        return f"DeviceAnswer(accepted={self.accepted})"  # the letter belongs in the report alone


Fetch = Callable[..., bytes]  # of an address, and of a body where one is sent
Value = float | Mapping[str, float]  # of a regression a row, by the names of its columns


def make_report(
    card: DeviceCard, study: bytes, query: dict[str, Any], value: Value, token: bytes | None = None
) -> bytes:
    """Return the upload of one value: the study, and one report with one letter; its id is random, or the token."""
    if card.tokens != (token is not None) or (token is not None and len(token) != ID):
        raise BadInput("a study with tokens needs one of 16 bytes, and another study none; nothing was answered.")
    if card.regression is not None:
        if not isinstance(value, Mapping):
            raise BadInput("a regression is answered with a row, a number for each column; nothing was sent.")
        row = _row(card.regression, value)
        if "channels" in query:
            return _regression_report(card, card.regression, study, query, row, token)
        value = row[0]
    points, periods, needs, round, group = _checked(card, study, query)
    if isinstance(value, Mapping) or not _finite(value):
        raise BadInput("a device answers with one finite number; nothing was sent.")
    entropy = SystemEntropy()
    lot, die, dither = (int(word) for word in entropy.words(3))
    point = drawn(needs, lot)
    letter = letter_of(float(value), points[point], int(card.flips), (die, dither), card.resolution, periods[point])
    return study + pack(token or entropy.words(2).tobytes(), round, group, point, letter)


def _finite(value: object) -> bool:
    """Tell whether a value is a number that a double can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _row(terms: RegressionTerms, value: Mapping[str, float]) -> list[float]:
    """Return the response and the covariates of a row, or refuse."""
    names = (terms.response, *terms.columns)
    if set(value) != set(names) or not all(map(_finite, value.values())):
        raise BadInput("a row has one finite number for each column of the card and no other; nothing was sent.")
    return [float(value[name]) for name in names]


def _regression_report(
    card: DeviceCard,
    terms: RegressionTerms,
    study: bytes,
    query: dict[str, Any],
    row: list[float],
    token: bytes | None,
) -> bytes:
    """Return the upload of one row: the id first, of which the question follows, then the letter."""
    asked, round, group = _checked_regression(card, terms, study, query)
    entropy = SystemEntropy()
    id = token or entropy.words(2).tobytes()
    word = word_of(card.nonce, round, id)
    channel = channel_of_word(word, len(terms.channels))
    dice = [int(each) for each in entropy.words(terms.widest + 1)]
    letter = row_letter(terms.channels[channel], asked[channel], terms.scaled(row[1:]), row[0], word, dice)
    return study + pack(id, round, group, letter >> 8, letter & 255)


def _checked_regression(
    card: DeviceCard, terms: RegressionTerms, study: bytes, query: dict[str, Any]
) -> tuple[list[Asked], int, int]:
    """Return under what each channel asks, or refuse what is not a query of this study."""
    try:
        asked = [msgspec.convert(each, Asked) for each in query["channels"]]
        round, group, d = query["round"], query["group"], len(terms.columns) + 1
        fits = query["study"] == study.hex() and len(asked) == len(terms.channels)
        for each, channel in zip(asked, terms.channels, strict=True):
            fits = fits and is_design(each, len(channel.taus), d)
        fits = fits and type(round) is int and 1 <= round < 1 << 32 and type(group) is int
        fits = fits and 0 <= group < len(card.groups)
    except (KeyError, TypeError, ValueError, OverflowError, msgspec.ValidationError):
        fits = False
    if not fits:
        raise BadInput("the collector's query does not fit its study; nothing was answered.")
    return asked, round, group


class Device:
    """A device with a folder of its own, a cap on what one report may cost, and one on the ``total`` of all studies.

    Whoever runs a collector can begin as many studies as they like: without ``total`` each of them gets a letter.
    ``fetch`` carries bytes to an address and back (None: HTTP).
    """

    def __init__(
        self, folder: str | os.PathLike[str], cap: float, total: float | None = None, *, fetch: Fetch | None = None
    ) -> None:
        self._kept, self._cap, self._total = KeptAnswers(folder), cap, total
        self._fetch = _fetched if fetch is None else fetch

    def answer(self, url: str, value: Value, group: str | None = None, token: bytes | None = None) -> DeviceAnswer:
        """Answer a study, once: a second call sends the same bytes. A regression is answered with a row.

        ``url`` is the study's, https://host/v1/studies/..., or the collector's, where it runs a single open study. The
        card must be the one that the address names, so that whoever runs the collector cannot put another in its place.
        """
        where, study_url = self._addresses(url)
        text = self._fetch(f"{study_url}/card").decode("utf-8", "replace")
        card = read_card(text)
        check_cap(card, self._cap)
        study = identity(text)
        if study_url.rpartition("/")[2] != study.hex():
            raise BadInput("the card is not that of the study which the address names; nothing was answered.")
        body = self._kept.report(study)
        if body is None:
            query = self._asked(study_url, card.groups[0] if group is None else group)
            body = self._kept.keep(study, text, lambda: make_report(card, study, query, value, token), self._total)
        return _told(body, _json(self._fetch(f"{where}/v1/reports?{_named(card, body)}", body)))

    def _asked(self, url: str, group: str) -> dict[str, Any]:
        """Return what is asked now; wait while a round closes."""
        where = f"{url}/query?{urllib.parse.urlencode({'group': group})}"
        for _ in range(WAITS):
            query: dict[str, Any] = _json(self._fetch(where))
            if "needs" in query:
                return query
            if query.get("over"):
                raise BadInput("the study is over; nothing was answered.")
            time.sleep(0.2)
        raise BadInput("the collector asks nobody now; try again later, nothing was answered.")

    def _addresses(self, url: str) -> tuple[str, str]:
        """Return the addresses of the collector and of the study."""
        where, mark, study = url.rstrip("/").partition(STUDIES)
        if mark:
            return where, f"{where}{mark}{study}"
        open_ = [each for each in _json(self._fetch(f"{where}/v1/studies"), list) if not each.get("over", True)]
        if len(open_) != 1:
            raise BadInput("the collector does not run a single open study; give the address of the study itself.")
        return where, f"{where}{STUDIES}{open_[0].get('study')}"


def _checked(
    card: DeviceCard, study: bytes, query: dict[str, Any]
) -> tuple[list[float], list[float], list[int], int, int]:
    """Return what a query asks, or refuse what is not one of this study."""
    try:
        points, periods, needs = ([*map(kind, query[name])] for name, kind in ASKED)
        round, group = query["round"], query["group"]
        fits = (
            query["study"] == study.hex()
            and len(points) == len(periods) == len(needs) <= 1 << 16
            and all(map(math.isfinite, (*points, *periods)))
            and all(0 <= need < 1 << 40 for need in needs)
            and sum(needs) > 0
            and min(periods) >= 0
            and type(round) is int
            and 1 <= round < 1 << 32
            and type(group) is int
            and 0 <= group < min(len(card.groups), 1 << 16)
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise BadInput("the collector's query does not fit its study; nothing was answered.")
    return points, periods, needs, round, group


def _number(value: Any) -> float:
    """Return a number of a query, or refuse; a truth is none."""
    if type(value) not in (int, float):
        raise TypeError("no number")
    return float(value)


def _count(value: Any) -> int:
    """Return a whole number of a query, or refuse."""
    if type(value) is not int:
        raise TypeError("no count")
    return value


ASKED: tuple[tuple[str, Callable[[Any], Any]], ...] = (("points", _number), ("periods", _number), ("needs", _count))


def _named(card: DeviceCard, body: bytes) -> str:
    """Return the name of an upload's group as an address says it: by it a proxy can find the group's host."""
    group = int.from_bytes(body[GROUP], "big")
    return urllib.parse.urlencode({"group": card.groups[group] if group < len(card.groups) else ""})


def _told(body: bytes, told: dict[str, Any]) -> DeviceAnswer:
    """Return what the collector says became of a report."""
    match told:
        case {"accepted": 1}:
            return DeviceAnswer(body, True)
        case {"refused": [[_, str(why)]]}:
            return DeviceAnswer(body, False, why)
    raise BadInput("the collector does not say what became of the report; the same report can be sent again.")


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: a collector could send a device to any address, and from https to http."""

    def redirect_request(self, *_: Any) -> None:
        """Go nowhere."""


_OPENER = urllib.request.build_opener(_Straight)


def _fetched(url: str, body: bytes | None = None) -> bytes:
    """Return what the collector answers, up to a size."""
    if not url.startswith(("http://", "https://")):
        raise BadInput("the collector's address must begin with https:// or http://; correct it.")
    request = urllib.request.Request(url, data=body, headers={"content-type": "application/octet-stream"})
    try:
        with _OPENER.open(request, timeout=30) as answer:
            data: bytes = answer.read(LARGEST + 1)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise BadInput(f"the collector refused with status {error.code}; the same report can be sent again.") from None
    except (OSError, ValueError):
        raise BadInput("the collector cannot be reached; the same report can be sent again later.") from None
    if len(data) > LARGEST:
        raise BadInput("the collector's answer is too large; nothing of it was used.")
    return data


def _json(data: bytes, kind: type = dict) -> Any:
    """Read an object, or a list of objects, or refuse."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    parts = found if isinstance(found, list) else []
    if not isinstance(found, kind) or not all(isinstance(each, dict) for each in parts):
        raise BadInput("the collector's answer is not what it should be; nothing of it was used.")
    return found
