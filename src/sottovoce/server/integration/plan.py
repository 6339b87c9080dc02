"""The plan of an integration: who takes part on what terms and how they combine, checked before any record answers.

A site has records, private or open, or gives a summary. A plan is made from public facts alone, and holds no record.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from sottovoce.core.checks import confidence, label_text, nearest, number, per_site, unknown
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.roster import Roster
from sottovoce.core.unit import NUMBER, Unit, uncensored
from sottovoce.inference.integration import kabaila_giri, weighted
from sottovoce.inference.integration.weighted import METHODS as PAPER
from sottovoce.protocol.card import Card
from sottovoce.protocol.summaries import records_needed
from sottovoce.server.integration.chains import SHORTEST
from sottovoce.server.integration.site_summary import SiteSummary
from sottovoce.server.quantile.feasibility import CERTIFIED, PAIRS, Limits, advice
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile

METHODS = ("valid", "conservative", "known-bound", *PAPER)
TARGET = "target"
SHOWN = 3  # warnings of sources that are written out
MOST_CHAINS = 10_000  # of a site


@dataclass(frozen=True)
class ChainSettings:
    """How the paper's chains are run at private sites (3.6): how many, and the constant and power of the step."""

    number: int = 10
    constant: float = 1.0
    power: float = 0.6


@dataclass(frozen=True)
class IntegrationSettings:
    """How sites are combined: checked, and nothing asked yet."""

    method: str
    level: float
    tau: float
    bound: Mapping[str, float] | None = field(hash=False)
    variance: str
    quantile: str
    caution: float
    chains: ChainSettings | None
    slack: float = 0.0  # by which a summary of rounded records may differ from what dithered records estimate


def check_settings(
    method: Any, level: Any, tau: Any, variance: Any, quantile: Any, caution: Any, sites: Any, chains: Any
) -> IntegrationSettings:
    """Check how sites are combined."""
    for what, value, known in (
        ("method", method, METHODS),
        ("variance", variance, weighted.VARIANCES),
        ("quantile", quantile, weighted.QUANTILES),
        ("sites", "staged" if sites is None else sites, ("staged", "chains")),
    ):
        if not isinstance(value, str) or value not in known:
            raise unknown(what, value, known)
    asked = confidence(level)
    if method == "valid":
        kabaila_giri.table(asked)
    walks = method in PAPER if sites is None else sites == "chains"
    if walks and method not in PAPER:
        raise BadInput(f"chains belong to the paper's methods, not to {method!r}; leave sites out.", parameter="sites")
    margin = number(caution, "caution")
    if method not in PAPER and (variance, quantile, margin) != ("printed", "z", 1.96):
        named = ("variance", "quantile", "caution")
        raise BadInput("variance, quantile and caution belong to the paper's methods; leave them out.", parameter=named)
    if not 0 <= margin < math.inf:
        raise BadInput(f"caution must be a number of errors, 0 or more, not {caution!r}; the paper's is 1.96.")
    if isinstance(chains, bool) or not isinstance(chains, Integral) or not 2 <= int(chains) <= MOST_CHAINS:
        raise BadInput(f"chains must be a whole number from 2 to {MOST_CHAINS:,}, not {chains!r}; the paper's is 10.")
    walk = ChainSettings(int(chains)) if walks else None
    level_asked = number(tau, "tau") if not isinstance(tau, Mapping) else math.nan
    return IntegrationSettings(method, asked, level_asked, None, variance, quantile, margin, walk)


