"""An item on the terminal: print, ours and their difference, as many columns as the window has room for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rich.text import Text

from sottovoce_papers.harness import words
from sottovoce_papers.harness.digits import apart
from sottovoce_papers.harness.layout import DEFAULT, PRINT, Layout, Spot, lay
from sottovoce_papers.harness.study import Outcome

GAP, SHOWN = "  ", 30  # of an item without a print no more lines are shown: they are in its file
STYLES = {"": "", words.OFF: "bold red", words.KNOWN: "yellow"}


@dataclass(frozen=True)
class Column:
    """A column under the heading of its group; a ``spare`` one is left out where there is no room for all."""

    group: str
    head: str
    cells: list[Text]
    spare: bool = False
    left: bool = False
    least: int = 0

    @cached_property
    def width(self) -> int:
        """Return how wide it is."""
        return max([self.least, len(self.head), *(cell.cell_len for cell in self.cells)])


def table(outcome: Outcome, width: int | None = None) -> list[Text]:
    """Return an item's table as lines that are no longer than ``width``, where that can be."""
    layout = lay(outcome)
    lines = [(spot, column) for spot in layout.places for column in layout.columns if _there(layout, spot, column)]
    cut = len(lines) - SHOWN if not layout.printed else 0
    columns = _columns(layout, lines[: len(lines) - max(cut, 0)])
    blocks = fitted(columns, width)
    said = [line for block in blocks for line in (*drawn(block), Text())][:-1]
    if cut > 0:
        said.append(Text(f"… {cut} more lines", style="dim"))
    if len({column.spare for block in blocks for column in block}) < len({column.spare for column in columns}):
        others = ", ".join(map(layout.label, layout.readings[1:]))
        said.append(Text(f"No room for: {others}. The report has all.", style="dim"))
    return said


def fitted(columns: Sequence[Column], width: int | None) -> list[list[Column]]:
    """Leave out what can be spared if not all has room, and set the rest in as many blocks as are needed."""
    if width is None or total(columns) <= width:
        return [list(columns)]
    places = [column for column in columns if not column.group]
    blocks: list[list[Column]] = [places]
    for group in dict.fromkeys(column.group for column in columns if column.group):
        inside = [column for column in columns if column.group == group and not column.spare]
        if blocks[-1] == places or total(blocks[-1] + inside) <= width:
            blocks[-1] = blocks[-1] + inside
        else:
            blocks.append(places + inside)
    return blocks


def _there(layout: Layout, spot: Spot, column: str) -> bool:
    return any((spot, column, quantity) in layout.entries for quantity in layout.quantities)


def _columns(layout: Layout, lines: Sequence[tuple[Spot, str]]) -> list[Column]:
    found = []
    for i, key in enumerate(layout.keys):
        values = [Text(spot[i]) for spot, _ in lines]
        # A value is written where it, or one to its left, changes: the eye sees the groups.
        for at in range(len(lines) - 1, 0, -1):
            if lines[at][0][: i + 1] == lines[at - 1][0][: i + 1]:
                values[at] = Text("")
        found.append(Column("", layout.label(key), values, left=True))
    if len(layout.columns) > 1 or layout.columns != [""]:
        named = [Text(column, style="bold" if column == DEFAULT else "") for _, column in lines]
        found.append(Column("", layout.label(layout.item.columns), named, left=True))
    for quantity in layout.quantities:
        found += _of_quantity(layout, lines, quantity)
    return found


def _of_quantity(layout: Layout, lines: Sequence[tuple[Spot, str]], quantity: str) -> list[Column]:
    group, compared = layout.label(quantity), quantity in layout.printed
    entries = [layout.entry(spot, column, quantity) for spot, column in lines]
    styles = ["bold" if column == DEFAULT else "" for _, column in lines]
    found = []
    if compared:
        texts = [Text(entry.number.text if entry.number else "", style="dim") for entry in entries]
        found.append(Column(group, PRINT, texts))
    for reading in layout.readings:
        spare = reading != layout.readings[0]
        shown = [layout.shown(entry, quantity, reading) for entry in entries]
        if spare and not any(one.text for one in shown):
            continue
        values = [Text(one.text, style=style) for one, style in zip(shown, styles, strict=True)]
        found.append(Column(group, layout.reading(reading), values, spare=spare))
        if compared:
            differences = [
                Text(
                    "" if one.difference is None else f"{apart(one.difference)}{one.mark or ' '}",
                    style=STYLES[one.mark] or "dim",
                )
                for one in shown
            ]
            found.append(Column(group, "diff ", differences, spare=spare))
    return found


def total(columns: Sequence[Column]) -> int:
    """Return how wide columns are together."""
    return sum(column.width for column in _widened(columns)) + len(GAP) * (len(columns) - 1)


def _widened(columns: Sequence[Column]) -> list[Column]:
    """Make each group as wide as its heading."""
    found = list(columns)
    for group in dict.fromkeys(column.group for column in columns if column.group):
        inside = [i for i, column in enumerate(found) if column.group == group]
        width = sum(found[i].width for i in inside) + len(GAP) * (len(inside) - 1)
        found[inside[0]] = replace(found[inside[0]], least=found[inside[0]].width + max(len(group) - width, 0))
    return found


def drawn(columns: Sequence[Column]) -> list[Text]:
    """Return columns as lines, with their headings."""
    columns = _widened(columns)
    lines = [Text(_groups(columns), style="bold")] if any(column.group for column in columns) else []
    lines.append(Text(GAP.join(_set(column.head, column) for column in columns).rstrip(), style="bold"))
    lines.append(Text(GAP.join("─" * column.width for column in columns), style="dim"))
    for at in range(len(columns[0].cells) if columns else 0):
        line = Text()
        for column in columns:
            cell = column.cells[at]
            line.append(_set(cell.plain, column), style=cell.style)
            line.append(GAP)
        line.rstrip()
        lines.append(line)
    return lines


def _set(text: str, column: Column) -> str:
    return text.ljust(column.width) if column.left else text.rjust(column.width)


def _groups(columns: Sequence[Column]) -> str:
    """Write each group's heading once, over its columns."""
    said, at = "", 0
    for i, column in enumerate(columns):
        if column.group and (i == 0 or columns[i - 1].group != column.group):
            said = said.ljust(at) + column.group
        at += column.width + len(GAP)
    return said
