"""What `sottovoce conformal` prints: the threshold, who was left out, and the report on whom it fails."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from sottovoce.cli.output import in_options, print_json

if TYPE_CHECKING:
    from sottovoce.client.reading.table import SiteTable
    from sottovoce.server.conformal.base import Threshold


def show(
    found: "Threshold",
    table: "SiteTable",
    fresh: "SiteTable | None",
    judged: dict[str, Any] | None,
    json: bool,
    plot: str | None,
) -> None:
    """Report, draw and print; the message is spent, so nothing that fails from here on may cost the answer."""
    payload = {**found.to_dict(), **_left_out(table)}
    text = [in_options(found.summary()), *_in_words(table)]
    try:
        drawn: Any = found
        if judged is not None:
            drawn = found.report(table if fresh is None else fresh, **judged)
            together = None if fresh is not None else _together(found.epsilon, drawn.epsilon)
            payload["report"] = {
                **drawn.to_dict(),
                **_left_out(table if fresh is None else fresh),
                "judged_by": "calibration" if fresh is None else "test",
                "epsilon_of_both_rounds": together,
            }
            text += ["", _judged(table, fresh, together), drawn.summary()]
            text += [] if fresh is None else _in_words(fresh)
        if plot is not None:
            payload["plot"] = str(drawn.plot(plot))
            text.append(f"Plot:          {payload['plot']}")
    finally:
        if json:
            print_json(payload)
        else:
            typer.echo("\n".join(text))


def _left_out(table: "SiteTable") -> dict[str, int]:
    """Count the rows of files that are no scores."""
    return {"dropped": sum(table.dropped.values()), "unplaced": table.unplaced, "further_rows": table.left_out}


def _in_words(table: "SiteTable") -> list[str]:
    """Say which rows were left out beside missing values, which the table tells."""
    lines = []
    if table.unplaced:
        lines.append(f"Left out:      {table.unplaced:,} rows without a site")
    if table.per_person:
        lines.append(f"Person:        one score each, drawn at random; {table.left_out:,} further rows left out")
    return lines


def _together(first: Mapping[str, float] | None, second: Mapping[str, float] | None) -> dict[str, float] | None:
    """Return what both rounds cost a score of each site, where both were private."""
    if first is None or second is None:
        return None
    return {name: first[name] + second[name] for name in first}


def _judged(table: "SiteTable", fresh: "SiteTable | None", together: Mapping[str, float] | None) -> str:
    """Say by which scores the threshold is judged, and what that adds to their cost."""
    if fresh is not None:
        return f"Judged by {sum(records.size for records in fresh.records):,} fresh scores:"
    text = f"Judged by the {sum(records.size for records in table.records):,} scores that made it"
    if together is None:
        return f"{text}:"
    return f"{text}; both rounds cost a score up to epsilon {max(together.values()):.4g}:"
