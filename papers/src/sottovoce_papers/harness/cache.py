"""Finished cells, kept one file each, so that an interrupted study goes on where it was."""

import json
import os
from pathlib import Path

import msgspec

from sottovoce_papers.harness.cell import Cell, Row, Value


class CachedCell(msgspec.Struct, frozen=True):
    """A finished cell: what it was, with which seed and version, how long it took, and what it found."""

    recipe: str
    setting: dict[str, Value]
    replications: int
    seed: int
    version: str
    seconds: float
    rows: list[Row]

    @property
    def cell(self) -> Cell:
        """Return what was run."""
        return Cell(self.recipe, self.setting, self.replications, self.seed, self.version)


def path_of(folder: Path, cell: Cell) -> Path:
    """Return where a cell is kept."""
    return folder / f"{cell.key}.json"


def load(folder: Path, cell: Cell) -> CachedCell | None:
    """Return a finished cell, or None if there is none; a broken file counts as none."""
    try:
        found = msgspec.convert(json.loads(path_of(folder, cell).read_bytes()), CachedCell)
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError, msgspec.ValidationError):
        return None
    return found if found.cell == cell else None


def save(folder: Path, cell: Cell, rows: list[Row], seconds: float) -> CachedCell:
    """Keep a finished cell: all of it or nothing, whenever the process is stopped."""
    done = CachedCell(cell.recipe, cell.setting, cell.replications, cell.seed, cell.version, round(seconds, 3), rows)
    folder.mkdir(parents=True, exist_ok=True)
    target = path_of(folder, cell)
    beside = target.with_suffix(f".{os.getpid()}.part")
    # The standard library's JSON, because an infinite length must come back as one.
    beside.write_text(json.dumps(msgspec.to_builtins(done), indent=1), encoding="utf-8")
    beside.replace(target)
    return done
