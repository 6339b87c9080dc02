"""A conformal threshold for each site or public group, each score used once, from scores in memory or in files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.api.asking import spend
from sottovoce.api.conformal.groups import GROUP, SITE, GroupPart, held, joined, read_groups, ungrouped
from sottovoce.api.conformal.threshold import PlannedThreshold, ask_sites, plan_threshold
from sottovoce.client.reading.table import SCORES, SiteTable, read_sites
from sottovoce.core.arrays import Floats
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import (
    check_callers,
    first_few,
    unknown,
)
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.random_source import RandomSource, SystemEntropy, parts_of
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.common import CommonPlan, common_of, plan_common
from sottovoce.server.conformal.methods import check_edges
from sottovoce.server.conformal.plan import SiteFacts
from sottovoce.server.conformal.result import ConformalThreshold
from sottovoce.server.conformal.settings import ConformalSettings, check_budgets, check_settings
from sottovoce.server.conformal.thresholds import ConformalThresholds
from sottovoce.server.conformal.thresholds_told import COMMON, INFINITE, RESTS, TOGETHER, small_warning
from sottovoce.server.stored import InAll

if TYPE_CHECKING:
    from sottovoce.server.explanation import Explanation

REFUSE = "refuse"
PROTECTING = ("mechanism", "minimum", "maximum", "bins", "grid")  # settings that only a private answer has


@public
def conformal_thresholds(
    scores: Any,
    alpha: float = 0.1,
    *,
    by: Any = SITE,
    small: str = COMMON,
    simultaneous: bool = False,
    epsilon: Any = None,
    maximum: float | None = None,
    minimum: float | None = None,
    bins: int | None = None,
    grid: Any = None,
    mechanism: str = "auto",
    guarantee: str = "marginal",
    delta: float = 0.1,
    rule: str = "closest",
    statistics: int = 1,
    exact: bool = False,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
) -> ConformalThresholds:
    """Find a threshold for each site, or each public group, that covers a new score of it with probability 1 - alpha.

    Mondrian conformal prediction (Vovk et al. 2003): each group calibrates for itself, so the promise holds for every
    group, however they differ. Each score is used once, in one message of its site for its group.

    Parameters
    ----------
    scores
        As for `conformal_threshold`.
    alpha
        The part of a group's new scores that may lie above its threshold.
    by
        "site": a threshold for each site. A mapping from site to the name of its group: one for all sites of a group.
        A mapping from site to labels, one for each of its scores: one for each label, which must be public. "group":
        the labels that `read_frame` or `read_files` found in the column ``group``.
    small
        What groups have that are too small for a threshold of their own, which is said before anybody is asked:
        "common" (default), a rank of what all other sites have sent for theirs, or, unless each group is a whole site,
        the next; "together", one threshold of their own scores; "infinite"; or "refuse".
    simultaneous
        With "training-conditional": all thresholds at once in all but a part ``delta`` of the calibrations.
    epsilon, maximum, minimum, bins, grid, mechanism
        As for `conformal_threshold`; a site alone names a cell.
    guarantee, delta, rule, statistics, exact
        As for `conformal_threshold`, of each group.
    randomness
        None for the operating system's entropy; `sim.dice` for simulation, which makes the result not private.
    missing
        "refuse" missing values, or "drop" and count them.

    Returns
    -------
    The thresholds, by the name of the group: ``t["north"].value``, ``t.values``, and ``t.common`` for a new site.

    Examples
    --------
    >>> import sottovoce as sv
    >>> source = sv.sim.dice(1).generator()
    >>> scores = {f"hospital {i}": i * abs(source.normal(size=100)) for i in range(1, 5)}
    >>> t = sv.conformal_thresholds(scores, alpha=0.1)
    >>> [round(value, 1) for value in t.values.values()], t["hospital 2"].orders["hospital 2"]
    ([1.7, 3.7, 4.5, 6.8], (91,))
    >>> regions = {"hospital 1": "east", "hospital 2": "east", "hospital 3": "west", "hospital 4": "west"}
    >>> private = sv.conformal_thresholds(
    ...     scores, 0.1, by=regions, epsilon=2.0, maximum=40.0, randomness=sv.sim.dice(2)
    ... )
    >>> private.groups, private["west"].coverage >= 0.9
    (('east', 'west'), True)
    """
    asked = {"by": by, "small": small, "simultaneous": simultaneous, "epsilon": epsilon, "maximum": maximum}
    asked |= {"minimum": minimum, "bins": bins, "grid": grid, "mechanism": mechanism, "guarantee": guarantee}
    asked |= {"delta": delta, "rule": rule, "statistics": statistics, "exact": exact}
    planned = plan_thresholds(scores, alpha, **asked, randomness=randomness, missing=missing)
    say_before(*planned.warnings)
    return run_thresholds(planned)


@dataclass(frozen=True, eq=False)
class PlannedThresholds:
    """Thresholds whose whole input is checked, and for which nothing is sent yet."""

    settings: ConformalSettings
    simultaneous: bool
    parts: Mapping[str, GroupPart] = field(repr=False)
    sizes: Mapping[str, int]
    own: Mapping[str, PlannedThreshold] = field(repr=False)
    rest: str
    common: CommonPlan | None = field(repr=False)
    together: PlannedThreshold | None = field(repr=False)
    table: SiteTable = field(repr=False)
    dice: RandomSource
    counted: Mapping[str, Floats] | None = field(default=None, repr=False)  # the records behind the scores

    @property
    def members(self) -> Mapping[str, tuple[str, ...]]:
        """Return the sites of each group."""
        return {group: tuple(part) for group, part in self.parts.items()}

    @property
    def small(self) -> tuple[str, ...]:
        """Return the groups with too few scores for a threshold of their own."""
        return tuple(group for group in self.parts if group not in self.own)

    @property
    def asked(self) -> tuple[PlannedThreshold, ...]:
        """Return the rounds that are to be run."""
        return (*self.own.values(), *(() if self.together is None else (self.together,)))

    @property
    def budgets(self) -> dict[str, float]:
        """Return what a score costs at each site that is asked, whichever its group."""
        return {name: epsilon for each in self.asked for name, epsilon in each.budgets.items()}

    @property
    def promised(self) -> ConformalThresholds:
        """Return the thresholds as they will be, but for their values."""
        return self.made(
            {group: each.promised for group, each in self.own.items()},
            None if self.together is None else self.together.promised,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before anything is sent."""
        found = [*self.table.roster.doubts, *self.hints]
        return (*found, *small_warning(self.members, self.sizes, self.small, self.rest), *self._noise)

    @property
    def _noise(self) -> tuple[str, ...]:
        """Say what noise may do, once for all groups."""
        told = [(group, text) for group, each in self.own.items() for text in each.promised.warnings]
        if self.together is not None:
            told += [("the small ones together", text) for text in self.together.promised.warnings]
        if len(told) <= 3:
            return tuple(f"{group}: {text}" for group, text in told)
        group, text = told[0]
        return (f"{group}: {text}; and so, more or less, of {len(told) - 1:,} more",)

    @property
    def hints(self) -> tuple[str, ...]:
        """Say where ties make more of a promise than can be kept."""
        return tuple(dict.fromkeys(text for each in self.asked for text in each.hints))

    def counted_by(self, records: Mapping[str, Floats]) -> "PlannedThresholds":
        """Count the rounds by the records behind the scores."""
        return replace(self, counted=records)

    def explain(self, seeded: bool = False) -> "Explanation":  # noqa: ARG002
        """Return what would be sent, what is protected, and how far coverage will stray; nobody is asked."""
        from sottovoce.server.conformal.expected import explain_thresholds

        plans = {group: each.explain() for group, each in self.own.items()}
        return replace(explain_thresholds(self.promised, plans, self.warnings), hints=self.hints)

    def made(self, own: Mapping[str, Threshold], together: Threshold | None) -> ConformalThresholds:
        """Return the result of thresholds by group."""
        single = [each for each in own.values() if isinstance(each, ConformalThreshold)]
        return ConformalThresholds(
            settings=self.settings,
            simultaneous=self.simultaneous,
            members=self.members,
            sizes=self.sizes,
            own=own,
            rest=self.rest,
            common=None if self.common is None else common_of(self.common, single),
            together=together,
            column=self.table.column,
            hints=tuple(dict.fromkeys(text for each in (*own.values(), together) if each for text in each.hints)),
        )


