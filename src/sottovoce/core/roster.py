"""The roster of a study: what is public of its sites before any record answers, names and sizes above all."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sottovoce.core.checks import is_one_of
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit

KINDS = ("counts", "scores", "amounts")


@dataclass(frozen=True)
class Roster:
    """Who takes part, with how many records, measured in what, and what was left out when they were read."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    unit: Unit
    dropped: Mapping[str, int] = field(default_factory=dict)
    unplaced: int = 0
    left_out: int = 0
    per_person: bool = False
    seeded: bool = False  # whether the persons' records were drawn with a seed, which makes every result a simulation
    kind: str | None = None  # what whoever read the records declared them to be, one of KINDS


def check_kind(kind: str | None, unit: Unit) -> str | None:
    """Return what records are declared to be, or refuse."""
    if kind is not None and not is_one_of(kind, KINDS):
        raise BadInput(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}; choose one, or leave it out.")
    if kind is not None and unit.kind != "number":
        raise BadInput(f"kind={kind!r} is said of numbers, and the records are {unit.plural}; leave it out.")
    return kind
