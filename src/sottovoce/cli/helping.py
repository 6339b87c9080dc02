"""Who takes part when sites help a target: those of the files, those of --summaries, as far as --sources names them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from sottovoce.client.reading.table import SiteTable


def joined(records: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Join sites with records and sites with summaries, each known by one of them."""
    for name in told:
        if name in records:
            raise BadInput(f"site {name!r} has both records and a summary; leave one of them out.")
    return {**records, **told}


def chosen_sites(known: Mapping[str, Any], target: str, helpers: list[str] | None) -> dict[str, Any]:
    """Return the target and the sources that may help."""
    if helpers is None or target not in known:
        return dict(known)
    for place, name in enumerate(helpers):
        if name not in known:
            from sottovoce.core.checks import first_few

            raise BadInput(f"--sources names {name!r}, which is not one of the sites {first_few(known)}; correct it.")
        if name in helpers[:place]:
            raise BadInput(f"--sources names {name!r} twice; keep one.")
        if name == target:
            raise BadInput(f"the target {name!r} is among --sources too, and a site cannot help itself; take it out.")
    return {name: known[name] for name in [target, *helpers]}


def check_curve(chosen: Mapping[str, Any], target: str) -> None:
    """Refuse --sensitivity where it is plain that there will be no curve."""
    if not any(name != target and getattr(site, "trusted", True) for name, site in chosen.items()):
        raise BadInput("--sensitivity needs a source with a standard error; add one, or leave --sensitivity out.")


def without(values: Any, unasked: Any) -> Any:
    """Leave out what was said of sites that do not take part."""
    return {name: item for name, item in values.items() if name not in unasked} if isinstance(values, dict) else values


def rows_left_out(table: "SiteTable", chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Count the rows of files that are no records: missing values, no site, further rows of a person."""
    dropped = {name: count for name, count in table.dropped.items() if name in chosen}
    return {"dropped": dropped, "unplaced": table.unplaced, "further_rows": table.left_out}


def in_words(rows: Mapping[str, Any]) -> list[str]:
    """Say which rows were left out, where there are any."""
    lines, dropped = [], sum(rows.get("dropped", {}).values())
    if dropped or rows.get("unplaced"):
        lines.append(f"Rows left out: {dropped:,} missing values, {rows['unplaced']:,} without a site")
    if rows.get("further_rows"):
        lines.append(f"Person:        one record each, drawn at random; {rows['further_rows']:,} further rows left out")
    return lines
