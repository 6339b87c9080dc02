"""Where the papers' tables are described: beside `src` in a checkout, in `tables` of an installed package."""

import re
from pathlib import Path

from sottovoce.core.errors import BadInput
from sottovoce_papers.harness.item import Item, read_item


def papers_folder() -> Path:
    """Return the folder that has one folder per paper.

    Raises
    ------
    BadInput
        If it is in neither place.
    """
    package = Path(__file__).parents[1]
    for place in (package / "tables", package.parents[1]):
        if place.is_dir() and paper_names(place):
            return place
    raise BadInput("the papers' tables are neither in the package nor beside it; install it again, or use a checkout.")


def paper_names(folder: Path) -> list[str]:
    """Return the papers' keys."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*-*.toml")))


def items(folder: Path, paper: str | None = None, item: str | None = None) -> list[Item]:
    """Return the tables and figures asked for: of all papers, of one, or one of it.

    Parameters
    ----------
    folder
        Where the papers are.
    paper
        A paper's key or a unique beginning of it.
    item
        Its table or figure, in any usual spelling: ``table-1``, ``"Table S.2"``, ``figure-b.1``, ``S.2``; or
        ``tables``, ``figures``.

    Raises
    ------
    BadInput
        If there is no such paper or item; the sentence lists those there are.
    """
    names = paper_names(folder)
    if paper is None:
        return [read_item(path) for name in names for path in _sorted(folder / name)]
    found = [name for name in names if name == paper] or [name for name in names if name.startswith(paper.lower())]
    if len(found) != 1:
        raise BadInput(f"paper {paper!r} is not one of the papers here; choose one of {', '.join(names)}.")
    all_items = [read_item(path) for path in _sorted(folder / found[0])]
    if item is None:
        return all_items
    wanted = _spelled(item)
    chosen = [
        one
        for one in all_items
        if wanted in (one.name, one.name.partition("-")[2]) or wanted in (f"{one.kind}s", one.kind)
    ]
    if not chosen:
        listed = ", ".join(one.name for one in all_items)
        raise BadInput(f"{found[0]} has no {item!r} here; choose one of {listed}.")
    return chosen


def _spelled(item: str) -> str:
    """Return the usual spelling: ``Table S.2`` is table-s2."""
    return re.sub(r"[\s_-]+", "-", item.strip().lower()).replace(".", "")


def _sorted(folder: Path) -> list[Path]:
    """Return a paper's files: tables before figures, the main text before appendices, numbers as numbers."""

    def place(path: Path) -> tuple[bool, str, int]:
        kind, _, number = path.stem.partition("-")
        letters, digits = re.match(r"([a-z]*)(\d*)", number).groups()  # type: ignore[union-attr]
        return kind != "table", letters, int(digits or 0)

    return sorted(folder.glob("*.toml"), key=place)