def plan_thresholds(
    scores: Any,
    alpha: float = 0.1,
    *,
    by: Any = SITE,
    small: str = COMMON,
    simultaneous: bool = False,
    epsilon: Any = None,
    missing: str = "refuse",
    randomness: RandomSource | None = None,
    **asked: Any,
) -> PlannedThresholds:
    """Check all input of `conformal_thresholds` without asking any site."""
    settings = _checked(alpha, small, simultaneous, epsilon is not None, asked)
    check_callers(randomness, None)
    table = scores if isinstance(scores, SiteTable) else read_sites(scores, missing=missing, needs=SCORES)
    if isinstance(by, str) and by == GROUP:
        table, by = ungrouped(table)
    elif table.strata is not None and table.strata.groups:
        raise BadInput('these scores were read with their groups: give by="group", or read them without.')
    parts = read_groups(by, table)
    if simultaneous:  # whatever depends on what, all hold at once; the common one is one more
        asked["delta"] = settings.delta / (len(parts) + (small == COMMON))
    dice = SystemEntropy() if randomness is None else randomness
    known = dict(zip(table.names, check_budgets(epsilon, table.names), strict=True))
    hopeless: dict[tuple[SiteFacts, ...], Infeasible] = {}  # by sizes and budgets, which decide alone

    def planned(part: GroupPart) -> PlannedThreshold | Infeasible:
        own = held(table, part)
        facts = tuple(SiteFacts(each.size, known[name]) for name, each in zip(own.names, own.records, strict=True))
        if facts in hopeless:
            return hopeless[facts]
        terms = asked | {"epsilon": {name: known[name] for name in part}}
        if all(math.isinf(fact.epsilon) for fact in facts):  # without privacy there is neither mechanism nor grid
            terms = {name: value for name, value in asked.items() if name not in PROTECTING}
        try:
            return plan_threshold(own, alpha, **terms, randomness=dice)
        except Infeasible as error:
            return hopeless.setdefault(facts, error)

    found = {group: planned(part) for group, part in parts.items()}
    own = {group: each for group, each in found.items() if isinstance(each, PlannedThreshold)}
    refused = {group: each for group, each in found.items() if isinstance(each, Infeasible)}
    if not own:
        raise Infeasible(
            "no group has scores enough for a threshold of its own; join groups, or ask for one threshold for all "
            f"(conformal_threshold): {next(iter(refused.values()))}"
        )
    if refused and small == REFUSE:
        raise Infeasible(
            f"{first_few(tuple(refused))} {'has' if len(refused) == 1 else 'have'} too few scores for a threshold of "
            "their own; join groups, or say by small= what they are to have: 'common', 'together' or 'infinite'."
        )
    agreed = replace(settings, delta=asked.get("delta", settings.delta))
    whole = all(rows is None for group in own for rows in parts[group].values())  # then all are different sites
    common = plan_common([each.promised for each in own.values()], agreed) if whole else None
    rest, together = COMMON if small == REFUSE else small, None
    if refused and rest == COMMON and common is None:
        rest = TOGETHER
    if refused and rest == TOGETHER:
        tried = planned(joined([parts[group] for group in refused], table))
        together, rest = (tried, TOGETHER) if isinstance(tried, PlannedThreshold) else (None, INFINITE)
    sizes = {group: sum(each.size for each in held(table, part).records) for group, part in parts.items()}
    return PlannedThresholds(settings, simultaneous, parts, sizes, own, rest, common, together, table, dice)


