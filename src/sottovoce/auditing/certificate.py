"""The certificate of a study: one canonical JSON text that a program can read, and anybody compute again.

It holds integers, budgets, versions, digests and heads of ledgers; no record, no score, no letter. The text has sorted
keys and no blanks; its last field but for the braces is a digest of all others, so that a slip is seen. That digest is
no signature: whoever is to be sure who wrote it signs the file.
"""

import datetime as dt
import hashlib
import json
import math
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sottovoce.auditing.blackbox import SubjectAudit
from sottovoce.auditing.parts import ChannelPart, ExactCost
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown
from sottovoce.core.version import VERSION
from sottovoce.protocol import wire

FORMAT = 1
LARGEST = 1 << 23  # bytes of a certificate: ten thousand sites take a third of it
LONGEST = 12_000  # bits of a ratio that is written: tables of large sites have longer ones, and epsilon stands for them
MOST_PARTS, MOST_TEXT = 20_000, 1 << 16
SYSTEM, SIMULATED, NOT_RUN = "operating system", "simulated", "not run"
HEX = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}", re.ASCII)


class CertifiedCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part, the two integers of its likelihood ratio as decimal texts (None: unbounded), and its epsilon."""

    part: ChannelPart
    ratio: tuple[str, str] | None
    epsilon: float | None


class CertifiedHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a site's ledger had come, and the digest that it ended in."""

    counter: int
    head: str


class CertifiedAudit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the audit of one client found."""

    client: str
    bound: float
    trials: int
    flags: tuple[str, ...]
    skipped: str = ""


class BlackBox(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The audits of clients, and the confidence at which an honest one passes them all."""

    confidence: float
    clients: tuple[CertifiedAudit, ...]


class CertifiedCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The card of a study as its parties agreed on it: "federation" in hexadecimal digits, "device" as its text."""

    form: str
    text: str
    study: str


class StudyCertificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that is certified; ``stated`` are budgets of which no integers were kept."""

    format: int
    package: str
    protocol: int
    made: str
    asked: dict[str, str]
    randomness: str
    costs: tuple[CertifiedCost, ...]
    stated: dict[str, float]
    card: CertifiedCard | None
    digests: dict[str, str]
    rounds: dict[str, int]
    ledgers: dict[str, CertifiedHead]
    black_box: BlackBox | None
    digest: str = ""


class StudyCosts(NamedTuple):
    """What is known of a study before it is certified."""

    asked: dict[str, str]
    costs: list[ExactCost]
    randomness: str = NOT_RUN
    stated: dict[str, float] = {}  # noqa: RUF012
    card: CertifiedCard | None = None
    digests: dict[str, str] = {}  # noqa: RUF012
    rounds: dict[str, int] = {}  # noqa: RUF012
    ledgers: dict[str, CertifiedHead] = {}  # noqa: RUF012


def certify(study: StudyCosts, audits: list[SubjectAudit] | None, confidence: float) -> StudyCertificate:
    """Return the certificate of a study, with what was found of its clients, if they were audited."""
    clients = None if audits is None else tuple(
        CertifiedAudit(each.name, each.bound, each.trials, each.flags, each.skipped) for each in audits
    )  # fmt: skip
    bare = StudyCertificate(
        FORMAT,
        VERSION,
        wire.VERSION,
        dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        study.asked,
        study.randomness,
        tuple(CertifiedCost(each.part, ratio_text(each.ratio), _finite(each.epsilon)) for each in study.costs),
        study.stated,
        study.card,
        study.digests,
        study.rounds,
        study.ledgers,
        None if clients is None else BlackBox(confidence, clients),
    )
    return msgspec.structs.replace(bare, digest=digest_of(bare))


def text_of(certificate: StudyCertificate) -> str:
    """Return the one text of a certificate."""
    plain = msgspec.to_builtins(certificate)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"


def digest_of(certificate: StudyCertificate) -> str:
    """Return the digest of a certificate without its own."""
    return hashlib.sha256(text_of(msgspec.structs.replace(certificate, digest="")).encode()).hexdigest()


def write(certificate: StudyCertificate, path: str | os.PathLike[str]) -> Path:
    """Write a certificate to a file."""
    target = Path(path).expanduser()
    try:
        target.write_text(text_of(certificate), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{shown(target)} cannot be written ({error.strerror or error}); give another path.") from None
    return target


def read(path: str | os.PathLike[str]) -> StudyCertificate:
    """Read a certificate from a file, or refuse."""
    source = Path(path).expanduser()
    try:
        if not source.is_file() or source.stat().st_size > LARGEST:  # a pipe would be waited for
            raise BadInput(f"{shown(source)} is no file, or larger than {LARGEST:,} bytes; give a certificate.")
        data = source.read_bytes()
    except OSError as error:
        raise BadInput(f"{shown(source)} cannot be read ({error.strerror or error}); give a certificate.") from None
    return parse(data)


def parse(data: bytes) -> StudyCertificate:
    """Read a certificate's bytes, or refuse those that are none, or are not in its one form."""
    try:
        found = msgspec.json.decode(data[: LARGEST + 1], type=StudyCertificate)
        canonical = text_of(found).encode()
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError):
        raise BadInput(
            "this is not a certificate of this package; give what sottovoce audit --certificate wrote."
        ) from None
    if found.format != FORMAT:
        raise BadInput(f"the certificate is of another format than {FORMAT}; use the version that wrote it.")
    if canonical != data:
        raise BadInput("the certificate is not in its one canonical form; give the file as it was written.")
    texts = [
        *found.asked,
        *found.asked.values(),
        *found.stated,
        *found.rounds,
        *found.ledgers,
        found.package,
        found.made,
    ]
    numbers = [*found.stated.values(), *(each.epsilon for each in found.costs if each.epsilon is not None)]
    digests = [found.digest, *found.digests.values(), *(each.head for each in found.ledgers.values())]
    if len(found.costs) > MOST_PARTS or any(len(text) > MOST_TEXT for text in texts):
        raise BadInput("the certificate names more parts, or longer texts, than any study has; ask whoever wrote it.")
    if any(not 0 <= each < math.inf for each in numbers) or not all(map(HEX.fullmatch, digests)):
        raise BadInput("the certificate has a budget that is none, or a digest that is none; ask whoever wrote it.")
    return found


def ratio_text(ratio: Fraction | None) -> tuple[str, str] | None:
    """Return the integers of a ratio as decimal texts, None where it is unbounded or too long to be written."""
    return (
        None
        if ratio is None or ratio.numerator.bit_length() > LONGEST
        else (str(ratio.numerator), str(ratio.denominator))
    )


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def plain(certificate: StudyCertificate) -> dict[str, Any]:
    """Return a certificate as plain values."""
    found: dict[str, Any] = json.loads(text_of(certificate))
    return found
