"""No record at two sites: a target and its sources must be independent of each other."""

from collections.abc import Mapping
from typing import Any

from sottovoce.client.reading.table import SiteTable
from sottovoce.core.errors import BadInput


def check_once(columns: Mapping[str, Any], target: str) -> None:
    """Refuse one column given twice: once both are converted, the copies no longer show that they are one."""
    seen: dict[int, str] = {}
    for name, column in columns.items():
        other = seen.setdefault(id(column), name)
        if other != name:
            raise _shared(other, name, target)


def check_apart(table: SiteTable, target: str) -> None:
    """Refuse records that two sites share."""
    for i, one in enumerate(table.records):
        for j in range(i):
            if one.overlaps(table.records[j]):
                raise _shared(table.names[j], table.names[i], target)


def _shared(one: str, two: str, target: str) -> BadInput:
    """Say who shares records with whom."""
    if target in (one, two):
        other = two if one == target else one
        return BadInput(f"the target's records are among the sources, at {other!r}; take them out there.")
    return BadInput(f"the sources {one!r} and {two!r} share records; give each record to one site.")
