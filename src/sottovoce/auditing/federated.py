"""Audits a resident site of a federation: the bytes of its replies, frame, envelope and ledger's head included."""

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from sottovoce.auditing.bound import Transcript, noise_of
from sottovoce.auditing.parts import cost_of, parts_of
from sottovoce.auditing.subject import AuditSubject, InputPair
from sottovoce.client.reading.spool import rows_digest
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.federation import words
from sottovoce.federation.site.policy import policy_of
from sottovoce.federation.site.resident import Holding, Resident
from sottovoce.protocol import card as cards
from sottovoce.protocol import wire
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.messages import Query, Tally
from sottovoce.protocol.randomised_response import flips_of

NAME, RUNS = "audited", 4  # the site that the audit opens, so often for each input
OpenResident = Callable[[Holding, Path, float], Resident]


def honest_resident(holding: Holding, ledger: Path, asked: float) -> Resident:
    """Open a resident site as its program does, with the system's entropy and a ledger on disk."""
    limits = {"epsilon": asked, "total": asked}
    policy = policy_of({"name": NAME, "source": "audit", "records": {"value": "x"}, "limits": limits})
    return Resident(policy, holding, SiteLedger(ledger))


def resident_site(channel: Channel, asked: float, resident: OpenResident = honest_resident) -> AuditSubject:
    """Return the audit of a resident site, whose records all answer one round each and are asked again."""
    [part] = parts_of(channel, asked)
    flip = channel.weights[0][1] / channel.total
    laws = (1 - flip, flip), (flip, 1 - flip)

    def sample(_: int, side: int, trials: int) -> list[Transcript]:
        found: list[Transcript] = []
        with tempfile.TemporaryDirectory() as folder:
            for run in range(RUNS):
                count = trials // RUNS + (run < trials % RUNS)
                records = Records(np.full(count, (-1.0, 1.0)[side]))
                # the audit's own: a digest of values that it chose tells nothing of anybody
                holding = Holding(records, rows_digest(Records(np.zeros(count))), None, "x")
                site = resident(holding, Path(folder) / f"{side}-{run}", asked)
                with closing(_Shut(site)):
                    found += _rounds(site, channel, asked, count)
        return found

    pair = InputPair("one record below and above the point", laws)
    return AuditSubject("federation site, one bit", cost_of(part), (pair,), sample, _letter, noise_of(laws))


class _Shut:
    """Closes the ledger of a site."""

    def __init__(self, site: Resident) -> None:
        self._site = site

    def close(self) -> None:
        self._site.ledger.shut()


def _rounds(site: Resident, channel: Channel, asked: float, count: int) -> list[Transcript]:
    """Ask every record once, in a round of its own, and once more; return all bytes of the replies."""
    terms = {
        "sites": [NAME],
        "taus": [0.5],
        "budgets": [asked],
        "flips": [flips_of(channel)],
        "sizes": [count],
        "unit": "number",
        "resolution": 0.0,
    }
    card = cards.Card("quantile", terms, "audit of privacy")
    study = cards.identity(card)
    site.handle(words.encode(words.Invite(cards.to_bytes(card))))
    found: list[Transcript] = []
    for round in range(1, count + 1):
        order = words.encode(words.Question(study, wire.seal(study, round, Query(round, (0.0,), (1,)))))
        found.append((site.handle(order), site.handle(order)))
    return found


def _letter(said: Transcript) -> int:
    """Return the letter of a reply, -1 where it is none."""
    try:
        reply = words.reply_of(said[0])
        if not isinstance(reply, words.Answered):
            return -1
        message = wire.unseal(reply.envelope, reply.study, [Tally]).message
        return message.ones[0] if isinstance(message, Tally) else -1
    except (ValueError, IndexError):
        return -1
