"""The page of the papers' tables: its table is what the records in `papers/` say, its commands and paths exist."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from sottovoce_papers.harness.catalogue import paper_names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "scripts" / "write_reproduction_page.py"
    spec = importlib.util.spec_from_file_location("write_reproduction_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_what_is_recorded(script: ModuleType) -> None:
    (said,) = script.PLACE.findall(PAGE)
    assert said == script.table(script.outcomes())


def test_comparable_numbers_come_out(script: ModuleType) -> None:
    counts = script.added(script.tally(outcome.numbers) for outcome in script.outcomes())
    assert counts.printed > 2000
    assert counts.missing == 0
    assert counts.share >= 0.95


def test_the_pictures_are_there() -> None:
    names = re.findall(r"!\[[^]]+\]\(([^)]+)\)", PAGE)
    assert len(names) >= 4
    for name in names:
        assert (ROOT / "docs" / name).stat().st_size > 5_000


def test_every_paper_is_named() -> None:
    for folder in paper_names(ROOT / "papers"):
        assert folder in PAGE
