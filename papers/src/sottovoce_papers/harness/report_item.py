"""An item in the report: what it is, how it came out, its picture, its table, and the reasons."""

import base64
import warnings
from html import escape

from sottovoce_papers.harness import draw, words
from sottovoce_papers.harness.cell import Value, plain
from sottovoce_papers.harness.compare import tally
from sottovoce_papers.harness.digits import lasting
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.layout import Layout, lay
from sottovoce_papers.harness.report_table import table
from sottovoce_papers.harness.study import Outcome

LONG = 60  # places: a longer table is folded away


def anchor(item: Item) -> str:
    """Return the name by which an item is linked."""
    return f"{item.paper}.{item.name}"


def section(outcome: Outcome, seconds: float, pictures: bool) -> str:
    """Return the part of the page that is about one item."""
    item = outcome.item
    said = [f'<article id="{escape(anchor(item))}"><h3>{escape(item.title)}</h3>', paragraphs(item.about)]
    if outcome.skipped:
        return "".join([*said, f'<p class="verdict">Not run: {escape(outcome.skipped)}.</p></article>'])
    layout = lay(outcome)
    said.append(_facts(outcome, layout, seconds))
    if outcome.numbers:
        said.append(f'<p class="verdict">{escape(words.counted(tally(outcome.numbers)))}</p>')
    said.append(_picture(outcome) if pictures else "")
    said.append(_folded(outcome, layout))
    said.append(_reasons(outcome))
    said.append(_settings(item))
    return "".join([*said, "</article>"])


def paragraphs(text: str) -> str:
    """Return a text whose paragraphs stand apart by empty lines."""
    parts = [part.strip() for part in text.split("\n\n")]
    return "".join(f"<p>{escape(part)}</p>" for part in parts if part)


def _facts(outcome: Outcome, layout: Layout, seconds: float) -> str:
    facts = [words.often(outcome.replications), f"{lasting(seconds)} of computing"]
    facts += [f"{layout.label(key)} {value}".strip() for key, value in layout.fixed.items()]
    facts += words.readings(outcome.item, layout.readings)
    return f'<ul class="facts">{"".join(f"<li>{escape(fact)}</li>" for fact in facts)}</ul>'


def _picture(outcome: Outcome) -> str:
    """Return the picture inside the page; what cannot be drawn must not cost the rest of the report."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = draw.draw(outcome)
            if made is None:
                return ""
            inside = base64.b64encode(draw.png(made)).decode()
    except Exception as error:
        return f'<p class="soft">The picture could not be drawn: {escape(f"{type(error).__name__}: {error}")}.</p>'
    wide = round(made.get_size_inches()[0] * 96)
    alternative = escape(draw.words_for(outcome))
    return f'<figure><img src="data:image/png;base64,{inside}" width="{wide}" alt="{alternative}"></figure>'


def _folded(outcome: Outcome, layout: Layout) -> str:
    """Return the table, open where it is what the item is."""
    laid = table(layout)
    if laid and (outcome.item.kind != "table" or len(layout.places) > LONG):
        return f"<details><summary>{len(layout.places)} places in numbers</summary>{laid}</details>"
    return laid


def _reasons(outcome: Outcome) -> str:
    told = words.reasons(outcome.numbers)
    if not told:
        return ""
    lines = "".join(f"<li>{count} {'number' if count == 1 else 'numbers'}: {escape(why)}</li>" for why, count in told)
    return f"<p>What does not come out, and why:</p><ul>{lines}</ul>"


def _settings(item: Item) -> str:
    """Return the blocks of settings as the TOML file has them."""
    blocks = []
    for block in item.cells:
        lines = "".join(f"<dt>{escape(key)}</dt><dd>{escape(_listed(value))}</dd>" for key, value in block.items())
        blocks.append(f"<dl>{lines}</dl>")
    facts = f"recipe {item.recipe}" + (
        f", the print has {item.printed_replications:,}" if item.printed_replications else ""
    )
    return f"<details><summary>Settings</summary><p class='soft'>{escape(facts)}</p>{''.join(blocks)}</details>"


def _listed(value: Value | list[Value]) -> str:
    return ", ".join(map(plain, value)) if isinstance(value, list) else plain(value)
