"""The picture of an item: as its TOML file asks, or the print against ours; drawn without a window or any state."""

import io
from importlib import import_module
from typing import TYPE_CHECKING

from sottovoce_papers.harness.study import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

DPI, SHADES = 120, 96


def available() -> bool:
    """Tell whether matplotlib is there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def draw(outcome: Outcome) -> "Picture | None":
    """Draw an item; None where there is nothing to draw.

    Parameters
    ----------
    outcome
        What was found; ``outcome.item.figure`` says how it is drawn. A table that says nothing is drawn as its print
        against ours.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Picture

    from sottovoce_papers.harness import draw_boxes, draw_lines, draw_print

    wish = outcome.item.figure
    if not outcome.rows or (wish is None and not any(number.found for number in outcome.numbers)):
        return None
    picture = Picture(dpi=DPI, layout="constrained")
    FigureCanvasAgg(picture)
    if wish is None:
        draw_print.draw(picture, outcome)
    elif wish.kind == "own":
        module, _, function = wish.draw.partition(":")
        getattr(import_module(f"sottovoce_papers.harness.{module}"), function)(picture, outcome.rows)
    else:
        {"lines": draw_lines, "boxes": draw_boxes}[wish.kind].draw(picture, outcome, wish)
    return picture


def png(picture: "Picture") -> bytes:
    """Return a picture as the bytes of a PNG file of few colours: a third of the size, and nobody sees it."""
    from PIL import Image

    plain, small = io.BytesIO(), io.BytesIO()
    picture.savefig(plain, format="png")
    Image.open(plain).convert("RGB").quantize(SHADES).save(small, format="png", optimize=True)
    return small.getvalue()


def words_for(outcome: Outcome) -> str:
    """Describe the picture to whoever does not see it."""
    item, wish = outcome.item, outcome.item.figure
    if wish is None:
        return f"{item.title}: print against ours, a panel each for {_listed(item.quantities, item.labels)}."
    if wish.kind == "own" or not wish.y:
        return f"{item.title}: a drawing of what was found."
    what = "Boxes of" if wish.kind == "boxes" else "Lines of"
    over = f" over {item.labels.get(wish.x, wish.x)}" if wish.x else ""
    return f"{item.title}. {what} {_listed(wish.y, item.labels)}{over}, by {item.labels.get(wish.series, wish.series)}."


def _listed(names: list[str], labels: dict[str, str]) -> str:
    return " and ".join(labels.get(name, name) for name in names)
