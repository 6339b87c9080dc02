"""A picture of errors against the number of records: central libraries, local privacy, and no privacy."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

PALETTE = {
    "no privacy": ("#4d4d4d", ":"),
    "OpenDP, central": ("#1b7f5c", "-"),
    "diffprivlib, central": ("#8c6bb1", "-"),
    "Google (PyDP), central": ("#c98a1b", "-"),
    "Sottovoce, local": ("#1f5a94", "-"),
    "Sottovoce certified, local": ("#1f5a94", "--"),
}
SMALLEST = 3e-2  # of the largest error of a panel: below it, and at zero, a point stands on the floor


def draw(path: Path, cells: Mapping[tuple[Any, int], Sequence[Any]], names: Sequence[str]) -> None:
    """Draw a panel for each population, errors in its units against the number of records."""
    asked = list(dict.fromkeys(each for each, _ in cells))
    columns = min(4, len(asked))
    rows = -(-len(asked) // columns)
    figure = Figure(figsize=(3.1 * columns, 2.6 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, each in zip(panels, asked, strict=False):
        sizes = [n for other, n in cells if other == each]
        largest = max(cell.error for n in sizes for cell in cells[each, n] if not cell.failed)
        for at, name in enumerate(names):
            points = [(n, cells[each, n][at].error) for n in sizes if not cells[each, n][at].failed]
            colour, line = PALETTE[name]
            floor = SMALLEST * largest
            panel.plot(
                [n for n, _ in points], [max(error, floor) for _, error in points], line, color=colour, marker="o",
                markersize=4, linewidth=1.6, label=name,
            )  # fmt: skip
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(SMALLEST * largest * 0.8, largest * 1.5)
        panel.set_title(f"{each.name}, tau {each.tau:g}", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.minorticks_off()
    for panel in panels[len(asked) :]:
        panel.set_visible(False)
    figure.supxlabel("records", fontsize=9)
    figure.supylabel("mean absolute error, in the data's units", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    with io.BytesIO() as drawn:
        figure.savefig(drawn, dpi=110, format="png")
        with Image.open(drawn) as image:  # few colours: the page's pictures are part of the repository
            image.convert("RGB").quantize(48, dither=Image.Dither.NONE).save(path, optimize=True)
