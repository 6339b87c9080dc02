"""Who would be asked: people by site and by group, or in which parts, where their number is what is wanted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sottovoce.core.checks import check_names, label_text, number
from sottovoce.core.errors import BadInput

MOST_SITES, MOST_PEOPLE = 10_000, 1e12
WHOLE = ""  # the name of the only group


@dataclass(frozen=True)
class PlannedGroup:
    """A group and its sites; ``sizes`` are people, or parts of them where the number of people is wanted."""

    name: str
    sites: tuple[str, ...]
    sizes: tuple[float, ...]


@dataclass(frozen=True)
class PlannedCrowd:
    """All groups; ``known`` tells whether their sizes are people."""

    groups: tuple[PlannedGroup, ...]
    known: bool

    @property
    def total(self) -> float:
        """Return all people, or all parts."""
        return sum(sum(group.sizes) for group in self.groups)

    @property
    def sites(self) -> int:
        """Return the number of sites."""
        return sum(len(group.sites) for group in self.groups)

    def of(self, people: float) -> "PlannedCrowd":
        """Return so many people, divided as now."""
        factor = people / self.total
        groups = tuple(
            PlannedGroup(group.name, group.sites, tuple(float(max(round(factor * size), 1)) for size in group.sizes))
            for group in self.groups
        )
        return PlannedCrowd(groups, known=True)

    def plain(self) -> Any:
        """Return the people of each site, below each group where there are several."""
        found = {
            group.name: {site: round(size) for site, size in zip(group.sites, group.sizes, strict=True)}
            for group in self.groups
        }
        return found[WHOLE] if list(found) == [WHOLE] else found


def read_crowd(people: Any, sites: Any, groups: Any) -> PlannedCrowd:
    """Read who would be asked: a number in all, a number a site, and the like for each group.

    >>> read_crowd(9_000, 3, None).plain()
    {'site 1': 3000, 'site 2': 3000, 'site 3': 3000}
    >>> read_crowd({"men": 4_000, "women": {"north": 1_000, "south": 2_000}}, None, True).plain()
    {'men': {'men': 4000}, 'women': {'north': 1000, 'south': 2000}}
    """
    names = None if isinstance(groups, bool | None) else _names(groups, "groups")
    if isinstance(people, Mapping):
        if not people:
            raise BadInput("people is an empty mapping; give a number of people, or one a site.")
        if sites is not None:
            raise BadInput("people names the sites already; leave sites out.")
        nested = any(isinstance(each, Mapping) for each in people.values())
        if not (nested or groups):
            return PlannedCrowd((_group(WHOLE, people),), known=True)
        if names is not None and {label_text(each) for each in people} != set(names):
            raise BadInput("groups and people name different groups; name them in people alone.")
        found = [
            _group(label_text(name), each if isinstance(each, Mapping) else {name: each})
            for name, each in people.items()
        ]
        check_names([group.name for group in found])
        return PlannedCrowd(tuple(found), known=True)
    whole = None if people is None else _count(people, "people")
    places = _sites(sites)
    labels = names or ((WHOLE,) if not groups else None)
    if labels is None:
        raise BadInput(
            "groups are not named: give people as a mapping from group to people, or groups a list of names."
        )
    parts = tuple(PlannedGroup(name, places, (1.0,) * len(places)) for name in labels)
    crowd = PlannedCrowd(parts, known=False)
    if whole is None:
        return crowd
    if whole < crowd.sites:
        raise BadInput(
            f"{whole:,.0f} people at {crowd.sites:,} sites leave sites without anybody; correct one of them."
        )
    return crowd.of(whole)


def _group(name: str, given: Mapping[Any, Any]) -> PlannedGroup:
    """Return one group from its people by site."""
    sites = check_names(given)
    sizes = tuple(_count(size, f"people of {site!r}") for site, size in zip(sites, given.values(), strict=True))
    return PlannedGroup(name, tuple(sites), sizes)


def _count(value: Any, where: str) -> float:
    """Return a number of people, or refuse."""
    size = number(value, where)
    if not (1 <= size <= MOST_PEOPLE and size == round(size)):
        raise BadInput(f"{where} must be a whole number from 1 on, not {size:g}; correct it.")
    return size


def _sites(sites: Any) -> tuple[str, ...]:
    """Return the names of sites of one size: as many as were said, or as were named."""
    if sites is None:
        return ("people",)
    if isinstance(sites, bool | int | float):
        count = _count(sites, "sites")
        if count > MOST_SITES:
            raise BadInput(f"a plan has at most {MOST_SITES:,} sites, not {count:,.0f}; plan for fewer, larger ones.")
        return tuple(f"site {place}" for place in range(1, int(count) + 1)) if count > 1 else ("people",)
    return _names(sites, "sites")


def _names(given: Any, where: str) -> tuple[str, ...]:
    """Return names from a sequence of them."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise BadInput(f"{where} must be a list of names, not a {type(given).__name__}; correct it.")
    found = check_names(given)
    if not found:
        raise BadInput(f"{where} names nobody; leave it out, or name some.")
    return tuple(found)
