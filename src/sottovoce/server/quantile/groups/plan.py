"""The plan of a quantile for every group: who takes part and what is known, checked before any record answers.

A group is a site, or all records with one label, wherever they are held. Groups are planned one by one, as if each
were asked alone; one too small for any answer is left out and named, before anybody is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.checks import confidence, dimensions, first_few, is_one_of, label_text, nearest, per_site, unknown
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.roster import Roster, doubtful_names
from sottovoce.core.shown import quoted
from sottovoce.inference.common.several import each_of
from sottovoce.protocol.card import Card
from sottovoce.server.quantile.expected import certifies
from sottovoce.server.quantile.feasibility import CERTIFIED, SCARCE, support
from sottovoce.server.quantile.groups.protocol import has_common_search, part_looking
from sottovoce.server.quantile.plan import QuantilePlan, check_shares, plan_quantile

METHODS = ("staged", "certified")
OTHERS = "others"  # what a group is compared with: the mean of the others
SHRINKAGES = ("each", "average")
MOST_GROUPS = 500  # each is a study of its own
SEARCHED = 0.03  # of the records, about, that the common search takes


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
    level: float
    simultaneous: bool
    certified: bool
    shrinkage: str
    by: str
    left_out: tuple[LeftOutGroup, ...]
    looking: float  # the part of all records that looks whether the density is smooth
    warnings: tuple[str, ...]

    @property
    def method(self) -> str:
        """Return how the groups are asked."""
        return "certified" if self.certified else "staged"

    @property
    def each(self) -> float:
        """Return the level of every group's own study."""
        return each_of(self.level, len(self.names)) if self.simultaneous else self.level

    @property
    def members(self) -> tuple[Ints, ...]:
        """Return of each group which of all sites are its own."""
        place = {name: i for i, name in enumerate(self.whole.names)}
        return tuple(np.array([place[name] for name in plan.names]) for plan in self.plans)

    @property
    def left(self) -> float:
        """Return the part of the records, about, that answers for the groups themselves."""
        crowd = self.whole.crowd
        return 1 - (SEARCHED if has_common_search(crowd, len(self.plans)) else 0) - self.looking

    def expects(self, plan: QuantilePlan) -> str:
        """Return how a group is likely to be answered: "staged", "pairs" (where records are scarce) or "certified"."""
        crowd = plan.crowd.thinned(self.left)
        if certifies(plan, self.method, crowd):
            return "certified"
        return "pairs" if support(crowd, plan.tau).ratio > SCARCE else "staged"

    def check_group(self, name: Any) -> None:
        """Refuse a group to compare with that does not take part."""
        check_group(name, self.names)

    def card(self, name: str = "", nonce: bytes = b"") -> Card:
        """Return the study card: the public terms that sites and server agree on."""
        card = self.whole.card("groups", name, nonce)
        groups = {label: list(plan.names) for label, plan in zip(self.names, self.plans, strict=True)}
        return replace(card, terms={**card.terms, "groups": groups, "certified": self.certified})


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
    _check_shrinkage(shrinkage, simultaneous, method)
    if dimensions(tau):
        raise BadInput("tau is one level for all groups; ask for each level by itself.")
    labels = roster.places if roster.strata is None or not roster.strata.groups else roster.strata.groups
    names = tuple(dict.fromkeys(labels))
    if len(names) < 2:
        raise BadInput(f"there is only one group, {quoted(names[0])}; ask for one quantile instead.")
    if len(names) > MOST_GROUPS:
        raise BadInput(
            f"there are {len(names):,} groups, and at most {MOST_GROUPS} are asked at once; ask fewer, or join some."
        )
    told = per_site(epsilon, roster.places, "epsilon")
    budgets = {site: each for site, (each, _) in zip(roster.places, told, strict=True)}
    check_shares(shares, roster)
    public = {**known, "limits": CERTIFIED, "certified": method == "certified"}
    plans, gone = {}, []
    for name in names:
        own = roster.only([label == name for label in labels])
        try:
            plans[name] = plan_quantile(own, tau, _own(budgets, own), shares=_shares(shares, own), **public)
        except Infeasible as error:
            gone.append(LeftOutGroup(name, sum(own.sizes), str(error).partition(", and there are")[0]))
    if not plans:
        raise Infeasible(
            f"every group is too small: for {gone[0].name!r} {gone[0].reason}, and it has {gone[0].records:,}; join "
            "groups, raise epsilon, or ask a level nearer 0.5."
        )
    taking = {name for plan in plans.values() for name in plan.names}
    rest = roster.only([name in taking for name in roster.names])
    whole = plan_quantile(rest, tau, _own(budgets, rest), **{**public, "certified": True})
    crowd = whole.crowd
    located = has_common_search(crowd, len(plans)) and method != "certified" and whole.kind != "amounts"
    scarce = any(support(plan.crowd.thinned(1 - SEARCHED), plan.tau).ratio > SCARCE for plan in plans.values())
    looking = part_looking(crowd, whole.tau) if located and scarce else 0.0
    found = GroupsPlan(
        whole=replace(whole, warnings=()),
        names=tuple(plans),
        plans=tuple(replace(plan, located=looking > 0, warnings=()) for plan in plans.values()),
        level=level,
        simultaneous=simultaneous,
        certified=method == "certified" or whole.kind == "amounts",
        shrinkage=shrinkage or "",
        by=roster.strata.by if roster.strata is not None and roster.strata.groups else "site",
        left_out=tuple(gone),
        looking=looking,
        warnings=(),
    )
    return replace(found, warnings=(*roster.doubts, *_doubts(found, labels), *_said(found)))


