"""Ask each site alone, and write down what it knows of its own quantile: estimate, error, degrees of freedom."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sottovoce.api.integration.sites import PlannedSite, PlannedSites
from sottovoce.api.quantile.federated import run_study
from sottovoce.client.integration.order_statistics import dithered, rank_interval, rank_summary, shared
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.common.normal import two_sided
from sottovoce.local.integration.chains import run_chains
from sottovoce.server.integration.chains import ChainStudy
from sottovoce.server.quantile.solutions import FittedSolution, Solution

SHOWN = 3  # warnings of sources that are written out
LEAST_DF = 4.0  # a source whose error is known worse than this is left out


@dataclass(frozen=True)
class KnownSite:
    """What is known of a site: its three numbers, its own interval at the level asked, and what that cost."""

    name: str
    kind: str
    measured: SiteEstimate
    low: float
    high: float
    epsilon: float | None
    records: int | None
    reports: int = 0
    rounds: int = 0
    private: bool = True
    trusted: bool = True
    tied: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Tell whether a source may help: its estimate is a number and its error is known well enough."""
        error, df = self.measured.std_error, self.measured.df
        return math.isfinite(self.measured.estimate) and (not self.trusted or (0 < error < math.inf and df >= LEAST_DF))


@dataclass(frozen=True)
class LostSite:
    """A source whose search was lost: it helps nobody, and what it spent is spent."""

    name: str
    epsilon: float
    reports: int
    private: bool


@dataclass(frozen=True)
class Chains:
    """How the paper's chains are run at private sites (3.6): how many, and the constant and power of the step."""

    number: int = 10
    constant: float = 1.0
    power: float = 0.6


def measure_sites(
    plan: PlannedSites,
    level: float,
    chains: Chains | None,
    randomness: RandomSource | None,
    progress: Callable[[int], None] | None,
) -> tuple[list[KnownSite], tuple[LostSite, ...], tuple[str, ...]]:
    """Measure all sites, those without a budget first; a source whose search is lost is left out with a warning."""
    dice = SystemEntropy() if randomness is None else randomness
    parts = dice.split(len(plan.sites))
    known: dict[str, KnownSite] = {}
    lost: list[LostSite] = []
    warnings: list[str] = []
    order = sorted(range(len(plan.sites)), key=lambda i: (plan.sites[i].kind == "private", i))
    for i in order:
        site, own, answered = plan.sites[i], parts[i], [0]
        try:
            known[site.name] = _measure(site, i == 0, level, chains, own, _counting(answered, progress))
        except SearchFailed as error:
            if i == 0 or site.study is None:
                raise
            lost.append(LostSite(site.name, site.study.plan.channels[0].epsilon, answered[0], own.private))
            warnings.append(f"source {site.name!r} is left out: {str(error).rstrip('.')}")
    ordered = [known[site.name] for site in plan.sites if site.name in known]
    return ordered, tuple(lost), (*_warnings(ordered), *_some(warnings))


def _warnings(known: Sequence[KnownSite]) -> list[str]:
    """Return what the sites warn of: all of the target, a few of the sources."""
    target, *sources = known
    own = [f"site {target.name!r}: {text}" if sources else text for text in target.warnings]
    return own + _some([f"site {site.name!r}: {text}" for site in sources for text in site.warnings])


def _some(texts: list[str]) -> list[str]:
    """Return the first few, and how many there are more."""
    more = len(texts) - SHOWN
    return texts if more < 2 else [*texts[:SHOWN], f"and {more} more sources say the like"]


def _counting(answered: list[int], progress: Callable[[int], None] | None) -> Callable[[int], None]:
    """Count the records that answer, and pass the number on."""

    def tell(records: int) -> None:
        answered[0] += records
        if progress is not None:
            progress(records)

    return tell


def _measure(
    site: PlannedSite,
    is_target: bool,
    level: float,
    chains: Chains | None,
    dice: Any,
    progress: Callable[[int], None] | None,
) -> KnownSite:
    """Measure one site by what it has."""
    if site.summary is not None:
        measured = site.summary.measured()
        low, high = measured.interval(level) if site.summary.trusted else (-math.inf, math.inf)
        return KnownSite(
            site.name, "summary", measured, low, high, None, site.size, private=True, trusted=site.summary.trusted
        )
    assert site.study is not None
    if site.kind == "open":
        return _open(site, is_target, level, dice, progress)
    if chains is not None:
        return _chained(site, level, chains, dice, progress)
    result = run_study(site.study, dice, progress)
    low, high = result.solution.interval(level)
    return KnownSite(
        site.name,
        "private",
        measured_of(result.solution),
        low,
        high,
        result.epsilon[site.name],
        site.size,
        result.reports,
        result.rounds,
        result.private,
        warnings=result.warnings,
    )


def measured_of(solution: Solution) -> SiteEstimate:
    """Return what a finished study knows; of an inverted test, the error that its 95 % interval has by a normal law."""
    if isinstance(solution, FittedSolution):
        return solution.fitted.measured
    low, high = solution.interval(0.95)
    return SiteEstimate(solution.point, (high - low) / (2 * two_sided(0.95)))


def _open(
    site: PlannedSite, is_target: bool, level: float, dice: Any, progress: Callable[[int], None] | None
) -> KnownSite:
    """Read off order statistics, of dithered records where the study has a resolution."""
    assert site.study is not None
    panel = site.study.plan
    records = dithered(site.study.prepared.table.records[0], panel.resolution, dice)
    summary = rank_summary(records, panel.tau)
    who = "the target" if is_target else f"source {site.name!r}"
    if not summary.error > 0:
        raise BadInput(
            f"{who} has no variance: its records around the {panel.tau:g} quantile are all equal; leave it out, or "
            "give resolution=, the step they are rounded to."
        )
    low, high = rank_interval(records, panel.tau, level)
    tied, warnings = shared(records, (low, high)), panel.warnings
    if is_target and tied:
        warnings += (
            "the target's records are tied at the ends of its own interval, which is exact, and would miss a value "
            "that it covers if sources moved it: give resolution=, the step they are rounded to",
        )
    size = site.study.prepared.table.records[0].size
    if progress is not None:
        progress(size)
    return KnownSite(
        site.name,
        "open",
        SiteEstimate(*summary),
        low,
        high,
        math.inf,
        size,
        size,
        1,
        False,
        tied=tied,
        warnings=warnings,
    )


def _chained(
    site: PlannedSite, level: float, chains: Chains, dice: Any, progress: Callable[[int], None] | None
) -> KnownSite:
    """Run the paper's parallel chains at a private site."""
    assert site.study is not None
    panel = site.study.plan
    [door] = site.study.prepared.open(dice)
    study = ChainStudy(panel.tau, panel.channels[0], chains.number, chains.constant, chains.power)
    found = run_chains(door, study, bounds=panel.bounds, scale=panel.scale, progress=progress)
    low, high = found.measured.interval(level)
    return KnownSite(
        site.name,
        "private",
        found.measured,
        low,
        high,
        panel.channels[0].epsilon,
        site.size,
        found.reports,
        found.rounds,
        door.private and not panel.roster.seeded,
    )