def run_thresholds(planned: PlannedThresholds) -> ConformalThresholds:
    """Run planned rounds: from here on sites answer, each once for each of its groups."""
    split = parts_of(planned.dice, len(planned.asked))
    own = [parts_of(dice, len(each.facts)) for dice, each in zip(split, planned.asked, strict=True)]
    in_all = _spend(planned)
    told = [ask_sites(each, dice) for each, dice in zip(planned.asked, own, strict=True)]
    together = told.pop() if planned.together is not None else None
    return replace(planned.made(dict(zip(planned.own, told, strict=True)), together), in_all=in_all)


def _spend(planned: PlannedThresholds) -> InAll:
    """Count what the scores that are to answer cost, each of them once."""
    groups = [*planned.own, *(planned.small if planned.together is not None else ())]
    every = joined([planned.parts[group] for group in groups], planned.table)
    whole = held(planned.table, every)
    budgets, counted = planned.budgets, None
    if (records := planned.counted) is not None:
        counted = {site: records[site] if rows is None else records[site][rows] for site, rows in every.items()}
    return spend(whole, [budgets[name] for name in whole.names], planned.dice, counted)


def _checked(alpha: Any, small: Any, simultaneous: Any, private: bool, asked: dict[str, Any]) -> ConformalSettings:
    """Return the settings of every group, or say which cannot be used."""
    names = ("guarantee", "delta", "rule", "statistics", "exact", "mechanism")
    given: dict[str, Any] = {"guarantee": "marginal", "delta": 0.1, "rule": "closest", "statistics": 1, "exact": False}
    given |= {"mechanism": "auto"}
    given |= {name: asked[name] for name in names if name in asked}
    settings = check_settings(alpha, private=private, **given)
    ends = {name: asked.get(name) for name in ("minimum", "maximum", "bins", "grid")}
    check_edges(**ends, private=private)
    if not isinstance(small, str) or small not in (*RESTS, REFUSE):
        raise unknown("small", small, (*RESTS, REFUSE))
    if not isinstance(simultaneous, bool | np.bool_):
        raise BadInput(f"simultaneous must be True or False, not {simultaneous!r}; leave it out for each by itself.")
    if simultaneous and not settings.conditional:
        raise BadInput(
            "simultaneous is about one calibration, and a marginal guarantee about the average of many; add "
            "guarantee='training-conditional', or leave simultaneous out."
        )
    return settings
