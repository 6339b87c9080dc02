"""What `sottovoce reproduce` says in the end: a table per item, or one line each where there are many."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sottovoce_papers.harness import payload, terminal, words
from sottovoce_papers.harness.compare import tally
from sottovoce_papers.harness.digits import lasting, percent
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.layout import lay
from sottovoce_papers.harness.study import Outcome

FEW = 3  # more items than this are told in a line each
Seconds = Mapping[tuple[str, str], float]


def tell(outcomes: Sequence[Outcome], seconds: Seconds, console: Console, width: int | None) -> None:
    """Tell a few items in tables, many in lines."""
    if len(outcomes) > FEW:
        _overview(outcomes, seconds, console)
        return
    compared = False
    for outcome in outcomes:
        if outcome.skipped:
            console.print(Text(f"{_name(outcome.item)}: skipped, {outcome.skipped}.\n"))
        else:
            compared = compared or bool(outcome.numbers)
            _one(outcome, seconds, console, width)
    if compared:
        console.print(Text(words.LEGEND, style="dim"))


def _one(outcome: Outcome, seconds: Seconds, console: Console, width: int | None) -> None:
    item, layout = outcome.item, lay(outcome)
    console.print(Text(item.title, style="bold"))
    spent = lasting(seconds.get(payload.named(item), 0.0))
    facts = [f"{layout.label(key)} {value}".strip() for key, value in layout.fixed.items()]
    console.print(
        Text(", ".join([item.paper, words.often(outcome.replications), f"{spent} of computing", *facts]) + ".")
    )
    for meaning in words.readings(item, layout.readings):
        console.print(Text(meaning))
    console.print()
    for line in terminal.table(outcome, width):
        console.print(line, no_wrap=True, overflow="ignore", crop=width is not None)
    if outcome.numbers:
        console.print()
        console.print(Text(words.counted(tally(outcome.numbers)), style="bold"))
    for why, count in words.reasons(outcome.numbers):
        console.print(Text(f"{words.KNOWN} {count} {'number' if count == 1 else 'numbers'}: {why}"))
    console.print()


def _overview(outcomes: Sequence[Outcome], seconds: Seconds, console: Console) -> None:
    """Print one line per item, and the sums."""
    lines = Table(box=None, pad_edge=False, header_style="bold")
    lines.add_column("item", no_wrap=True)
    for head in ("printed", "agree", "of", "", "explained", "neither", "not run", "time"):
        lines.add_column(head, justify="right", no_wrap=True)
    paper = ""
    for outcome in outcomes:
        if outcome.item.paper != paper:
            paper = outcome.item.paper
            lines.add_row(Text(paper, style="bold"))
        if outcome.skipped:
            lines.add_row(f"  {outcome.item.name}", *[""] * 7, "skipped")
            continue
        found = tally(outcome.numbers)
        lines.add_row(
            f"  {outcome.item.name}",
            *map(_or_blank, (found.printed, found.agreeing if found.comparable else 0, found.comparable)),
            percent(found.share) if found.comparable else "",
            _or_blank(found.explained),
            Text(_or_blank(found.unexplained), style="bold red"),
            _or_blank(found.missing),
            lasting(seconds.get(payload.named(outcome.item), 0.0)),
        )
    console.print(lines)
    console.print()
    for reason in dict.fromkeys(outcome.skipped for outcome in outcomes if outcome.skipped):
        names = [_name(outcome.item) for outcome in outcomes if outcome.skipped == reason]
        console.print(Text(f"Skipped: {', '.join(names)}: {reason}."))
    console.print(Text(words.counted(words.added(tally(outcome.numbers) for outcome in outcomes)), style="bold"))


def listed(items: Sequence[Item], width: int | None) -> list[Text]:
    """Return what there is to reproduce, one line per item under its paper; titles are cut where there is no room."""
    runs = [f"{payload.most(item):,}" if payload.most(item) else "computed" for item in items]
    known = ["yes" if item.ours_file.exists() else "no" for item in items]
    sets = [" and ".join(item.data) if len(item.data) < 3 else f"{len(item.data)} data sets" for item in items]
    columns = [
        _column("item", [f"  {item.name}" for item in items]),
        _column("replications", runs, left=False),
        _column("needs data", sets),
        _column("recorded", known),
    ]
    room = None if width is None else max(width - terminal.total(columns) - len(terminal.GAP), 8)
    titles = _column("title", [_cut(item.title, room) for item in items])
    head, rule, *lines = terminal.drawn([*columns, titles])
    said, paper = [head, rule], ""
    for item, line in zip(items, lines, strict=True):
        if item.paper != paper:
            paper = item.paper
            said.append(Text(paper, style="bold"))
        said.append(line)
    return said


def _column(head: str, texts: Sequence[str], left: bool = True) -> terminal.Column:
    return terminal.Column("", head, [Text(text) for text in texts], left=left)


def _cut(text: str, room: int | None) -> str:
    return text if room is None or len(text) <= room else f"{text[: room - 1]}…"


def _name(item: Item) -> str:
    return " ".join(payload.named(item))


def _or_blank(count: int) -> str:
    return f"{count:,}" if count else ""
