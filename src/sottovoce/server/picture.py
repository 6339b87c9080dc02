"""What all pictures share: colours, where they may be written, and how little is drawn that is not data."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
INK, SOFT, BAND, WARM = "#1f4e79", "#5b7fa3", "#c9dcee", "#c4501b"


def check_path(path: str | os.PathLike[str], *, make_folder: bool = False) -> Path:
    """Refuse a path to which no plot can be written; to be called before anything is spent."""
    target = Path(path).expanduser()
    if target.suffix.lower() not in SUFFIXES:
        raise BadInput(f"a plot is written to a file that ends in {', '.join(SUFFIXES)}, not to {target}; rename it.")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise BadInput("a plot needs matplotlib: install it with: pip install matplotlib") from None
    folder = target.parent
    if make_folder:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"the folder {folder} cannot be made ({error.strerror}); give another path.") from None
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder} to write the plot to; make it, or give another path.")
    if target.is_dir() or not os.access(target if target.exists() else folder, os.W_OK):
        raise BadInput(f"the plot cannot be written to {target}; give another path.")
    return target


def save(figure: "Figure", target: Path) -> Path:
    """Write a figure to its file and return the path, or say why that cannot be done."""
    try:
        figure.savefig(target, format=target.suffix[1:].lower())
    except OSError as error:
        raise BadInput(
            f"the plot cannot be written to {target} ({error.strerror or error}); give another path."
        ) from None
    return target


def clear(axes: "Axes") -> None:
    """Take away what is not data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e6e6e6", lw=0.7)
    axes.set_axisbelow(True)


def short(name: str) -> str:
    """Shorten a long name, and take from it what matplotlib would read as mathematics."""
    text = name if len(name) <= 28 else name[:27] + "…"
    return text.replace("$", r"\$")