def check_group(name: Any, names: Sequence[str]) -> str:
    """Return a group to compare with, or the word for the others, or refuse."""
    wanted = label_text(name)
    if not is_one_of(wanted, (OTHERS, *names)):
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


def _doubts(plan: GroupsPlan, labels: Sequence[str]) -> tuple[str, ...]:
    """Say which groups may be one, where they are not the sites."""
    if plan.by == "site":
        return ()
    return tuple(text.replace("sites ", "groups ").replace("one site", "one group") for text in doubtful_names(labels))


def _said(plan: GroupsPlan) -> list[str]:
    """Say who is left out, and which groups have few records."""
    said = []
    if plan.left_out:
        gone = plan.left_out
        who = f"group {gone[0].name!r} has" if len(gone) == 1 else f"{len(gone)} groups ({_names(gone)}) have"
        said.append(f"{who} too few records to take part, and no answer; {'it is' if len(gone) == 1 else 'they are'} "
                    f"left out, not asked ({gone[0].reason})")  # fmt: skip
    small = [name for name, each in zip(plan.names, plan.plans, strict=True) if each.left_out]
    if small:
        said.append(
            f"in {len(small)} groups ({first_few(small)}) sites with too few records are left out, not asked: the "
            "answers are over the other sites"
        )
    for how, text in ASKED.items():
        names = [name for name, each in zip(plan.names, plan.plans, strict=True) if plan.expects(each) == how]
        if names and not plan.certified:
            who = f"group {names[0]!r} has" if len(names) == 1 else f"{len(names)} groups ({first_few(names)}) have"
            look = LOOKS.format(part=plan.looking) if plan.looking else ""
            said.append(f"{who} {text}{look if how == 'pairs' else ''}")
    return said


ASKED = {
    "pairs": "few records: the interval takes the density to be smooth around the quantile",
    "certified": "so few records that the interval is certified: it holds for every distribution, and is 2 to 4 times "
    "as long",
}
LOOKS = "; {part:.0%} of all records look whether it is, and where it is not the interval is certified"


def _names(groups: Sequence[LeftOutGroup]) -> str:
    return first_few([group.name for group in groups])
