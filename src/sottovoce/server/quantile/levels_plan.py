"""The plan of several levels: a public split of the records, and sites too small for it left out; no record is seen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.core.checks import confidence, is_one_of, unknown
from sottovoce.core.roster import Roster
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.left_out import part_of, without
from sottovoce.server.quantile.levels import check_levels, check_sizes, fewest_records, split_of
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile

METHODS = ("staged", "certified")


@dataclass(frozen=True, eq=False)
class LevelsPlan:
    """One plan for who takes part, one for each level, and the parts of the records that answer for each."""

    whole: QuantilePlan
    plans: list[QuantilePlan]
    parts: list[float]
    level: float
    certified: bool

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers."""
        return tuple(dict.fromkeys([*self.whole.hints, *(text for plan in self.plans for text in plan.warnings)]))

    def with_hints(self, hints: tuple[str, ...]) -> "LevelsPlan":
        """Return the plan with what only whoever holds the records is told."""
        return replace(
            self, whole=replace(self.whole, hints=hints), plans=[replace(plan, hints=hints) for plan in self.plans]
        )


def plan_levels(
    roster: Roster,
    taus: Sequence[float],
    epsilon: Any,
    *,
    level: float = 0.95,
    method: str = "staged",
    split: Sequence[float] | None = None,
    **known: Any,
) -> LevelsPlan:
    """Check all input of a study of several levels over the public facts of its sites."""
    levels = check_levels(taus)
    confidence(level)
    if not is_one_of(method, METHODS):
        raise unknown("for several levels method", method, METHODS)
    each = 1 - (1 - level) / len(levels)
    public = {**known, "limits": CERTIFIED, "confidence": each, "certified": method == "certified"}
    whole = plan_quantile(roster, 0.5, epsilon, **public)
    gone = whole.left_out
    while True:
        parts = split_of(split, levels, whole.crowd)
        own = {**public, "shares": own_shares(whole), "fewest": fewest_records(parts)}
        budgets = whole.stated
        plans = [
            plan_quantile(whole.roster, tau, budgets, thinned=part, **own)
            for tau, part in zip(levels, parts, strict=True)
        ]
        small = {name for plan in plans for name in plan.left_out}
        if not small:
            break
        stay = [name not in small for name in whole.names]
        rest = whole.roster.only(stay)
        again = {**public, "shares": own_shares(whole, stay)}
        gone += tuple(name for name in whole.names if name in small)
        whole = plan_quantile(rest, 0.5, {site: budgets[site] for site in rest.places}, **again)
    check_sizes(whole, parts)
    said = (without(gone, len(whole.names), part_of(roster, gone)),) if gone else ()
    plans = [replace(plan, left_out=gone) for plan in plans]
    plans[0] = replace(plans[0], warnings=(*said, *plans[0].warnings))
    return LevelsPlan(whole, plans, parts, level, method == "certified" or whole.atoms)


def own_shares(plan: QuantilePlan, stay: Sequence[bool] | None = None) -> Any:
    """Return the shares of a plan, or of some of its sites, as they can be given again."""
    if plan.shares_name != "custom":
        return "equal" if plan.shares_name == "equal" else "pooled"
    kept: dict[str, float] = {}
    for i, (site, share) in enumerate(zip(plan.roster.places, plan.crowd.shares.tolist(), strict=True)):
        if stay is None or stay[i]:
            kept[site] = kept.get(site, 0.0) + share
    return {site: share / sum(kept.values()) for site, share in kept.items()}
