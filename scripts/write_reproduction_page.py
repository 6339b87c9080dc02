"""Write the table and the pictures of `docs/reproduction.md` from the recorded numbers in `papers/`.

Run it after `sottovoce reproduce --record`; `tests/docs/test_reproduction_page.py` holds the page against the records.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from sottovoce_papers.harness import catalogue, draw
from sottovoce_papers.harness.compare import ALONE, Number, Tally, compared, tally
from sottovoce_papers.harness.files import recorded
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.palette import COLOURS, NOMINAL
from sottovoce_papers.harness.study import Outcome
from sottovoce_papers.harness.words import added

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reproduction.md"
PLACE = re.compile(r"(?<=<!-- tallies -->\n).*?(?=<!-- end -->)", re.DOTALL)
TITLES = {
    "federated-quantile": "federated quantiles",
    "online-quantile-regression": "quantile regression",
    "data-integration": "data integration",
    "one-shot-conformal": "conformal prediction",
}
PICTURES = (("data-integration", "figure-2"), ("one-shot-conformal", "figure-2"), ("federated-quantile", "figure-s3"))


def outcomes() -> list[Outcome]:
    """Return every item with its record."""
    found = []
    for item in catalogue.items(catalogue.papers_folder()):
        rows = recorded(item)
        often = max((measure.n for row in rows for measure in row.measures.values()), default=0)
        found.append(Outcome(item, rows, compared(item, rows), often))
    return found


def table(found: Sequence[Outcome]) -> str:
    """Return the tallies of the items that have a print, by paper, as a table."""
    lines = ["| item | printed | comparable | agree | | explained | neither |", "|---|---|---|---|---|---|---|"]
    total = []
    for paper, title in TITLES.items():
        mine = [outcome for outcome in found if outcome.item.paper == paper and outcome.numbers]
        counts = [tally(outcome.numbers) for outcome in mine]
        lines += [_line(_name(outcome.item), count) for outcome, count in zip(mine, counts, strict=True)]
        lines.append(_line(f"**{title}**", added(counts)))
        total += counts
    return "\n".join([*lines, _line("**all**", added(total))]) + "\n"


def _name(item: Item) -> str:
    kind, _, number = item.name.partition("-")
    spelled = re.sub(r"^([a-z])(\d+)$", lambda m: f"{m[1].upper()}.{m[2]}", number)
    return f"{item.paper}, {kind.capitalize()} {spelled}"


def _line(name: str, count: Tally) -> str:
    share = f"{count.share:.1%}".replace("%", " %") if count.comparable else ""
    numbers = [count.printed, count.comparable, count.agreeing, share, count.explained, count.unexplained]
    return f"| {name} | {' | '.join(map(str, numbers))} |"


def differences(found: Sequence[Outcome], path: Path) -> None:
    """Draw how far ours lie from the print, in standard errors, beside the normal density of chance alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9.5, 3.2), dpi=120, layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots(1, 3, sharey=True)
    for axis, colour, (paper, title) in zip(axes, COLOURS, list(TITLES.items())[:3], strict=False):
        numbers = [n for outcome in found if outcome.item.paper == paper for n in outcome.numbers if n.comparable]
        gaps = [gap for n, item in _judged(found, paper, numbers) if (gap := n.differences[item])]  # no definitions
        axis.hist(
            [max(min(gap, 4.99), -4.99) for gap in gaps], bins=40, range=(-5, 5), density=True, color=colour, alpha=0.6
        )
        grid = [k / 20 for k in range(-100, 101)]
        axis.plot(grid, [math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in grid], color=NOMINAL, lw=1.2)
        axis.set_title(f"{title}: {len(gaps)} numbers", fontsize=9.5, loc="left")
        axis.set_xlabel("(ours - print) / standard error", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    path.write_bytes(draw.png(picture))


def _judged(found: Sequence[Outcome], paper: str, numbers: Sequence[Number]) -> list[tuple[Number, str]]:
    """Return the numbers with the reading each is judged by, where that was run."""
    readings = {id(n): o.item.judged or ALONE for o in found if o.item.paper == paper for n in o.numbers}
    return [(n, readings[id(n)]) for n in numbers if readings[id(n)] in n.differences]


def main() -> None:
    """Write the page's table and the pictures."""
    found = outcomes()
    PAGE.write_text(PLACE.sub(lambda _: table(found), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    differences(found, DOCS / "reproduction-differences.png")
    for outcome in found:
        if (outcome.item.paper, outcome.item.name) in PICTURES:
            picture = draw.draw(outcome)
            if picture is not None:
                name = f"reproduction-{outcome.item.paper}-{outcome.item.name}.png"
                (DOCS / name).write_bytes(draw.png(picture))


if __name__ == "__main__":
    main()
