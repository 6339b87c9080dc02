"""The roster of a study: what is public of its sites before any record answers, names and sizes above all."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import NamedTuple

from sottovoce.core.checks import is_one_of, unknown
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import hides, quoted
from sottovoce.core.unit import Unit

KINDS = ("counts", "scores", "amounts")


class Strata(NamedTuple):
    """What a study is divided into, where it is by more than sites: records of one site, group and public weight.

    Of each stratum: the site that holds it, its group, and how much each of its records counts; groups and weights are
    empty where there are none. ``by`` is what the groups were told apart by, the name of a column, if it has one.
    """

    sites: tuple[str, ...]
    groups: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    by: str = ""

    def only(self, stay: Sequence[bool]) -> "Strata":
        """Return some of the strata."""
        sites, groups = tuple(compress(self.sites, stay)), tuple(compress(self.groups, stay))
        return Strata(sites, groups, tuple(compress(self.weights, stay)), self.by)


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
    column: str = ""  # what the records are called, where they came from a named column
    strata: Strata | None = None  # where what answers as a site is a part of one, by group or by weight

    @property
    def places(self) -> tuple[str, ...]:
        """Return the site of each that answers: itself, or the one that holds it."""
        return self.names if self.strata is None else self.strata.sites

    @property
    def weights(self) -> tuple[float, ...]:
        """Return how much each record counts, a number for each that answers."""
        given = () if self.strata is None else self.strata.weights
        return given or (1.0,) * len(self.names)

    @property
    def weighted(self) -> bool:
        """Tell whether records count by public weights."""
        return self.strata is not None and bool(self.strata.weights)

    @property
    def mixed(self) -> bool:
        """Tell whether records of one site and group count by different weights."""
        if self.strata is None:
            return False
        groups = self.strata.groups or ("",) * len(self.places)
        return len(set(zip(self.places, groups, strict=True))) < len(
            set(zip(self.places, groups, self.weights, strict=True))
        )

    def only(self, stay: Sequence[bool]) -> "Roster":
        """Return the roster of some of the sites."""
        names, sizes = tuple(compress(self.names, stay)), tuple(compress(self.sizes, stay))
        dropped = {name: self.dropped.get(name, 0) for name in names}
        strata = None if self.strata is None else self.strata.only(stay)
        return replace(self, names=names, sizes=sizes, dropped=dropped, strata=strata)

    def __post_init__(self) -> None:
        if any(map(hides, self.names)):
            raise BadInput("a site has a control or invisible character in its name: rename it")

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return what is doubtful about the names, worth knowing before any record answers."""
        return doubtful_names(dict.fromkeys(self.places))


def doubtful_names(names: Iterable[str]) -> tuple[str, ...]:
    """Say which sites have names that differ only in case, blanks or the way their letters are coded.

    >>> doubtful_names(["North", "south", "north "])[0].partition(":")[0]
    "sites 'North' and 'north ' may be one site"
    """
    seen: dict[str, str] = {}
    pairs = [(first, name) for name in names if (first := seen.setdefault(_bare(name), name)) != name]
    if not pairs:
        return ()
    first, second = pairs[0]
    more = f" (and {len(pairs) - 1:,} more such names)" if len(pairs) > 1 else ""
    return (
        f"sites {quoted(first)} and {quoted(second)}{more} may be one site: their names differ only in case, blanks or "
        "coding; if so, give it one name",
    )


def _bare(name: str) -> str:
    """Reduce a name to what is left without case, blanks around it, doubled blanks and other ways to code a letter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().replace("_", " ").split())


def check_kind(kind: str | None, unit: Unit) -> str | None:
    """Return what records are declared to be, or refuse."""
    if kind is not None and not is_one_of(kind, KINDS):
        raise unknown("kind", kind, KINDS)
    if kind is not None and unit.kind != "number":
        raise BadInput(f"kind={kind!r} is said of numbers, and the records are {unit.plural}; leave it out.")
    return kind
