"""The options that several commands share, each declared once, and the two ways in which any option is declared."""

from typing import Annotated, Any

import typer


def option(metavar: str, text: str) -> Any:
    """Declare an option that takes a word; `metavar` stands for the word in the help."""
    return typer.Option(metavar=metavar, help=text)


def flag(name: str, text: str) -> Any:
    """Declare an option that takes nothing."""
    return typer.Option(name, help=text)


FILES = "Parquet, CSV or Arrow: one file a site, or any with --site; globs too."
VALUE = "Column of the records: numbers, durations, dates."
BUDGET = "1; or a site: north=0.5,south=inf; or @sites.csv (.json, .toml)."

Files = Annotated[list[str], typer.Argument(metavar="FILES", help=FILES)]
Value = Annotated[str, option("COLUMN", VALUE)]
Site = Annotated[str | None, option("COLUMN", "Column that says where a record is held.")]
Person = Annotated[str | None, option("COLUMN", "Make the person the unit of privacy: one record each is drawn.")]
DropMissing = Annotated[bool, flag("--drop-missing", "Leave missing values out and count them.")]
Level = Annotated[float, option("LEVEL", "Confidence level.")]
Scale = Annotated[str | None, option("WIDTH", "Rough public spread of the records; shortens the search.")]
Resolution = Annotated[str | None, option("STEP", "Public step the records are rounded to.")]
Json = Annotated[bool, flag("--json", "Print one JSON object instead of the table.")]
NoProgress = Annotated[bool, flag("--no-progress", "Show no progress bar.")]
