"""Files that an option names, as in @budgets.csv: read within limits, and refused without showing what they hold."""

import re
from pathlib import Path
from typing import Any

from sottovoce.core.errors import BadInput

_LARGEST = 1 << 24  # bytes of a file that an option names


def read_text(path: Path, said: str) -> str:
    """Read a file that an option names; `said` begins the sentence of a refusal."""
    try:
        if path.exists() and (not path.is_file() or path.stat().st_size > _LARGEST):
            raise BadInput(f"{said}, which is no file, or one of more than {_LARGEST >> 20} MB; check it.")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        if isinstance(error, UnicodeDecodeError):
            raise BadInput(f"{path} is not text in UTF-8; write it again.") from None
        reason = error.strerror if isinstance(error, OSError) else "its name"
        raise BadInput(f"{said}, which cannot be read ({reason}); check it.") from None


def site_rows(path: Path, name: str) -> list[tuple[str, Any]]:
    """Read sites and values of a CSV file with columns site and ``name``, or of a JSON or TOML file."""
    readers = {".csv": csv_rows, ".json": _table_rows, ".toml": _table_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise BadInput(f"--{name} names the file {path}, whose ending is not known; give {', '.join(readers)}.")
    return reader(path, name)


def edge_words(path: Path) -> list[Any]:
    """Read the edges of a JSON list, or of a text with commas, blanks or line breaks between them."""
    import json

    text = read_text(path, f"--grid names the file {path}")
    try:
        found = json.loads(text) if path.suffix.lower() == ".json" else re.split(r"[\s,;]+", text.strip(" \t\r\n,;"))
    except (ValueError, RecursionError):
        raise BadInput(f"{path} is not JSON; write a list of edges, as in [0.1, 0.2, 0.5].") from None
    if not isinstance(found, list):
        raise BadInput(f"{path} does not list edges; write them as in [0.1, 0.2, 0.5].")
    words = found[1:] if found[:1] == ["grid"] else found  # the title of a column
    if not words or words == [""]:
        raise BadInput(f"{path} holds no edges; write at least one number.")
    return words


def csv_rows(path: Path, name: str) -> list[tuple[str, Any]]:
    """Read the columns site and ``name`` of a CSV file."""
    import csv

    text = read_text(path, f"--{name} names the file {path}")
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    for column in ("site", name):
        if column not in (rows.fieldnames or ()):
            raise BadInput(f"{path} has no column {column!r}; its first line must be like site,{name}.")
    return [(row["site"], row[name]) for row in rows]


def _table_rows(path: Path, name: str) -> list[tuple[str, Any]]:
    """Read the object of a JSON file or the table of a TOML file, or the one in it under ``name``."""
    import json
    import tomllib

    text = read_text(path, f"--{name} names the file {path}")
    try:
        found = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} is not JSON (line {error.lineno}); correct it.") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is not TOML ({error}); correct it.") from None
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        raise BadInput(f"{path} is nested too deeply, or holds too long a number; write one value a site.") from None
    if isinstance(found, dict) and isinstance(found.get(name), dict):
        found = found[name]
    if not isinstance(found, dict):
        raise BadInput(f"{path} does not map sites to values; write one value for each site.")
    return list(found.items())
