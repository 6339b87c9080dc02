"""The plan of a quantile for every group: who takes part and what is known, checked before any record answers.

A group is a site, or all records with one label, wherever they are held. Groups are planned one by one, as if each were
asked alone; one too small for any answer is left out and named, before anybody is asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.checks import (
    confidence,
    dimensions,
    first_few,
    is_one_of,
    label_text,
    nearest,
    per_site,
    unknown,
)
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.roster import Roster, doubtful_names
from sottovoce.core.shown import quoted
from sottovoce.core.unit import Unit
from sottovoce.inference.common.several import each_of
from sottovoce.inference.quantile import on_average
from sottovoce.server.quantile.expected import certifies, expected_reach
from sottovoce.server.quantile.feasibility import ANY, CERTIFIED, SCARCE, expected, support
from sottovoce.server.quantile.groups.protocol import has_common_search
from sottovoce.server.quantile.left_out import part_of
from sottovoce.server.quantile.plan import QuantilePlan, check_shares, plan_quantile

METHODS = ("staged", "certified")
OTHERS = "others"  # the word for the mean of the others, unless a group has that name
SHRINKAGES = ("each", "average")
MOST_GROUPS = 500  # each is a study of its own
SEARCHED = 0.03  # of the records, about, that the common search takes
FEW_FOR_AVERAGE = (
    f"fewer than {on_average.FEWEST} groups with smooth intervals do not tell how far groups lie apart, on which "
    "shrinkage='average' rests: the groups help each other as with 'each', and every interval keeps its own level"
)
ENDLESS = "of which no end of an interval could be told"


class LeftOutGroup(NamedTuple):
    """A group too small to take part: its name, its records, and why it cannot be asked, in words."""

    name: str
    records: int
    reason: str


@dataclass(frozen=True, eq=False)
class GroupsPlan:
    """A checked study of groups: what is public of all sites together, and the plan of every group."""

    whole: QuantilePlan
    names: tuple[str, ...]
    plans: tuple[QuantilePlan, ...]
    exact: frozenset[str]  # the groups that are certified from the start: all, or those whose records are scarce
    level: float
    simultaneous: bool
    certified: bool
    shrinkage: str
    by: str
    left_out: tuple[LeftOutGroup, ...]
    warnings: tuple[str, ...] = ()

    def method(self, name: str) -> str:
        """Return how a group is asked."""
        return "certified" if name in self.exact else "staged"

    @property
    def each(self) -> float:
        """Return the level of every group's own study."""
        return _each(self.level, len(self.names), self.simultaneous)

    @cached_property
    def members(self) -> tuple[Ints, ...]:
        """Return of each group which of all that answer are its own."""
        place = {name: i for i, name in enumerate(self.whole.names)}
        return tuple(np.array([place[name] for name in plan.names]) for plan in self.plans)

    @property
    def left(self) -> float:
        """Return the part of the records, about, that answers for the groups themselves."""
        return 1 - (SEARCHED if has_common_search(self.whole.crowd, len(self.plans)) else 0)

    @cached_property
    def reaches(self) -> dict[str, tuple[float, float]]:
        """Return from which quantile to which the interval of every group will run, about."""
        return {
            name: expected_reach(plan, self.method(name), self.each, self.left)
            for name, plan in zip(self.names, self.plans, strict=True)
        }

    @property
    def endless(self) -> list[str]:
        """Return the groups of whose interval neither end is likely to be told."""
        return [name for name, reach in self.reaches.items() if reach == (0.0, 1.0)]

    @cached_property
    def expects(self) -> dict[str, str]:
        """Return how groups are likely to be answered: "staged", "pairs" (where records are scarce) or "certified"."""
        found = {}
        for name, plan in zip(self.names, self.plans, strict=True):
            crowd = plan.crowd.thinned(self.left)
            scarce = support(crowd, plan.tau).ratio > SCARCE
            found[name] = "certified" if certifies(plan, self.method(name), crowd) else "pairs" if scarce else "staged"
        return found

    def check_group(self, name: Any) -> None:
        """Refuse a group to compare with that does not take part, one group alone, and values without differences."""
        check_group(name, self.names, self.whole.roster.unit)


