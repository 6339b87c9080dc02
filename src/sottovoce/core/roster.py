"""The roster of a study: what is public of its sites before any record answers, names and sizes above all."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sottovoce.core.unit import Unit


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
