"""The sentences with which a column is refused: they name the place, the row and the kind of value, never a value."""

from sottovoce.core.errors import BadInput

KINDS = "every record must be a number, a duration or a date"
FINITE = "remove it, or cap it at a finite value"
DROP = 'remove it, or leave all missing values out with missing="drop"'


def sentence(where: str, rest: str) -> BadInput:
    """Begin a sentence with the place it is about; the name of a file keeps its own letters."""
    begins = where[:1].upper() if where.split(" ", 1)[0].isalpha() else where[:1]
    return BadInput(f"{begins}{where[1:]} {rest}")


def bad_row(where: str, row: int, kind: str, advice: str) -> BadInput:
    """Say that a row, counted here from 0 and in the sentence from 1, holds a value that cannot be used."""
    return sentence(where, f"holds {kind} in row {row + 1}: {advice}")


def kind_of(value: object) -> str:
    """Name the kind of an unusable value by its type alone."""
    name = type(value).__name__
    if isinstance(value, str | bytes):
        return "text"
    if name in ("bool", "bool_"):
        return "a truth value"
    if name.startswith("complex"):
        return "a complex number"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def check_missing(missing: str) -> None:
    """Refuse an unknown way to treat missing values."""
    if missing not in ("refuse", "drop"):
        raise BadInput(f'missing is {missing!r}: give missing="refuse" or missing="drop"')
