"""One self-contained HTML file: no script, no font, no picture from elsewhere; it can be mailed and read offline."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sottovoce import __version__
from sottovoce.core.errors import BadInput
from sottovoce_papers.harness import draw, words
from sottovoce_papers.harness.compare import Tally, tally
from sottovoce_papers.harness.digits import lasting, percent
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.report_item import anchor, section
from sottovoce_papers.harness.report_style import STYLE
from sottovoce_papers.harness.study import Outcome


class Run(NamedTuple):
    """How a study was run: its seed, how often in words, and the seconds of each item."""

    seed: int
    often: str
    seconds: Mapping[tuple[str, str], float]


def write(outcomes: Sequence[Outcome], path: Path, run: Run) -> Path:
    """Write the report.

    Parameters
    ----------
    outcomes
        What was found.
    path
        The HTML file.
    run
        How it was found.

    Raises
    ------
    BadInput
        If the file cannot be written.
    """
    try:
        path.write_text(page(outcomes, run), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error}); give another --out.") from None
    return path


def page(outcomes: Sequence[Outcome], run: Run) -> str:
    """Return the whole page."""
    pictures = draw.available()
    papers = [(key, list(group)) for key, group in groupby(outcomes, key=lambda outcome: outcome.item.paper)]
    said = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>The print and ours</title><style>{STYLE}</style></head><body>",
        _top(outcomes, run, pictures),
        "<nav>",
        *(_contents(key, group, run) for key, group in papers),
        "</nav><main>",
    ]
    for key, group in papers:
        said.append(f'<section><h2 id="{escape(key)}">{escape(paper_title(group[0].item))}</h2>')
        said += [section(one, run.seconds.get((key, one.item.name), 0.0), pictures) for one in group]
        said.append("</section>")
    return "".join([*said, "</main></body></html>\n"])


def paper_title(item: Item) -> str:
    """Return a paper's title: the heading of its README, or its key."""
    about = Path(item.folder) / "README.md"
    if about.exists():
        with about.open(encoding="utf-8") as lines:
            first = next(lines, "")
        if first.startswith("# "):
            return first[2:].strip().replace("`", "")
    return item.paper.replace("-", " ").capitalize()


def _top(outcomes: Sequence[Outcome], run: Run, pictures: bool) -> str:
    total = words.added(tally(outcome.numbers) for outcome in outcomes)
    skipped = sum(bool(outcome.skipped) for outcome in outcomes)
    figures = [
        (
            percent(total.share) if total.comparable else "–",
            f"agree: {total.agreeing:,} of {total.comparable:,} comparable numbers",
        ),
        (f"{total.explained:,}", "explained instead"),
        (f"{total.unexplained:,}", "neither"),
        (f"{total.missing:,}", "not run"),
    ]
    if skipped:
        figures.append((f"{skipped:,}", "tables and figures skipped, for want of data"))
    sums = "".join(f"<li><b>{escape(count)}</b><span>{escape(what)}</span></li>" for count, what in figures)
    without = "" if pictures else "<p>Pictures need matplotlib: pip install matplotlib.</p>"
    spent = lasting(sum(run.seconds.values()))
    return (
        "<header><h1>The print and ours</h1>"
        f'<p class="soft">Tables and figures of the papers, run again by sottovoce {escape(__version__)}: '
        f"{escape(run.often)}, seed {run.seed}, {spent} of computing.</p>"
        f'<ul class="sums">{sums}</ul>'
        "<p>A printed number is comparable if the paper's own settings should give it. It agrees when ours differs by "
        "at most three standard errors of the difference or 5 % of the print, whichever is larger; the error counts "
        "the replications of both and the rounding of the print. The small figure beside a number is the difference "
        "in standard errors.</p>"
        '<p class="key">Marks: <span class="off">does not agree !</span> <span class="known">explained ·</span> '
        f'<span class="default">default</span> is this package as it comes, on the same data.</p>{without}</header>'
    )


def _contents(key: str, outcomes: Sequence[Outcome], run: Run) -> str:
    """Return a paper's part of the contents: one line per item, with how it came out."""
    total = words.added(tally(outcome.numbers) for outcome in outcomes)
    lines = []
    for outcome in outcomes:
        item, found = outcome.item, tally(outcome.numbers)
        seconds = lasting(run.seconds.get((item.paper, item.name), 0.0))
        agree = f"{found.agreeing} of {found.comparable}" if found.comparable else ""
        cells = [
            f'<td><a href="#{escape(anchor(item))}">{escape(item.title)}</a></td>',
            f'<td class="wide">{_bar(found)}</td><td class="count">{agree}</td>',
            f'<td class="count">{found.explained or ""}</td>',
            f'<td class="count wide">{"skipped" if outcome.skipped else seconds}</td>',
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    heads = '<th></th><th class="wide"></th><th class="count">agree</th><th class="count">explained</th>'
    return (
        f'<h4><a href="#{escape(key)}">{escape(paper_title(outcomes[0].item))}</a></h4>'
        f'<p class="soft">{escape(words.counted(total))}</p>'
        f'<table class="contents"><tr>{heads}<th class="count wide">time</th></tr>{"".join(lines)}</table>'
    )


def _bar(found: Tally) -> str:
    """Draw the parts of an item's printed numbers: agreeing, explained, neither."""
    if not found.printed:
        return ""
    parts = (("good", found.agreeing), ("rest", found.explained), ("bad", found.unexplained))
    inside = "".join(f'<i class="{kind}" style="width:{100 * n / found.printed:.4g}%"></i>' for kind, n in parts)
    return f'<div class="bar" role="img" aria-label="{escape(words.counted(found))}">{inside}</div>'
