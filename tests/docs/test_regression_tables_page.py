"""The page on real tables: its pictures are small, and every table of the benchmark is described."""

from pathlib import Path

from benchmarks.regression_tables_data import NAMES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "regression-tables.md").read_text()


def test_the_pictures_are_small() -> None:
    for name in ("regression-tables-coefficients.png", "regression-tables-paths.png"):
        assert f"({name})" in PAGE
        assert (DOCS / name).stat().st_size < 150_000


def test_every_table_is_described() -> None:
    described = PAGE.partition("## The tables")[2].partition("## What comes")[0]
    assert [line.split("|")[1].strip() for line in described.splitlines() if line.startswith("| ")][1:] == list(NAMES)
