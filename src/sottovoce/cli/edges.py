"""The edges of a public grid, as a user writes them: `0.1,0.2,0.5`, or a file that holds them, `@edges.csv`."""

import re
from pathlib import Path
from typing import Any

from sottovoce.cli.per_site import as_number
from sottovoce.core.errors import BadInput


def edges(text: str | None) -> list[float] | None:
    """Read --grid: numbers with commas between them, or a file of numbers.

    Examples
    --------
    >>> edges("-0.5, 0, 2"), edges(None)
    ([-0.5, 0.0, 2.0], None)
    """
    if text is None:
        return None
    if text.startswith("@"):
        path = Path(text[1:]).expanduser()
        return [as_number(word, f"an edge in {path}") for word in _read(path)]
    advice = "give rising numbers with commas between them (0.1,0.2,0.5), or a file (@edges.csv)"
    return [as_number(word.strip(), "an edge of --grid", advice) for word in text.split(",")]


def _read(path: Path) -> list[Any]:
    """Read the edges of a JSON list, or of a text with commas, blanks or line breaks between them."""
    import json

    try:
        text = path.read_text(encoding="utf-8-sig")
        found = json.loads(text) if path.suffix.lower() == ".json" else re.split(r"[\s,;]+", text.strip(" \t\r\n,;"))
    except OSError as error:
        raise BadInput(f"--grid names the file {path}, which cannot be read ({error.strerror}); check it.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8; write it again.") from None
    except (json.JSONDecodeError, RecursionError):
        raise BadInput(f"{path} is not JSON; write a list of edges, as in [0.1, 0.2, 0.5].") from None
    if not isinstance(found, list):
        raise BadInput(f"{path} does not list edges; write them as in [0.1, 0.2, 0.5].")
    words = found[1:] if found[:1] == ["grid"] else found  # the title of a column
    if not words or words == [""]:
        raise BadInput(f"{path} holds no edges; write at least one number.")
    return words
