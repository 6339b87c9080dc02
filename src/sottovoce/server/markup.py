"""A description as HTML: small tables for a notebook, without a style sheet, a script or a link."""

from collections.abc import Sequence
from html import escape

from sottovoce.server.description import Description

LEFT = ' style="text-align: left"'
MOST_ROWS = 24  # of a table in a notebook


def in_notebook(headline: str, about: Description) -> str:
    """Return what a notebook shows of a result: its headline, what there is to know, and its table."""
    parts = [f"<p><strong>{escape(headline)}</strong></p>", rows_table(about.rows)]
    if about.cells:
        parts.append(cells_table(about.cells, MOST_ROWS))
    warnings = [text for label, text in about.notes if label == "Warning"]
    parts += [f"<p><strong>Warning:</strong> {escape(text)}</p>" for text in warnings]
    return f"<div>{''.join(parts)}</div>"


def rows_table(rows: Sequence[tuple[str, str]]) -> str:
    """Return a table of labels and texts."""
    lines = [_line(row) for row in rows]
    return f"<table><tbody>{''.join(lines)}</tbody></table>" if rows else ""


def cells_table(cells: Sequence[Sequence[str]], most: int) -> str:
    """Return a table whose first row is its head; of many rows, the first."""
    head, *rows = cells
    top = "".join(f'<th scope="col"{LEFT}>{escape(cell)}</th>' for cell in head)
    lines = [_line(row) for row in rows[:most]]
    if len(rows) > most:
        lines.append(f'<tr><td colspan="{len(head)}"{LEFT}>and {len(rows) - most:,} more</td></tr>')
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _line(row: Sequence[str]) -> str:
    first, *others = row
    cells = "".join(f"<td{LEFT}>{escape(cell)}</td>" for cell in others)
    return f'<tr><th scope="row"{LEFT}>{escape(first)}</th>{cells}</tr>'
