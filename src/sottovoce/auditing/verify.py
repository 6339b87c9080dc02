"""Verifies a certificate: all that can be computed again is, and what cannot be is said.

A certificate is hostile until checked: its size, its integers and the time that they take are bounded before anything
is computed.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.auditing.certificate import CertifiedCost, StudyCertificate, digest_of, ratio_text, read
from sottovoce.auditing.chain import read_chain
from sottovoce.auditing.parts import FORMS, ChannelPart, ExactCost, TooLong, cost_of
from sottovoce.auditing.sources import of_device_card, parts_of_card, rounds_digest
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted
from sottovoce.core.version import VERSION
from sottovoce.protocol import card as cards
from sottovoce.protocol import wire
from sottovoce.protocol.device import identity, read_card

MOST_TABLES = 16  # exponential mechanisms that are computed: each takes up to a second, and a study has one or two
MOST_WEIGHTS = 1_000_000  # of all parts together
FEW = 3  # mismatches of one kind that are told one by one


class Verification(NamedTuple):
    """What was verified of a certificate, what could not be, and what is wrong with it, a sentence each."""

    verified: tuple[str, ...]
    unverified: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Tell whether nothing was found to be wrong."""
        return not self.wrong

    def __repr__(self) -> str:
        about = f"{len(self.verified)} verified, {len(self.unverified)} not, {len(self.wrong)} wrong"
        return f"<Certificate {'holds' if self.holds else 'does not hold'}: {about}>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"holds": self.holds, **{name: list(getattr(self, name)) for name in self._fields}}

    def summary(self) -> str:
        """Return a sentence a line."""
        said = [*(f"wrong:        {each}" for each in self.wrong), *(f"verified:     {each}" for each in self.verified)]
        return "\n".join([*said, *(f"not verified: {each}" for each in self.unverified)])


def verify(path: str | Path, ledgers: Sequence[str] = (), log: str | None = None) -> Verification:
    """Verify the certificate of a file, with exports of ledgers and a collector's log where they are at hand."""
    certificate = read(path)
    found: dict[str, list[str]] = {"verified": [], "unverified": [], "wrong": []}
    steps = (_own_digest(certificate), _costs(certificate), _card(certificate), _heads(certificate, ledgers))
    for step in (*steps, _rounds(certificate, log), _rest(certificate)):
        for what, said in step:
            found[what].append(said)
    return Verification(tuple(found["verified"]), tuple(found["unverified"]), tuple(found["wrong"]))


Told = Iterator[tuple[str, str]]


def _own_digest(certificate: StudyCertificate) -> Told:
    """Compare the digest of the certificate itself."""
    if digest_of(certificate) == certificate.digest:
        yield "verified", "the certificate is as it was written: its digest is that of its fields."
    else:
        yield "wrong", "the digest of the certificate is not that of its fields; it was changed after it was written."


def _costs(certificate: StudyCertificate) -> Told:
    """Compute every epsilon again from its integers."""
    _check_size(certificate.costs)
    known: dict[ChannelPart, ExactCost] = {}
    wrong, dear, unasked, long = list[str](), list[str](), list[str](), 0
    for each in certificate.costs:
        bare = ChannelPart("", each.part.form, each.part.shape, each.part.weights, each.part.asked)
        try:
            cost = known[bare] if bare in known else known.setdefault(bare, cost_of(bare))
        except TooLong:
            long += 1
            continue
        role, finite = quoted(each.part.role), None if cost.ratio is None else cost.epsilon
        if (each.ratio, each.epsilon) != (ratio_text(cost.ratio), finite):
            wrong.append(f"the integers of {role} cost epsilon {cost.epsilon:.10g}, which is not what is certified.")
        elif not cost.kept:
            dear.append(f"the integers of {role} cost more than the budget that was asked.")
        elif cost.ratio is None:
            unasked.append(role)
    yield from (("wrong", text) for text in _few([*wrong, *dear]))
    checked = len(certificate.costs) - len(wrong) - len(dear) - long - len(unasked)
    if checked:
        yield "verified", f"epsilon follows from the integers, and keeps to what was asked, in {checked:,} parts."
    if unasked:
        yield "verified", f"{len(unasked):,} parts have no finite epsilon, and say so."
    if long:
        yield "unverified", f"{long:,} parts have tables or weights too long to be computed here."
    if certificate.stated:
        yield (
            "unverified",
            f"{len(certificate.stated):,} budgets are stated, and no integers were kept to compute them from.",
        )


def _check_size(costs: Sequence[CertifiedCost]) -> None:
    """Refuse more than any study has, before anything is computed."""
    distinct = {(each.part.form, each.part.shape, each.part.weights) for each in costs}
    if any(form not in FORMS for form, _, _ in distinct):
        raise BadInput(
            "the certificate names a form of mechanism that this version does not know; use its own version."
        )
    if sum(sum(map(len, weights)) for _, _, weights in distinct) > MOST_WEIGHTS:
        raise BadInput(f"the certificate has more than {MOST_WEIGHTS:,} different weights; ask whoever wrote it.")
    if sum(form in ("exponential", "paper") for form, _, _ in distinct) > MOST_TABLES:
        raise BadInput(
            f"the certificate has more than {MOST_TABLES} different exponential mechanisms, too many to compute; "
            "verify it where it was written."
        )


