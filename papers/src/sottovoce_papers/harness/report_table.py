"""An item's table in the report: rows by place (the print, then each reading), columns by quantity and method."""

from collections.abc import Iterator, Sequence
from html import escape

from sottovoce_papers.harness.digits import apart
from sottovoce_papers.harness.layout import DEFAULT, PRINT, Entry, Layout, Shown, Spot
from sottovoce_papers.harness.words import KNOWN, OFF

CLASSES = {"": "", OFF: "off", KNOWN: "known"}
Heads = Sequence[tuple[str, str]]


def table(layout: Layout) -> str:
    """Return the table as HTML; empty where there is nothing to show."""
    heads = [
        (quantity, column)
        for quantity in layout.quantities
        for column in layout.columns
        if any((spot, column, quantity) in layout.entries for spot in layout.places)
    ]
    if not heads:
        return ""
    widths = [max(len(text) for text in (layout.label(key), *_values(layout, i))) for i, key in enumerate(layout.keys)]
    room = sum(widths) + 2.4 * len(widths) + 2
    parts = [f'<div class="scroll" tabindex="0"><table style="--places:{room:.4g}ch">', _head(layout, heads, widths)]
    parts += [_body(layout, heads, spot, widths) for spot in layout.places]
    return "".join([*parts, "</table></div>"])


def _values(layout: Layout, at: int) -> Iterator[str]:
    return (spot[at] for spot in layout.places)


def _head(layout: Layout, heads: Heads, widths: Sequence[int]) -> str:
    """Write two rows: the quantities, and the methods under each."""
    groups = {name: sum(one == name for one, _ in heads) for name, _ in heads}
    first = "".join(
        f'<th class="group" colspan="{wide}" scope="colgroup">{escape(layout.label(name))}</th>'
        for name, wide in groups.items()
    )
    second = "".join(
        f'<th scope="col"{_classes(column == DEFAULT and "default")}>{escape(column) or "&nbsp;"}</th>'
        for _, column in heads
    )
    corner = f'<th class="place" rowspan="2">{_spread(list(map(layout.label, layout.keys)), widths)}</th>'
    return f'<thead><tr>{corner}<th class="which" rowspan="2"></th>{first}</tr><tr>{second}</tr></thead>'


def _body(layout: Layout, heads: Heads, spot: Spot, widths: Sequence[int]) -> str:
    """Write the rows of a place: the print, then ours under each reading."""
    entries = [layout.entry(spot, column, quantity) for quantity, column in heads]
    rows = []
    if any(entry.number for entry in entries):
        texts = [f"{escape(entry.number.text)}<small></small>" if entry.number else "" for entry in entries]
        rows.append((PRINT, PRINT, [_cell(heads, i, text) for i, text in enumerate(texts)]))
    for reading in layout.readings:
        shown = [layout.shown(entry, head[0], reading) for entry, head in zip(entries, heads, strict=True)]
        if len(layout.readings) == 1 or any(one.measure for one in shown):
            pairs = zip(entries, shown, strict=True)
            rows.append(("", layout.reading(reading), [_ours(heads, i, *pair) for i, pair in enumerate(pairs)]))
    said = ""
    for at, (kind, which, cells) in enumerate(rows):
        place = (
            f'<th class="place" rowspan="{len(rows)}" scope="rowgroup">{_spread(spot, widths)}</th>' if at == 0 else ""
        )
        name = f'<th class="which" scope="row">{escape(which)}</th>'
        said += f"<tr{_classes(kind)}>{place}{name}{''.join(cells)}</tr>"
    return f"<tbody>{said}</tbody>"


def _ours(heads: Heads, at: int, entry: Entry, shown: Shown) -> str:
    """Write what was found; all that is known of it stands in the cell's title."""
    measure, said = shown.measure, shown.text
    if measure is None:
        return _cell(heads, at, "")
    full = f"{measure.value:.6g}" + (
        f" ± {measure.error:.2g} (standard error, {measure.n:,} runs)" if measure.n else ""
    )
    if entry.number is not None and shown.difference is not None:
        said += f"<small>{apart(shown.difference).replace('-', '−')}{shown.mark}</small>"
        full += f"; print {entry.number.text}; {shown.difference:+.2f} standard errors"
        full += f"; {entry.number.why}" if shown.mark and entry.number.why else ""
    return _cell(heads, at, said, CLASSES[shown.mark], full)


def _cell(heads: Heads, at: int, said: str, kind: str = "", title: str = "") -> str:
    edge = at == 0 or heads[at - 1][0] != heads[at][0]
    classes = _classes(edge and "edge", heads[at][1] == DEFAULT and "default", kind)
    told = f' title="{escape(title)}"' if title else ""
    return f"<td{classes}{told}>{said}</td>"


def _spread(values: Sequence[str], widths: Sequence[int]) -> str:
    """Set the values of a place under one another, in one cell that can stay in sight."""
    return "".join(
        f'<span style="min-width:{width + 2.2:.4g}ch">{escape(value)}</span>'
        for value, width in zip(values, widths, strict=True)
    )


def _classes(*names: str | bool) -> str:
    given = " ".join(str(name) for name in names if name)
    return f' class="{given}"' if given else ""
