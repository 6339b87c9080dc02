"""From what a caller gave to a checked plan and open doors: the only place where records and the plan meet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site, look_rounded
from sottovoce.client.reading.divided import read_table_of
from sottovoce.client.reading.table import SiteTable
from sottovoce.client.record import overlap
from sottovoce.core.checks import confidence, is_one_of, moderate, number, unknown
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy, parts_of
from sottovoce.core.unit import Unit
from sottovoce.local.quantile.crowd import SiteCrowd, are_many
from sottovoce.local.runner import run
from sottovoce.protocol.card import identity
from sottovoce.server.explanation import Explanation
from sottovoce.server.method import Method, converse
from sottovoce.server.quantile.certified.sequence import Sequel
from sottovoce.server.quantile.expected import ROUNDS, expected_width, explain_quantile
from sottovoce.server.quantile.feasibility import CERTIFIED, STAGES, Limits
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.server.quantile.recursion.method import Recursion, plan_recursion
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.solutions import SequenceSolution

METHODS = ("staged", "certified", "sequence", "regression", "self-normalised")
Outcome = TypeVar("Outcome")
Progress = Callable[[int], None]
LOOKED_AT = 256  # sites, the largest: ties in others spoil nothing
TIED = "many records are tied, and ties spoil the interval: give resolution=, the step they are rounded to"


def prepare(
    sites: Any,
    tau: Any,
    epsilon: Any,
    *,
    weights: Any = None,
    missing: str = "refuse",
    censored: Any = None,
    **public: Any,
) -> "Prepared":
    """Read the sites and plan a study over them; what only records show becomes a hint to whoever holds them.

    Arguments as for `federated_quantile` and `server.quantile.plan.plan_quantile`.
    """
    table = read_table_of(sites, weights=weights, missing=missing, censored=censored)
    plan = plan_quantile(table.roster, tau, epsilon, **public)
    if plan.left_out:
        table = table.only(plan.names)
    return Prepared(replace(plan, hints=look_at(plan, table, bool(public.get("certified")))), table)


def look_at(plan: QuantilePlan, table: SiteTable, certified: bool) -> tuple[str, ...]:
    """Return what only records show, as hints to whoever holds them; refuse two sites that hold the same ones."""
    table.marks  # noqa: B018 - they are refused here, before anything is asked
    largest = sorted(table.records, key=attrgetter("size"), reverse=True)[:LOOKED_AT]
    certified |= plan.atoms  # certified intervals mind no ties
    exposed = plan.resolution == 0 and plan.kind is None and not certified
    return (TIED,) if exposed and any(map(look_rounded, largest)) else ()


@dataclass(frozen=True, eq=False)
class Prepared:
    """A plan, and the records it is about."""

    plan: QuantilePlan
    table: SiteTable = field(repr=False)

    def open(self, randomness: RandomSource | None) -> list[Site]:
        """Open a site for each column of records, with dice of its own."""
        dice = SystemEntropy() if randomness is None else randomness
        plan, own = self.plan, parts_of(dice, len(self.table.names))
        return [
            Site(records, plan.study_of(k), own[k], plan.channels[k]) for k, records in enumerate(self.table.records)
        ]


def run_sites(
    prepared: Prepared,
    method: Method[Any, Outcome],
    name: str,
    randomness: RandomSource | None,
    progress: Progress | None,
) -> tuple[Outcome, bool]:
    """Run a method of frozen queries over the sites; return its outcome, and whether the records are protected."""
    plan, table = prepared.plan, prepared.table
    if are_many(plan.roster.sizes):
        dice = SystemEntropy() if randomness is None else randomness
        crowd = SiteCrowd(table.records, plan, parts_of(dice, len(table.names)))
        outcome = method.outcome(converse(method, crowd.gather(progress)))
        return outcome, crowd.private and not plan.roster.seeded
    sites = prepared.open(randomness)
    outcome = run(method, doors_of(plan, sites, name), progress)
    return outcome, all(site.private for site in sites) and not plan.roster.seeded


def coin_of(plan: QuantilePlan, randomness: RandomSource | None) -> bytes:
    """Return the key of the public lottery between sites: fresh, or of the plan and the seed in a simulation."""
    if randomness is None:
        return SystemEntropy().words(2).tobytes()
    return identity(plan.card("lottery")) + repr(randomness).encode()


def doors_of(plan: QuantilePlan, sites: Sequence[Site], method: str = "staged") -> list[Door]:
    """Return the doors of open sites, for the study that a plan describes."""
    study = identity(plan.card(method))
    return [Door(site, study) for site in sites]


@dataclass(frozen=True, eq=False)
class PlannedStudy:
    """A study whose whole input is checked, and of which nothing is spent yet."""

    prepared: Prepared
    recursion: Recursion | None
    level: float
    method: str
    until: float | None = None
    after: Sequel | None = None

    @property
    def plan(self) -> QuantilePlan:
        """Return the public plan."""
        return self.prepared.plan

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers; what the records show is for their holder."""
        return (*self.plan.hints, *self.plan.warnings)

    def explain(self, seeded: bool = False) -> Explanation:
        """Return what would be asked, what is protected, and how wide the interval will be; nobody is asked."""
        plan, method = self.plan, self.method
        rounds = ROUNDS.get(method, "")
        if self.recursion is not None:
            rounds = f"{len(elapsed(self.recursion.schedule, max(plan.roster.sizes))):,} rounds after a search"
        if self.until is not None:
            rounds += f", fewer if the interval is no longer than {self.until:g} before"
        return explain_quantile(
            plan,
            method,
            self.level,
            [expected_width(plan, method, self.level)],
            rounds=rounds,
            what=f"the {plan.tau:.6g} quantile of the {plan.roster.unit.plural}",
            warnings=self.plan.warnings,
            seeded=seeded,
        )