def _card(certificate: StudyCertificate) -> Told:
    """Compare the card with the study that it names and with the certified parts."""
    card = certificate.card
    if card is None:
        yield "unverified", "no card of a study is certified, so the parts stand for themselves."
        return
    try:
        study, parts = _parts(card.form, card.text)
    except (BadInput, ValueError):
        yield "wrong", "the card of the certificate is not one that this version reads."
        return
    if study != card.study:
        yield "wrong", "the card is that of another study than the certificate names."
        return
    yield "verified", f"the study {study} is named by the digest of its card."
    certified = [each.part for each in certificate.costs]
    if parts is None:
        yield (
            "unverified",
            "the card of a selection has no integers: they follow from its sizes, and were not planned again.",
        )
    elif parts != certified:
        yield "wrong", "the certified integers are not those of the card."
    else:
        yield "verified", "the certified integers are those of the card that all parties agreed on."


def _parts(form: str, text: str) -> tuple[str, list[ChannelPart] | None]:
    """Return the study that a card names and its parts, None where they follow from a plan."""
    if form == "device":
        found = of_device_card(read_card(text), text)
        return identity(text).hex(), [each.part for each in found.costs]
    if form != "federation":
        raise ValueError("no form of a card")
    card = cards.from_bytes(bytes.fromhex(text))
    planned = card.method == "conformal" and card.terms.get("mechanism") not in (None, "local")
    return cards.identity(card).hex(), None if planned else parts_of_card(card)


def _heads(certificate: StudyCertificate, paths: Sequence[str]) -> Told:
    """Compare the heads of ledgers with the chains of their exports."""
    left = dict(certificate.ledgers)
    for path in paths:
        chain = read_chain(path)
        matched = [site for site, each in left.items() if chain.heads.get(each.counter) == each.head]
        if not matched:
            yield "wrong", f"the ledger {quoted(Path(path).name)} never had a head that is certified."
        for site in matched:
            counter = left.pop(site).counter
            yield "verified", f"the ledger of {quoted(site)} had the certified head after {counter:,} transactions."
            yield from _enrolled(certificate, site, chain.cards)
    if left:
        sites = ", ".join(map(quoted, list(left)[:FEW])) + (f" and {len(left) - FEW:,} more" if len(left) > FEW else "")
        yield "unverified", f"the heads of the ledgers of {sites}: no export of them was given."


def _enrolled(certificate: StudyCertificate, site: str, known: dict[str, str]) -> Told:
    """Compare the card that a ledger has kept with the certified one."""
    card = certificate.card
    if card is None or card.form != "federation":
        return
    digest = hashlib.sha256(bytes.fromhex(card.text)).hexdigest()
    if known.get(card.study) == digest:
        yield "verified", f"the ledger of {quoted(site)} has kept this study, by the same card."
    else:
        yield "wrong", f"the ledger of {quoted(site)} has not kept this study, or by another card."


def _rounds(certificate: StudyCertificate, log: str | None) -> Told:
    """Compare the digest of a collector's rounds with its log."""
    if "rounds" not in certificate.digests:
        if log is not None:
            yield "unverified", "the certificate is not of a collector, so its log was not looked at."
        return
    if log is None:
        yield "unverified", "what the collector's rounds came to: its log was not given."
        return
    from contextlib import closing

    from sottovoce.collector.store import CollectorStore

    with closing(CollectorStore(log, existing=True)) as held:
        kept, rounds = (
            held.known(certificate.asked.get("question", "")),
            held.rounds(certificate.asked.get("question", "")),
        )
    if kept is None or certificate.card is None or kept.card != certificate.card.text:
        yield "wrong", "the log does not hold this study, or by another card."
    elif rounds_digest(rounds, certificate.rounds) != certificate.digests["rounds"]:
        yield "wrong", "what the log's rounds came to is not what is certified."
    else:
        number = sum(certificate.rounds.values())
        yield "verified", f"{number:,} rounds of the collector came to what is certified."


def _rest(certificate: StudyCertificate) -> Told:
    """Say what nobody can compute again from a certificate."""
    if (certificate.package, certificate.protocol) == (VERSION, wire.VERSION):
        yield "verified", f"package {VERSION} and protocol {wire.VERSION} are those of this program."
    else:
        yield "unverified", "it was written by another version of the package or the protocol."
    if "result" in certificate.digests or "replies" in certificate.digests:
        yield "unverified", "the digest of what was kept: compare it where the result or the coordinator's log is."
    if certificate.randomness != "not run":
        yield (
            "unverified",
            f"that the noise came from the {certificate.randomness}: the machine that drew it is to be trusted.",
        )
    if certificate.black_box is not None:
        flagged = sum(bool(each.flags) for each in certificate.black_box.clients)
        yield (
            "unverified",
            (
                f"the audit of {len(certificate.black_box.clients)} clients, {flagged} of them flagged: it can be "
                "repeated with 'sottovoce audit', and no figure of it be computed."
            ),
        )


def _few(texts: list[str]) -> list[str]:
    """Tell the first of many."""
    return texts if len(texts) <= FEW else [*texts[:FEW], f"and {len(texts) - FEW:,} more like these."]
