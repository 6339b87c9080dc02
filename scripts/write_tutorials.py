"""Run the tutorials of `docs/tutorials/`: write into each page what its code prints, make its notebook and pictures.

A page is the source: text, and blocks of Python and of commands that run one after the other. A block of `text` right
after them is what they print, and is filled in. So that it can be compared again (`tests/docs/test_tutorials.py`), the
system's words are drawn from a seed here; a block titled "one run" comes from programs that draw their own.
"""

import contextlib
import importlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import sottovoce as sv
from sottovoce.core.arrays import Words
from sottovoce.core.random_source import SystemEntropy

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
SEED = 7
ONE_RUN = ' title="one run"'
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"!\[[^\]]*\]\(([\w-]+\.png)\)")
NOTE = re.compile(r'^!!! \w+ "([^"]*)"\n+((?:    [^\n]*\n|\n)+)', re.MULTILINE)
COLOURS, LARGEST = 160, 60_000  # of a picture: colours, and bytes


class Cell(NamedTuple):
    """A part of a page: its kind ("markdown", "python" or "sh"), its text, and what it prints (None: nothing shown)."""

    kind: str
    text: str
    printed: str | None = None
    one_run: bool = False


def tutorials() -> list[Path]:
    """Return the pages that have a notebook."""
    return sorted(page for page in FOLDER.glob("*.md") if page.stem != "index")


def cells(page: str) -> list[Cell]:
    """Part a page into its cells.

    >>> [cell.kind for cell in cells("# Title")]
    ['markdown']
    """
    found: list[Cell] = []
    end = 0
    for fence in FENCE.finditer(page):
        between, end = page[end : fence.start()].strip("\n"), fence.end()
        language, title, body = fence.groups()
        if language == "text" and not between and found and found[-1].kind != "markdown":
            found[-1] = found[-1]._replace(printed=body, one_run=title == ONE_RUN)
            continue
        if between:
            found.append(Cell("markdown", between))
        runs = language in ("python", "sh") and not title
        found.append(Cell(language, body) if runs else Cell("markdown", fence.group()))
    rest = page[end:].strip("\n")
    return [*found, Cell("markdown", rest)] if rest else found


def written(parts: list[Cell]) -> str:
    """Return the page that some cells are."""
    blocks = []
    for cell in parts:
        blocks.append(cell.text if cell.kind == "markdown" else f"```{cell.kind}\n{cell.text}```")
        if cell.printed:
            blocks.append(f"```text{ONE_RUN if cell.one_run else ''}\n{cell.printed}```")
    return "\n\n".join(blocks) + "\n"


@contextlib.contextmanager
def seeded_words(seed: int) -> Iterator[None]:
    """Draw the system's words from a seed, so that what is printed can be compared."""
    dice = sv.sim.dice(seed)

    def words(_: SystemEntropy, n: int) -> Words:
        return dice.words(n)

    with patch.object(SystemEntropy, "words", words):
        yield


def run(parts: list[Cell]) -> list[Cell]:
    """Run cells one after the other in the folder where one stands; return them with what they print."""
    importlib.import_module("sottovoce.client.fingerprint")  # which draws a key of the process when it is imported
    names: dict[str, Any] = {"__name__": "__main__"}
    found: list[Cell] = []
    for cell in parts:
        if cell.kind == "markdown":
            found.append(cell)
            continue
        number = sum(each.kind != "markdown" for each in found)
        out = io.StringIO()
        # a seed for each cell: how many words programs take that talk to each other depends on the clock
        with contextlib.redirect_stdout(out), seeded_words(SEED + number):
            if cell.kind == "python":
                exec(compile(cell.text, f"cell {number}", "exec"), names)
            else:
                command(cell.text)
        printed = "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
        found.append(cell._replace(printed=printed or None))
    return found


def command(text: str) -> None:
    """Run the commands of a block inside this process."""
    from typer.testing import CliRunner

    from sottovoce.cli import app

    for line in text.replace("\\\n", " ").splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:], env={"COLUMNS": "80", "TERM": "dumb"})
        if done.exit_code:
            raise RuntimeError(f"{line}: {done.output}")
        sys.stdout.write(done.stdout)


def notebook(parts: list[Cell]) -> str:
    """Return the notebook of a page, which shows what the page shows.

    >>> "nbformat" in notebook([Cell("python", "print(1)", "1")])
    True
    """
    nbformat: Any = importlib.import_module("nbformat")
    made: list[dict[str, Any]] = []
    for number, cell in enumerate(parts):
        common = {"id": f"cell-{number}", "metadata": {}}
        if cell.kind == "markdown":
            made.append({"cell_type": "markdown", "source": for_notebook(cell.text), **common})
            continue
        text = cell.text if cell.kind == "python" else "".join(f"!{line}\n" for line in cell.text.splitlines())
        outputs = [{"output_type": "stream", "name": "stdout", "text": cell.printed}] if cell.printed else []
        code = {"source": text.rstrip("\n"), "outputs": outputs, "execution_count": None}
        made.append({"cell_type": "code", **code, **common})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    book = nbformat.from_dict({"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5})
    nbformat.validate(book)
    return str(nbformat.writes(book)) + "\n"


def for_notebook(text: str) -> str:
    """Return text as notebooks show it: a note becomes a quotation."""

    def quoted(note: re.Match[str]) -> str:
        title, body = note.groups()
        lines = [line[4:] for line in body.strip("\n").splitlines()]
        return f"> **{title}.** " + "\n> ".join(lines) + "\n\n"

    return NOTE.sub(quoted, text + "\n").strip("\n")


def pictures(parts: list[Cell]) -> list[str]:
    """Return the pictures that a page shows."""
    return [name for cell in parts if cell.kind == "markdown" for name in PICTURE.findall(cell.text)]


def keep_picture(name: str) -> None:
    """Take a picture that the code has drawn here into the folder of the pages, with few colours."""
    from PIL import Image

    with Image.open(name) as drawn:
        drawn.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)
    size = (FOLDER / name).stat().st_size
    if size > LARGEST:
        raise RuntimeError(f"{name} has {size:,} bytes, more than {LARGEST:,}: draw it smaller")


def main() -> None:
    """Write the pages that are named, or all."""
    warnings.simplefilter("ignore")
    asked = sys.argv[1:]
    for page in tutorials():
        if asked and page.stem not in asked:
            continue
        here = Path.cwd()
        with tempfile.TemporaryDirectory(prefix="sottovoce-") as folder:
            os.chdir(folder)
            try:
                parts = run(cells(page.read_text(encoding="utf-8")))
                for name in pictures(parts):
                    keep_picture(name)
            finally:
                os.chdir(here)
        page.write_text(written(parts), encoding="utf-8")
        page.with_suffix(".ipynb").write_text(notebook(parts), encoding="utf-8")
        sys.stdout.write(f"{page.name}: {sum(cell.kind == 'python' for cell in parts)} blocks of Python\n")


if __name__ == "__main__":
    main()