def with_bound(
    settings: IntegrationSettings, bound: Any, names: Sequence[str], unit: Unit, step: float
) -> IntegrationSettings:
    """Add the bound of each source, where the method needs one; ``step`` is that of dithered records, or zero."""
    if settings.method != "known-bound":
        if bound is not None:
            text = f"bound belongs to method 'known-bound', not to {settings.method!r}; choose one."
            raise BadInput(text, parameter="bound")
        return settings
    if bound is None:
        raise BadInput("method 'known-bound' needs bound=, the largest difference between a source and the target.")
    if not isinstance(bound, Mapping):
        limits = dict.fromkeys(names, width_of(bound, "bound", unit))
    else:
        given = {label_text(name): value for name, value in bound.items()}
        strange, absent = [n for n in given if n not in names], [n for n in names if n not in given]
        if strange or absent:
            text = f"says nothing of source {absent[0]!r}" if not strange else ""
            text = text or f"names {strange[0]!r}{nearest(strange[0], names)}, which is no source"
            raise BadInput(f"bound {text}; give one for each source, or one number for all.")
        limits = {name: width_of(given[name], f"bound of source {name!r}", unit) for name in names}
    return replace(settings, bound=limits, slack=step / 2)


def width_of(value: Any, where: str, unit: Unit) -> float:
    """Return a width in the unit of the records, or refuse one below zero."""
    timed = isinstance(value, str) and unit.timed
    width = unit.parse_width(value, where=where) if timed else number(value, where)
    if not width >= 0:
        raise BadInput(f"{where} is {value!r}; give the largest difference you allow, 0 or more.")
    return width


def check_numbers(settings: IntegrationSettings, name: str, trusted: bool, records: int | None) -> None:
    """Refuse a site that lacks a number which the method needs."""
    if settings.method != "valid" and not trusted:
        raise BadInput(
            f"source {name!r} has no standard error to be trusted, and method {settings.method!r} needs one; "
            "leave it out, or use method 'valid'."
        )
    if settings.method == "decay" and records is None:
        raise BadInput(f"method 'decay' needs the number of records of {name!r}; give n= in its summary.")


class Ungated(Limits):
    """Limits that nothing exceeds: order statistics need no search, and have no noise but that of the records."""

    def at(self, tau: float) -> Limits:  # noqa: ARG002
        """Return the same at every level."""
        return self


OPEN = Ungated(math.inf, math.inf, "")


@dataclass(frozen=True, eq=False)
class PlannedSite:
    """A site before it is measured: ``study`` where it has records, ``summary`` where it gives numbers."""

    name: str
    study: QuantilePlan | None = None
    summary: SiteSummary | None = None
    certified: bool = False  # a target with too few records for anything but an interval that nobody can help

    @property
    def kind(self) -> str:
        """Return "private", "open" (records without a budget), or "summary"."""
        if self.study is None:
            return "summary"
        return "private" if self.study.flips[0] else "open"  # a letter that is never flipped has no finite epsilon

    @property
    def size(self) -> int | None:
        """Return the number of records, where it is known."""
        if self.study is not None:
            return self.study.roster.sizes[0]
        return self.summary.n if self.summary is not None else None


