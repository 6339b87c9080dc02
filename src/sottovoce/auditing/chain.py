"""The chain of a site's ledger, computed again from its export: every head that it has had, by its counter.

An export has digests in place of questions and replies (`sottovoce ledger export`); the chains are over these digests,
so whoever has the export can compute them again, and see whether a head that was certified is one of them.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.client.ledger_audit import first_link, next_head, next_link
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown

LARGEST = 1 << 28  # bytes of an export
BROKEN = "the export of the ledger does not hold together: its chain breaks; export it again from the ledger itself."


class LedgerChain(NamedTuple):
    """The heads of a ledger by counter, the digests of its studies' cards, and what each study costs, in units."""

    heads: dict[int, str]
    cards: dict[str, str]
    units: dict[str, int]


def read_chain(path: str | Path) -> LedgerChain:
    """Read an export, or a ledger itself, and compute its chain again; refuse one that does not hold together."""
    source = Path(path)
    try:
        if not source.is_file() or source.stat().st_size > LARGEST:
            raise BadInput(f"{shown(source)} is no file, or too large for the export of a ledger; give that file.")
        with source.open("rb") as file:
            ledger = file.read(15) == b"SQLite format 3"
        if ledger:
            from sottovoce.api.ledger import export

            return chain_of(map(json.loads, export(source)))
        with source.open(encoding="utf-8") as lines:
            return chain_of(json.loads(line) for line in lines)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{shown(source)} cannot be read ({type(error).__name__}); give the export of a ledger."
        ) from None
    except BadInput:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
        raise BadInput("this is not the export of a ledger; make one with 'sottovoce ledger export'.") from None


def chain_of(lines: Iterable[dict[str, Any]]) -> LedgerChain:
    """Compute the chain of an export's lines."""
    told = iter(lines)
    about = next(told, None)
    if about is None or about["line"] != "ledger":
        raise ValueError("no ledger")
    head = bytes.fromhex(about["begins"])
    chains: dict[bytes, bytes] = {}
    begins: dict[bytes, bytes] = {}
    found = LedgerChain({0: head.hex()}, {}, {})
    for line in told:
        study = bytes.fromhex(line["study"])
        if line["line"] == "study":
            card, secret, rows = (bytes.fromhex(line[name]) for name in ("card", "key", "rows"))
            about_study = int(line["records"]), rows, int(line["units"]), str(line["source"]), int(line["by_id"])
            begins[study] = first_link(study, card, secret, *about_study)
            found.cards[study.hex()], found.units[study.hex()] = card.hex(), int(line["units"])
            continue
        counter, what = int(line["counter"]), str(line["what"])
        if counter != len(found.heads):
            raise BadInput(BROKEN)
        if what == "open":
            chains[study] = begins[study]
        elif what == "reply":
            key, first, count = (int(line[name]) for name in ("key", "first", "count"))
            query, reply = (bytes.fromhex(line[name]) for name in ("query", "reply"))
            chains[study] = next_link(chains[study], study, key, first, count, query, reply)
            if chains[study].hex() != line["chain"]:
                raise BadInput(BROKEN)
        head = next_head(head, counter, study, what, chains[study])
        found.heads[counter] = head.hex()
    if head.hex() != about["head"] or len(found.heads) - 1 != about["counter"]:
        raise BadInput(BROKEN)
    return found
