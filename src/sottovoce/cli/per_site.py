"""One value for all sites, or one a site, as a user writes it: `1`, `north=0.5,south=2`, or `@budgets.csv`."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sottovoce.core.errors import BadInput

SiteValues = dict[str, float]


def per_site(text: str, name: str) -> float | SiteValues:
    """Read the value of an option such as --epsilon; a file has a column (CSV) or table (JSON, TOML) of that name.

    Examples
    --------
    >>> per_site("1", "epsilon"), per_site("north=0.5,south=inf", "epsilon")
    (1.0, {'north': 0.5, 'south': inf})
    """
    if text.startswith("@"):
        return read_values(Path(text[1:]).expanduser(), name)
    if "=" not in text:
        return as_number(text, f"--{name}", "give a number, one a site (north=0.5,south=2), or a file (@sites.csv)")
    pairs = [part.strip().rpartition("=") for part in text.split(",")]
    for site, _, value in pairs:
        if not site:
            raise BadInput(f"--{name} has a part {value!r} that is not site=number; write it as in north=0.5,south=2.")
    return _collected(((site.strip(), value) for site, _, value in pairs), f"--{name}")


def as_number(value: Any, where: str, advice: str = "correct it") -> float:
    """Turn text, or a number of a file, into a number."""
    try:
        if isinstance(value, bool | None):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{where} is {value!r}, which is not a number; {advice}.") from None
    if math.isinf(number) and "inf" not in str(value).lower():  # nobody gives up all privacy by a digit too many
        raise BadInput(f"{where} is {value!r}, which is beyond any number; {advice}.")
    return number


def read_values(path: Path, name: str) -> SiteValues:
    """Read one value a site from a CSV file with columns site and ``name``, or from a JSON or TOML file."""
    readers = {".csv": _csv_rows, ".json": _json_rows, ".toml": _toml_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise BadInput(f"--{name} names the file {path}, whose ending is not known; give {', '.join(readers)}.")
    try:
        rows = reader(path.read_text(encoding="utf-8-sig"), path, name)
    except OSError as error:
        raise BadInput(f"--{name} names the file {path}, which cannot be read ({error.strerror}); check it.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8; write it again.") from None
    found = _collected(rows, str(path))
    if not found:
        raise BadInput(f"{path} names no sites; give one value for each site.")
    return found


def _collected(rows: Iterable[tuple[str, Any]], where: str) -> SiteValues:
    """Collect one number a site, refusing a site named twice."""
    found: SiteValues = {}
    for site, value in rows:
        if site in found:
            raise BadInput(f"{where} names site {site!r} twice; keep one.")
        found[site] = as_number(value, f"the value of site {site!r} in {where}")
    return found


def _csv_rows(text: str, path: Path, name: str) -> list[tuple[str, Any]]:
    """Read the columns site and ``name`` of a CSV file."""
    import csv

    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    for column in ("site", name):
        if column not in (rows.fieldnames or ()):
            raise BadInput(f"{path} has no column {column!r}; its first line must be like site,{name}.")
    return [(row["site"], row[name]) for row in rows]


def _json_rows(text: str, path: Path, name: str) -> list[tuple[str, Any]]:
    """Read the object of a JSON file, or the one under ``name``."""
    import json

    try:
        return _table(json.loads(text), path, name)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} is not JSON (line {error.lineno}); correct it.") from None


def _toml_rows(text: str, path: Path, name: str) -> list[tuple[str, Any]]:
    """Read the table of a TOML file, or the one under ``name``."""
    import tomllib

    try:
        return _table(tomllib.loads(text), path, name)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is not TOML ({error}); correct it.") from None


def _table(found: Any, path: Path, name: str) -> list[tuple[str, Any]]:
    """List the pairs of site and value."""
    if isinstance(found, dict) and isinstance(found.get(name), dict):
        found = found[name]
    if not isinstance(found, dict):
        raise BadInput(f"{path} does not map sites to values; write one value for each site.")
    return list(found.items())
