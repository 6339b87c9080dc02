"""A site's durable ledger, looked at from outside: what it says, whether it is whole, and an export for an auditor.

A ledger may be looked at while its site holds it; what is read is one moment of it. No id, point or reply is shown.
"""

import json
import math
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sottovoce.client.ledger_audit import faults, lines, table
from sottovoce.client.ledger_file import open_for_reading, read_head, sentences
from sottovoce.core.errors import BadInput


def show(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return studies, costs by source, how many ids there are and their dearest cost, and heads."""
    ledger = Path(path)
    with sentences(ledger), closing(open_for_reading(ledger)) as file:
        return table(file)


def verify(path: str | os.PathLike[str]) -> list[str]:
    """Return what is wrong with a ledger, and where: chains, sums, the file, and the head beside it."""
    ledger = Path(path)
    beside = read_head(ledger)  # first: a site that goes on meanwhile can only be ahead of it
    with sentences(ledger), closing(open_for_reading(ledger)) as file:
        return faults(file, beside)


def export(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield JSON lines: the ledger, its studies, and the chain with digests of queries and replies."""
    ledger = Path(path)
    with sentences(ledger), closing(open_for_reading(ledger)) as file:
        for line in lines(file):
            plain = {name: None if value == math.inf else value for name, value in line.items()}
            yield json.dumps(plain, ensure_ascii=False, allow_nan=False)


def write_export(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Write the export of a ledger to a new file; return how many lines it has."""
    text = list(export(path))  # before the file is made: a ledger that cannot be read leaves none
    try:
        with Path(target).open("x", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in text)
    except FileExistsError:
        raise BadInput(f"the file {Path(target).name} exists already; name a new one.") from None
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise BadInput(f"the file {Path(target).name} cannot be written ({reason}); name another one.") from None
    return len(text)
