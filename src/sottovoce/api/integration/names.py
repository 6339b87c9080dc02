"""Whom a caller means by target and sources, and by which names they go."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sottovoce.client.reading.table import SiteTable
from sottovoce.core.checks import first_few, label_text
from sottovoce.core.errors import BadInput
from sottovoce.server.integration.site_summary import SiteSummary

TARGET = "target"


def named(target: Any, sources: Any) -> tuple[str, Any, dict[str, Any]]:
    """Return the target's name, the target, and the sources by name."""
    others = by_name(sources)
    if isinstance(target, int) and label_text(target) in others:
        target = label_text(target)
    if isinstance(target, str):
        if target not in others:
            raise BadInput(f"the target {target!r} is not one of the sites {first_few(others)}; name one of them.")
        return target, others.pop(target), others
    if isinstance(target, SiteTable):
        if len(target.names) != 1:
            raise BadInput(f"the target must be one site, not {len(target.names)}; name one of them.")
        return target.names[0], target, others
    if isinstance(target, Mapping) and not is_summary(target):
        if len(target) != 1:
            raise BadInput(f"the target must be one site, not a mapping of {len(target)}; give {{name: records}}.")
        [(name, own)] = target.items()
        return label_text(name), own, others
    return TARGET, target, others


def by_name(sources: Any) -> dict[str, Any]:
    """Return the sources by name."""
    if sources is None:
        return {}
    if isinstance(sources, SiteTable):
        return {name: part_of(sources, i) for i, name in enumerate(sources.names)}
    if isinstance(sources, Mapping) and not is_summary(sources):
        found = {label_text(name): value for name, value in sources.items()}
        if len(found) < len(sources):
            raise BadInput("two sources have the same name; give each its own.")
        return found
    if isinstance(sources, Sequence) and not isinstance(sources, str | bytes):
        if sources and all(isinstance(value, int | float) for value in sources):
            raise BadInput(
                "sources is one column of numbers; give a mapping from name to records, or a list of columns."
            )
        return {f"source {i}": value for i, value in enumerate(sources, 1)}
    raise BadInput(
        f"sources must be a mapping from name to records or summary, or a list of them, not a "
        f"{type(sources).__name__}; give {{}} for none, and read a data frame with sv.read_frame."
    )


def is_summary(value: Any) -> bool:
    """Tell numbers about a site from its records."""
    return isinstance(value, SiteSummary) or (isinstance(value, Mapping) and "estimate" in value)


def part_of(table: SiteTable, i: int) -> SiteTable:
    """Return one site of a table."""
    name = table.names[i]
    return replace(table, names=(name,), records=(table.records[i],), dropped={name: table.dropped.get(name, 0)})
