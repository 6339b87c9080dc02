"""Which scores belong to which public group: all of a site, or each by a label of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from sottovoce.client.reading.labels import Labels, arrow_labels, code_labels, name_sites
from sottovoce.client.reading.table import SCORES, SiteTable
from sottovoce.client.record import Records
from sottovoce.core.arrays import Ints
from sottovoce.core.checks import check_names, dimensions, kind_of, label_text, per_site
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted

SITE, GROUP = "site", "group"
_GROUPS = (
    'give "site", "group" for a table that was read with one, a mapping from site to the name of its group, or from '
    "site to labels, one for each of its scores"
)
# The scores of a group: its sites, and which rows of each belong to it; None for all of them.
GroupPart = Mapping[str, Ints | None]


def held(table: SiteTable, part: GroupPart) -> SiteTable:
    """Return the scores of a part of a table, the sites in their order there."""
    found = table.only(list(part))
    chosen = [part[name] for name in found.names]
    if all(rows is None for rows in chosen):
        return found
    records = [
        each if rows is None else Records(np.ascontiguousarray(each.values()[rows]), each.unit)
        for each, rows in zip(found.records, chosen, strict=True)
    ]
    return replace(found, records=tuple(records))


def ungrouped(table: SiteTable) -> tuple[SiteTable, dict[str, list[str]]]:
    """Return the scores of every site together, and the group of each of them, from a table that groups divide."""
    strata = table.strata
    if strata is None or not strata.groups or strata.weights:
        raise BadInput('by="group" is for scores that were read with group=, and without weights; name the groups.')
    labels: dict[str, list[str]] = {place: [] for place in table.places}
    dropped = dict.fromkeys(table.places, 0)
    for name, place, group, records in zip(table.names, strata.sites, strata.groups, table.records, strict=True):
        labels[place] += [group] * records.size
        dropped[place] += table.dropped.get(name, 0)
    whole = tuple(Records(np.ascontiguousarray(column), table.unit) for column in table.columns)
    return replace(table, names=table.places, records=whole, dropped=dropped, strata=None), labels


def joined(parts: Sequence[GroupPart], table: SiteTable) -> GroupPart:
    """Return the scores of several groups together."""
    sizes = {name: each.size for name, each in zip(table.names, table.records, strict=True)}
    rows: dict[str, list[Ints | None]] = {}
    for part in parts:
        for site, own in part.items():
            rows.setdefault(site, []).append(own)
    found: dict[str, Ints | None] = {}
    for site, several in rows.items():
        known = [each for each in several if each is not None]
        whole = len(known) < len(several) or sum(map(len, known)) == sizes[site]
        found[site] = None if whole else np.sort(np.concatenate(known))
    return found


def read_groups(by: Any, table: SiteTable) -> dict[str, GroupPart]:
    """Return which scores belong to which group, groups in the order in which they are first met.

    >>> from sottovoce.client.reading.table import read_sites
    >>> table = read_sites({"north": [1.0, 2.0, 3.0], "south": [4.0]}, needs=SCORES)
    >>> read_groups("site", table), read_groups({"north": "a", "south": "a"}, table)
    ({'north': {'north': None}, 'south': {'south': None}}, {'a': {'north': None, 'south': None}})
    >>> read_groups({"north": ["f", "m", "f"], "south": ["m"]}, table)["m"]
    {'north': array([1]), 'south': None}
    """
    if isinstance(by, str) and by == SITE:
        return {name: {name: None} for name in table.names}
    if not isinstance(by, Mapping):
        raise BadInput(f"by is {kind_of(by) if not isinstance(by, str) else quoted(by)}; {_GROUPS}.")
    given = [value for value, _ in per_site(by, table.names, "by")]
    found: dict[str, dict[str, Ints | None]] = {}
    for name, records, value in zip(table.names, table.records, given, strict=True):
        if isinstance(value, str | int | np.integer):
            found.setdefault(label_text(value), {})[name] = None
            continue
        labels = _labels(value, name)
        if labels.codes.size != records.size:
            counts = f"{labels.codes.size:,} labels for the {records.size:,} scores"
            raise BadInput(f"by gives {counts} of site {name!r}; give one for each.")
        for code, label in enumerate(labels.labels):
            rows = np.flatnonzero(labels.codes == code)
            if rows.size:
                found.setdefault(label_text(label), {})[name] = None if rows.size == records.size else rows
    check_names(found, "group")
    return dict(found)


def _labels(value: Any, site: str) -> Labels:
    """Return the labels of a site's scores, coded."""
    where = f"by of site {site!r}"
    if dimensions(value) != 1 and not hasattr(value, "__arrow_c_stream__"):
        raise BadInput(f"{where} is neither the name of a group nor one label for each score; {_GROUPS}.")
    series = nw.from_native(value, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        series = nw.from_dict({"by": list(value)}, backend="pyarrow")["by"]
    return name_sites(code_labels(arrow_labels(series), where, "every score needs its group"), where, SCORES)