@dataclass(frozen=True, eq=False)
class IntegrationPlan:
    """All sites, the target first, how they are combined, and the unit of their records.

    ``seeded``: the records themselves were drawn with a seed; ``simulated``: so is the sites' noise.
    """

    settings: IntegrationSettings
    sites: tuple[PlannedSite, ...]
    unit: Unit = NUMBER
    per_person: bool = False
    seeded: bool = False
    simulated: bool = False
    column: str = ""
    small: tuple[tuple[str, str], ...] = ()  # sources with too few records to help, which are not asked, and why

    @property
    def target(self) -> PlannedSite:
        """Return the site whose quantile is wanted."""
        return self.sites[0]

    @property
    def sources(self) -> tuple[PlannedSite, ...]:
        """Return the sites that may help."""
        return self.sites[1:]

    @property
    def idle(self) -> tuple[str, ...]:
        """Return the sources that cannot count whatever they say, and so are not asked."""
        bound = self.settings.bound or {}
        none = self.settings.method == "target" or self.target.certified
        return tuple(site.name for site in self.sources if none or math.isinf(bound.get(site.name, 0.0)))

    @property
    def asked(self) -> tuple[PlannedSite, ...]:
        """Return the sites that take part."""
        idle = set(self.idle)
        return tuple(site for site in self.sites if site.name not in idle)

    @property
    def before(self) -> tuple[str, ...]:
        """Return what the sites' sizes and budgets say about who can help, before any record answers."""
        found = [f"source {name!r} is left out, not asked: {why.rstrip('.')}" for name, why in self.small]
        if self.target.certified and self.target.study is not None:
            study = self.target.study
            needed = study.support.records_for(study.roster.sizes[0], PAIRS.at(study.tau).refuse)
            found.append(
                f"{where(self.target.name, self.target.name)} has too few records to be helped: its own certified "
                f"interval is given, and no source is asked; about {needed:,} records would let sources help"
            )
        return tuple(some(found))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return all that is worth knowing before any record answers."""
        studies = [(site.name, site.study.warnings) for site in self.asked if site.study is not None]
        alone = len(self.asked) == 1
        said = [text if alone else f"site {name!r}: {text}" for name, texts in studies for text in texts]
        return (*self.before, *some(said))

    @property
    def step(self) -> float:
        """Return the public step by which records are dithered, zero if none."""
        return max((site.study.resolution for site in self.sites if site.study is not None), default=0.0)

    @property
    def resolution(self) -> float:
        """Return the public step to which the answer is rounded: that of the target's own dithered records, if any."""
        return self.target.study.resolution if self.target.study is not None else 0.0

    def card(self, name: str = "", nonce: bytes = b"") -> Card:
        """Return the study card: the public terms that sites and server agree on."""
        chains = self.settings.chains
        studies = [site.study for site in self.asked if site.study is not None]
        public = studies[0] if studies else None
        terms = {
            "method": self.settings.method,
            "tau": self.settings.tau,
            "level": self.settings.level,
            "target": self.target.name,
            "sites": [
                [site.name, site.kind, None if site.study is None else site.study.flips[0], site.size]
                for site in self.asked
            ],
            "chains": None if chains is None else [chains.number, chains.constant, chains.power],
            "unit": self.unit.kind,
            "resolution": self.step,
            "bounds": None if public is None or public.bounds is None else list(public.bounds),
            "scale": None if public is None else public.scale,
        }
        return Card("integration", terms, name, nonce)


def plan_integration(
    settings: IntegrationSettings,
    names: Sequence[str],
    roster: Roster | None,
    summaries: Mapping[str, SiteSummary],
    tau: Any,
    epsilon: Any,
    bound: Any = None,
    *,
    simulated: bool = False,
    **known: Any,
) -> IntegrationPlan:
    """Check who takes part, and with what.

    The target is the first of ``names``; the sites of ``roster`` have records (None: there are none), the others
    published ``summaries``. ``simulated`` tells whether the sites' noise can be reproduced; ``known`` are public
    bounds, scale and resolution, the same for all sites.
    """
    if roster is not None:
        uncensored(roster.unit, "data integration")
    if roster is not None and roster.unit.kind == "category":
        raise BadInput("the records are categories, between which there are no distances; give numbers, or times.")
    studies: dict[str, QuantilePlan] = {}
    small: dict[str, str] = {}
    certified = False
    if roster is None:
        _check_without_records(tau, epsilon, known)
    else:
        studies, small, certified = _studies(roster, names[0], tau, epsilon, settings, summaries, known)
    sites = tuple(
        PlannedSite(name, studies.get(name), summaries.get(name), certified and name == names[0])
        for name in names
        if name not in small
    )
    if sites[0].summary is not None and not sites[0].summary.trusted:
        raise BadInput(f"the target {names[0]!r} has no standard error to be trusted; only a source can do without.")
    plan = IntegrationPlan(settings, sites, simulated=simulated, small=tuple(small.items()))
    if roster is not None:
        plan = replace(plan, unit=roster.unit, per_person=roster.per_person, seeded=roster.seeded)
        plan = replace(plan, column=roster.column)
    plan = replace(plan, settings=with_bound(settings, bound, names[1:], plan.unit, plan.step))
    if plan.settings.bound is not None:
        bounds = {name: limit for name, limit in plan.settings.bound.items() if name not in small}
        plan = replace(plan, settings=replace(plan.settings, bound=bounds))
    for site in sites:
        check_numbers(plan.settings, site.name, site.summary is None or site.summary.trusted, site.size)
    return plan


