"""How cells are run: one file for each kind of simulation, found by its name (``federated.walk``).

A recipe is a module with ``VERSION`` (raised when its numbers change), ``run(setting, replications, seed, data)``,
which returns rows and uses one core and no other randomness than the seed, and perhaps ``cost(setting, replications)``,
about how many seconds that takes.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

from sottovoce.core.errors import BadInput
from sottovoce_papers.harness.cell import Cell, Row, Setting


class Recipe(Protocol):
    """What a recipe's module has."""

    VERSION: int

    def run(self, setting: Setting, replications: int, seed: int, data: Path | None) -> Sequence[Row]:
        """Run one cell."""


def find(name: str) -> Recipe:
    """Return a recipe by name, ``paper.kind``.

    Raises
    ------
    BadInput
        If there is none of that name.
    """
    try:
        module: Recipe = import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith(__name__):
            raise BadInput(f"there is no recipe {name!r}; correct the name in the table's TOML file.") from None
        raise
    return module


def run(cell: Cell, data: Path | None) -> list[Row]:
    """Run a cell; each of its rows has the cell's setting and its own."""
    rows = find(cell.recipe).run(cell.setting, cell.replications, cell.dice, data)
    return [Row({**cell.setting, **row.where}, row.measures, row.curves) for row in rows]


def cost(name: str, setting: Setting, replications: int) -> float:
    """Guess how many seconds a cell takes."""
    guess = getattr(find(name), "cost", None)
    return 1.0 if guess is None else float(guess(setting, replications))