def plan_groups(
    roster: Roster,
    tau: Any,
    epsilon: Any,
    *,
    level: float = 0.95,
    method: str = "staged",
    simultaneous: bool = True,
    shrinkage: str | None = None,
    shares: Any = "pooled",
    **known: Any,
) -> GroupsPlan:
    """Check all input of a study of groups over the public facts of its sites."""
    confidence(level)
    if not is_one_of(method, METHODS):
        raise unknown("for groups method", method, METHODS)
    if not isinstance(simultaneous, bool | np.bool_):
        raise BadInput(f"simultaneous must be True or False, not {quoted(simultaneous)}.")
    _check_shrinkage(shrinkage, bool(simultaneous), method)
    if dimensions(tau):
        raise BadInput("tau is one level for all groups; ask for each level by itself.")
    labels = _labels(roster)
    check_shares(shares, roster)
    told = per_site(epsilon, roster.places, "epsilon")
    budgets = {site: each for site, (each, _) in zip(roster.places, told, strict=True)}
    public = {**known, "limits": CERTIFIED, "certified": method == "certified"}
    plans: dict[str, QuantilePlan] = {}
    gone: list[LeftOutGroup] = []
    for name in dict.fromkeys(labels):
        own = roster.only([label == name for label in labels])
        try:
            plans[name] = plan_quantile(own, tau, _own(budgets, own), shares=_shares(shares, own), **public)
        except Infeasible as error:
            gone.append(LeftOutGroup(name, sum(own.sizes), str(error).partition(", and there are")[0]))
    by = roster.strata.by if roster.strata is not None and roster.strata.groups else "site"
    while plans:
        taking = {name for plan in plans.values() for name in plan.names}
        rest = roster.only([name in taking for name in roster.names])
        whole = plan_quantile(rest, tau, _own(budgets, rest), **{**public, "limits": ANY})
        whole = replace(whole, crowd=replace(whole.crowd, shares=_overall(whole, plans.values())))
        certified = method == "certified" or whole.atoms
        together = _together(plans, whole, certified)
        found = GroupsPlan(
            whole, tuple(plans), *together, level, bool(simultaneous), certified, shrinkage or "", by, tuple(gone)
        )
        if not found.endless:
            found.members  # noqa: B018 - a plan whose groups do not fit together fails here, and nobody has paid
            told_before = (*roster.doubts, *_doubts(found, labels), *_said(found, roster))
            return replace(found, whole=replace(whole, warnings=()), warnings=told_before)
        gone += [LeftOutGroup(name, sum(plans.pop(name).roster.sizes), ENDLESS) for name in found.endless]
    raise Infeasible(
        f"every group is too small for an answer, {gone[0].name!r} among them ({gone[0].records:,} records, "
        f"{gone[0].reason}); join groups, raise epsilon, give bounds=(low, high), or ask a level nearer 0.5."
    )


def _labels(roster: Roster) -> tuple[str, ...]:
    """Return the group of each that answers, or refuse one group alone, and too many."""
    labels = roster.places if roster.strata is None or not roster.strata.groups else roster.strata.groups
    number = len(set(labels))
    if number < 2:
        raise BadInput(f"there is only one group, {quoted(labels[0])}; ask for one quantile instead.")
    if number > MOST_GROUPS:
        raise BadInput(
            f"there are {number:,} groups, and at most {MOST_GROUPS} are asked at once; ask fewer, or join some."
        )
    return labels


def _each(level: float, groups: int, simultaneous: bool) -> float:
    """Return the level of every group's own study."""
    return each_of(level, groups) if simultaneous else level


def _together(
    plans: Mapping[str, QuantilePlan], whole: QuantilePlan, certified: bool
) -> tuple[tuple[QuantilePlan, ...], frozenset[str]]:
    """Return the plans of groups that search together, and who is certified: where records are scarce, for one.

    Pairs take the density to be smooth, and see in their own search where it is not, which others do here. What the
    others' records show says nothing of a group of few.
    """
    located = has_common_search(whole.crowd, len(plans))
    found = {name: replace(plan, located=located, warnings=()) for name, plan in plans.items()}
    scarce = {
        name
        for name, plan in found.items()
        if located and support(plan.crowd.thinned(1 - SEARCHED), plan.tau).ratio > SCARCE
    }
    return tuple(found.values()), frozenset(plans if certified else scarce)


def check_group(name: Any, names: Sequence[str], unit: Unit) -> str | None:
    """Return a group to compare with, or None for the mean of the others, or refuse."""
    if len(names) < 2:
        raise BadInput("there is only one group to compare; ask more than one.")
    if unit.censored is not None:
        raise BadInput(
            f"groups are compared by differences of numbers, and {unit.censored.words}; whether all groups are equal "
            "is tested without."
        )
    wanted = OTHERS if name is None else label_text(name)
    if name is None or (wanted == OTHERS and wanted not in names):
        return None
    if not is_one_of(wanted, names):
        near = nearest(wanted, names)
        raise BadInput(f"there is no group {quoted(wanted)}{near} to compare with; give one of them, or '{OTHERS}'.")
    return wanted