def where(name: str, target: str) -> str:
    """Say in an error whose fault it is."""
    if name != target:
        return f"source {name!r}"
    return "the target" if name == TARGET else f"the target {name!r}"


def _studies(
    roster: Roster,
    target: str,
    tau: Any,
    epsilon: Any,
    settings: IntegrationSettings,
    summaries: Mapping[str, SiteSummary],
    known: Mapping[str, Any],
) -> tuple[dict[str, QuantilePlan], dict[str, str], bool]:
    """Plan one study for each site that has records; return also which sources have too few and why.

    A target with too few is refused, or tells at last whether its interval is to be certified.
    """
    if isinstance(epsilon, Mapping):  # a budget for a site without records is nothing to complain of
        epsilon = {name: value for name, value in epsilon.items() if label_text(name) not in summaries}
    if isinstance(tau, Mapping):
        raise BadInput("tau must be one level: the sources help with the target's own quantile; give one number.")
    budgets = dict(zip(roster.names, per_site(epsilon, roster.names, "epsilon"), strict=True))
    found, small, certified = {}, {}, False
    for name, size in zip(roster.names, roster.sizes, strict=True):
        budget = number(*budgets[name])
        alone = replace(roster, names=(name,), sizes=(size,), dropped={name: roster.dropped.get(name, 0)})
        # exact with any number of records that it needs, an open site is not gated: the gate is for noise
        limits: Limits = OPEN if math.isinf(budget) else PAIRS
        try:
            found[name] = plan_quantile(alone, tau, {name: budget}, limits=limits, **known)
            _check_size(found[name], settings)
        except Infeasible as error:
            if name != target:
                small[name] = str(error)
                found.pop(name, None)
                continue
            sure: dict[str, Any] = {"limits": CERTIFIED, "certified": True, "confidence": settings.level}
            try:
                if settings.chains is not None or settings.method in PAPER or math.isinf(budget):
                    raise
                found[name], certified = plan_quantile(alone, tau, {name: budget}, **sure, **known), True
            except Infeasible as refusal:
                raise Infeasible(f"{where(name, target)} has too few records: {refusal}") from None
    return found, small, certified


def _check_size(study: QuantilePlan, settings: IntegrationSettings) -> None:
    """Refuse a site with too few records for order statistics, or for the paper's chains."""
    size = study.roster.sizes[0]
    if study.flips[0] == 0:
        needed = max(records_needed(study.tau, settings.level), records_needed(study.tau))
        if size < needed:
            raise Infeasible(
                f"an interval for its {study.tau:g} quantile needs {needed:,} records, and there are {size:,}: "
                f"{advice(study.tau, private=False)}."
            )
    elif settings.chains is not None and size < (needed := settings.chains.number * SHORTEST):
        raise Infeasible(
            f"{settings.chains.number} chains need {needed:,} records, and there are {size:,}: add records, or run "
            "fewer chains."
        )


def some(texts: Sequence[str]) -> list[str]:
    """Return the first few, and how many there are more."""
    more = len(texts) - SHOWN
    return list(texts) if more < 2 else [*texts[:SHOWN], f"and {more} more sources say the like"]


def _check_without_records(tau: Any, epsilon: Any, known: Mapping[str, Any]) -> None:
    """Check what is left to check where every site gives a summary."""
    if not 0 < number(tau, "tau") < 1:
        raise BadInput(f"tau must lie strictly between 0 and 1, not {tau!r}; give 0.9 for nine out of ten.")
    given = [name for name, value in known.items() if value is not None]
    if given:
        raise BadInput(f"{given[0]} belongs to records, and every site gives a summary; leave it out.")
    for budget in epsilon.values() if isinstance(epsilon, Mapping) else [] if epsilon is None else [epsilon]:
        if not number(budget, "epsilon") > 0:
            raise BadInput(f"epsilon must be positive, not {budget!r}; leave it out where every site gives a summary.")