def plan_study(
    sites: Any,
    tau: Any,
    epsilon: Any,
    *,
    level: float = 0.95,
    method: str = "staged",
    shares: Any = "pooled",
    weights: Any = None,
    schedule: str | Sequence[int] = "every:1",
    participation: float = 1.0,
    graph: Any = None,
    norm: str = "l2",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    kind: str | None = None,
    until: Any = None,
    after: QuantileResult | None = None,
    missing: str = "refuse",
    censored: Any = None,
) -> PlannedStudy:
    """Check all input of `federated_quantile` without asking any record."""
    if not is_one_of(method, METHODS):
        raise unknown("method", method, METHODS)
    confidence(level)
    walks = method in ("regression", "self-normalised")
    everybody = number(participation, "participation") == 1
    plain = everybody and is_one_of(schedule, ("every:1",)) and is_one_of(norm, ("l2",))
    if not walks and not (plain and graph is None):
        raise BadInput(
            "schedule, participation, graph and norm belong to method 'regression' or 'self-normalised'; choose one."
        )
    if method != "sequence" and (until is not None or after is not None):
        raise BadInput("until and after belong to method 'sequence'; choose it, or leave them out.")
    limits: Limits = STAGES if walks else CERTIFIED
    known = {"shares": shares, "bounds": bounds, "scale": scale, "resolution": resolution, "kind": kind}
    said = {"limits": limits, "confidence": level, "certified": method in ("certified", "sequence")}
    prepared = prepare(sites, tau, epsilon, weights=weights, missing=missing, censored=censored, **said, **known)
    recursion = plan_recursion(prepared.plan, method, schedule, participation, graph, norm) if walks else None
    width = None if until is None else _until(until, prepared.plan.roster.unit)
    earlier = None if after is None else _earlier(after, prepared, level, width)
    return PlannedStudy(prepared, recursion, level, method, width, earlier)


def _until(until: Any, unit: Unit) -> float:
    """Return the length at which a sequence ends, in the unit of the records."""
    timed = isinstance(until, str) and unit.timed
    width = unit.parse_width(until, where="until") if timed else number(until, "until")
    if not moderate(width):
        raise BadInput(
            f"until must be positive, not {until!r}, and moderate; give the length of the interval at which to stop."
        )
    return width


def _earlier(after: Any, prepared: "Prepared", level: float, until: float | None) -> Sequel:
    """Return what the sequence goes on from, or refuse what is about something else."""
    plan = prepared.plan
    if not (isinstance(after, QuantileResult) and isinstance(after.solution, SequenceSolution)):
        raise BadInput("after must be an earlier result of method 'sequence'; give one, or leave it out.")
    if abs(after.tau - plan.tau) > 1e-12:
        raise BadInput(
            f"the earlier result is about the {after.tau:g} quantile, this study about {plan.tau:g}; ask one level."
        )
    if after.plan.roster.unit.kind != plan.roster.unit.kind or after.plan.resolution != plan.resolution:
        raise BadInput("the earlier result has another unit or resolution; go on with records of the same kind.")
    censored = plan.roster.unit.censored
    if after.plan.roster.unit.censored != censored:
        was = after.plan.roster.unit.censored or "no limits"
        raise BadInput(f"the earlier result was asked with {was}, this study with {censored or 'none'}; keep to one.")
    known = origin(after)
    if known is not None and overlap(known.records, prepared.table.records):
        raise BadInput("some of these records answered for the earlier result; go on with records that have not.")
    low, high = after.interval_at(level)
    if until is not None and (high - low <= until or (censored is not None and censored.settled(low, high))):
        raise BadInput("the earlier interval is no longer than until; nothing needs to be asked.")
    return after.solution.sequel


_ORIGINS: WeakKeyDictionary[QuantilePlan, SiteTable] = WeakKeyDictionary()


def remember(result: QuantileResult, table: SiteTable) -> QuantileResult:
    """Keep beside a result of this process, and not in it, whose records it is about."""
    _ORIGINS[result.plan] = table
    return result


def origin(result: QuantileResult) -> SiteTable | None:
    """Return the records that a result of this process is about; None for one that was stored or copied."""
    return _ORIGINS.get(result.plan)
