"""A table or a figure of a paper as a TOML file says it: its cells, its print, and what is known of its numbers."""

import csv
import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from sottovoce.core.errors import BadInput
from sottovoce_papers.harness.cell import Value, crossed

Block = dict[str, Value | list[Value]]


class Explained(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why some printed numbers come out otherwise, or cannot come out at all (``comparable`` false)."""

    why: str
    where: dict[str, Value | list[Value]] = {}
    comparable: bool = False


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an item is drawn: lines over x, boxes by series, or a drawing of its own (``module:function``)."""

    kind: Literal["lines", "boxes", "own"] = "lines"
    x: str = ""
    y: list[str] = []
    series: str = "method"
    panels: list[str] = []
    log_x: bool = False
    log_y: bool = False
    reference: dict[str, float] = {}
    draw: str = ""


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table or figure.

    ``cells`` are blocks of settings, crossed where they list values; ``recipe`` and ``replications`` in a block replace
    the item's. ``rows``, ``columns`` and ``quantities`` say how its table is laid out, ``judged`` which reading is held
    against the print, ``derive`` a function ``module:function`` that makes rows of the table out of rows of the cells.
    """

    title: str
    recipe: str
    cells: list[Block]
    rows: list[str]
    quantities: list[str]
    columns: str = "method"
    about: str = ""
    replications: int = 0
    printed_replications: int = 0
    printed_error: float = 0.0
    data: list[str] = []
    readings: dict[str, str] = {}
    judged: str = ""
    labels: dict[str, str] = {}
    explained: list[Explained] = []
    derive: str = ""
    figure: Figure | None = None
    paper: str = ""
    name: str = ""
    folder: str = ""

    @property
    def kind(self) -> str:
        """Return "table" or "figure"."""
        return self.name.partition("-")[0]

    @property
    def print_file(self) -> Path:
        """Return where the printed numbers are; a figure may have none."""
        return Path(self.folder) / f"{self.name}.print.csv"

    @property
    def ours_file(self) -> Path:
        """Return where the recorded numbers are."""
        return Path(self.folder) / f"{self.name}.ours.csv"

    def settings(self) -> list[tuple[str, dict[str, Value], int]]:
        """Return each cell's recipe, setting and replications at full scale."""
        found = []
        for block in self.cells:
            recipe, often = block.get("recipe", self.recipe), block.get("replications", self.replications)
            rest = {key: value for key, value in block.items() if key not in ("recipe", "replications")}
            found += [(str(recipe), setting, int(str(often))) for setting in crossed(rest)]
        return found

    def printed(self) -> list[dict[str, str]]:
        """Return the printed numbers: the place in the table, ``quantity``, ``value`` and perhaps ``error``."""
        if not self.print_file.exists():
            return []
        with self.print_file.open(newline="", encoding="utf-8") as lines:
            return [{key: text for key, text in row.items() if text} for row in csv.DictReader(lines)]


def read_item(path: Path) -> Item:
    """Read one TOML file.

    Raises
    ------
    BadInput
        If it is no TOML, or has other fields than an item.
    """
    try:
        item = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Item)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path.parent.name}/{path.name} does not describe a table or figure: {error}.") from None
    return msgspec.structs.replace(item, paper=path.parent.name, name=path.stem, folder=str(path.parent))