def _check_shrinkage(shrinkage: Any, simultaneous: bool, method: str) -> None:
    """Refuse a shrinkage that is unknown, or cannot be had."""
    if shrinkage is None:
        return
    if not is_one_of(shrinkage, SHRINKAGES):
        raise unknown("shrinkage", shrinkage, SHRINKAGES)
    if method == "certified":
        raise BadInput("certified intervals are not shrunk: both their sides have the whole error; leave one out.")
    if shrinkage == "average" and simultaneous:
        raise BadInput(
            "shrinkage='average' holds on average over the groups, not for all together; give simultaneous=False, or "
            "shrinkage='each'."
        )


def _own(values: Mapping[str, Any], roster: Roster) -> dict[str, Any]:
    """Return what a mapping by site says of some sites."""
    return {site: values[site] for site in dict.fromkeys(roster.places)}


def _shares(shares: Any, roster: Roster) -> Any:
    """Return the shares of the sites of a group, which sum to one again."""
    if not isinstance(shares, Mapping):
        return shares
    own = _own({label_text(site): share for site, share in shares.items()}, roster)
    return {site: share / sum(own.values()) for site, share in own.items()}


def _overall(whole: QuantilePlan, plans: Iterable[QuantilePlan]) -> Floats:
    """Return what each counts in the search of all: in its group as there, a group as much as its records weigh."""
    found: dict[str, float] = {}
    for plan in plans:
        weight = float(np.dot(plan.roster.sizes, plan.roster.weights))
        found |= {name: weight * share for name, share in zip(plan.names, plan.crowd.shares.tolist(), strict=True)}
    shares = np.array([found[name] for name in whole.names])
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def _doubts(plan: GroupsPlan, labels: Sequence[str]) -> tuple[str, ...]:
    """Say which groups may be one, where they are not the sites."""
    if plan.by == "site":
        return ()
    return tuple(text.replace("sites ", "groups ").replace("one site", "one group") for text in doubtful_names(labels))


def _lost(plan: GroupsPlan, roster: Roster) -> str:
    """Say which part of a group's weight its parts that are left out have, at most."""
    if not roster.weighted:
        return ""
    groups = [
        (roster.only([name in (*each.names, *each.left_out) for name in roster.names]), each) for each in plan.plans
    ]
    most = max(part_of(own, each.left_out) or 0.0 for own, each in groups)
    return f", without {most:.2%} of a group's weight at most"


def _said(plan: GroupsPlan, roster: Roster) -> list[str]:
    """Say who is left out, and which groups have few records."""
    said = []
    if plan.left_out:
        names, first = [group.name for group in plan.left_out], plan.left_out[0]
        said.append(
            f"{named(names)} {_have(names)} too few records for an answer, and nobody there is asked "
            f"({first.name!r}: {first.records:,} records, {first.reason})"
        )
    small = [name for name, each in zip(plan.names, plan.plans, strict=True) if each.left_out]
    if small:
        what, over = ("sites", "sites") if not roster.mixed else ("parts of one weight", "parts")
        said.append(
            f"in {named(small)} {what} with too few records are left out, not asked: the answer is over the other "
            f"{over}{_lost(plan, roster)}"
        )
    if plan.certified:
        return said
    if plan.shrinkage == "average" and sum(how != "certified" for how in plan.expects.values()) < on_average.FEWEST:
        said.append(FEW_FOR_AVERAGE)
    few: dict[str, list[str]] = {}
    for name, how in plan.expects.items():
        few.setdefault(how, []).append(name)
    if "pairs" in few:
        said.append(
            f"{named(few['pairs'])} {_have(few['pairs'])} few records: the interval takes the density to be smooth "
            "around the quantile"
        )
    if "certified" in few:
        studies = dict(zip(plan.names, plan.plans, strict=True))
        least = min(few["certified"], key=lambda name: sum(studies[name].roster.sizes))
        said.append(
            f"{named(few['certified'])} {_have(few['certified'])} so few records that the interval is certified: it "
            f"holds for every distribution and is long; of {least!r} expect one {expected(*plan.reaches[least])}"
        )
    return said


def named(names: Sequence[str]) -> str:
    """Name a group, or say how many they are and the first few.

    >>> named(["a"]), named(["a", "b"])
    ("group 'a'", "2 groups ('a', 'b')")
    """
    return f"group {names[0]!r}" if len(names) == 1 else f"{len(names)} groups ({first_few(names)})"


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
