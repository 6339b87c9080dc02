"""An item's table in the report: a place a group of rows (print, then each reading), a column a quantity and method."""

from collections.abc import Iterator, Sequence
from html import escape

from sottovoce_papers.harness.digits import Digits, apart, written
from sottovoce_papers.harness.layout import DEFAULT, Entry, Layout
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.harness.words import KNOWN, OFF, mark

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
    texts = {name: layout.digits(name) for name in layout.quantities}
    parts += [_body(layout, heads, spot, widths, texts) for spot in layout.places]
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


def _body(
    layout: Layout, heads: Heads, spot: tuple[str, ...], widths: Sequence[int], digits: dict[str, Digits | None]
) -> str:
    entries = [layout.entry(spot, column, quantity) for quantity, column in heads]
    rows = []
    if any(entry.number for entry in entries):
        cells = [
            _cell(heads, i, f"{escape(entry.number.text)}<small></small>" if entry.number else "")
            for i, entry in enumerate(entries)
        ]
        rows.append(("print", "print", cells))
    for reading in layout.readings:
        alone = len(layout.readings) == 1
        found = [layout.found(entry, reading) for entry in entries]
        if alone or any(found):
            judged = reading == layout.readings[0]
            cells = [
                _ours(heads, i, entry, measure, reading, digits[heads[i][0]], judged)
                for i, (entry, measure) in enumerate(zip(entries, found, strict=True))
            ]
            rows.append(("", "ours" if alone else layout.label(reading), cells))
    said = ""
    for at, (kind, which, cells) in enumerate(rows):
        place = (
            f'<th class="place" rowspan="{len(rows)}" scope="rowgroup">{_spread(spot, widths)}</th>' if at == 0 else ""
        )
        name = f'<th class="which" scope="row">{escape(which)}</th>'
        said += f"<tr{_classes(kind)}>{place}{name}{''.join(cells)}</tr>"
    return f"<tbody>{said}</tbody>"


def _ours(
    heads: Heads, at: int, entry: Entry, measure: Measure | None, reading: str, digits: Digits | None, judged: bool
) -> str:
    if measure is None:
        return _cell(heads, at, "")
    sign = mark(entry.number) if judged else ""
    said = written(measure, digits)
    full = f"{measure.value:.6g}" + (
        f" ± {measure.error:.2g} (standard error, {measure.n:,} runs)" if measure.n else ""
    )
    if entry.number is not None and reading in entry.number.differences:
        far = entry.number.differences[reading]
        said += f"<small>{apart(far).replace('-', '−')}{sign}</small>"
        full += f"; print {entry.number.text}; {far:+.2f} standard errors"
        full += f"; {entry.number.why}" if sign and entry.number.why else ""
    return _cell(heads, at, said, CLASSES[sign], full)


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
