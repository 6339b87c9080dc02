"""Studies whose sites miss rounds: coverage, how many are lost, and length, next to the same studies without absences.

Three sites hold 1/3, 1/6 and 1/2 of 180,000 records, alike, mildly or strongly unlike, at epsilon 1; five hold a few
thousand ordinary records. A site misses each round with probability .3, or the largest is gone from some round on;
where the study waits for it in vain, it goes on without it, and the truth is that of the sites left.
"""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from sottovoce.api.quantile.planning import doors_of, prepare
from sottovoce.client.door import Door
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.protocol.messages import Message, Query, Tally
from sottovoce.server.method import Absent, Queries
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.server.quantile.sequence import SequenceQuantile
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.families import Generator
from sottovoce_papers.simulation.populations import Mixture, Population, population

SIZES = (60_000, 30_000, 90_000)
NAMES = tuple("abcde")
VAIN = 8  # rounds in which nobody but a site that is gone was asked
Answering = Callable[[int, Message], Message]  # site, question


class Absence(NamedTuple):
    """Who misses rounds: each site by chance, or the largest from some round on."""

    name: str
    chance: float = 0.0
    gone: bool = False


NOBODY, SOME, GONE = Absence("nobody"), Absence("30 % a round", 0.3), Absence("largest gone", gone=True)


@dataclass(frozen=True, eq=False)
class AbsenceCell:
    """Sites, level, method and who is absent."""

    name: str
    sites: tuple[Any, ...]  # populations that know their distribution functions, or functions that draw records
    tau: float
    absence: Absence = NOBODY
    method: str = "staged"
    sizes: tuple[int, ...] = SIZES
    epsilon: float = 1.0
    kind: str | None = None
    truth: Callable[[Sequence[int]], float] | None = None

    def quantile(self, stay: Sequence[int]) -> float:
        """Return the quantile over some of the sites, by their numbers."""
        if self.truth is not None:
            return self.truth(stay)
        sizes = np.array([self.sizes[k] for k in stay], dtype=np.float64)
        return Mixture(tuple(self.sites[k] for k in stay), sizes / sizes.sum()).quantile(self.tau)


class Run(NamedTuple):
    """Whether the interval covers, turned into a certified one, lacks an end; length, rounds, whether a site left."""

    covers: bool
    turned: bool
    lost: bool
    length: float
    rounds: int
    went_on: bool


def opened(cell: AbsenceCell, generator: Generator) -> tuple[QuantilePlan, Answering]:
    """Plan a study, and return how its sites answer: letters of fresh records, or sites with records of their own."""
    names = NAMES[: len(cell.sizes)]
    said: dict[str, Any] = {"limits": CERTIFIED, "certified": cell.method != "staged", "kind": cell.kind}
    if isinstance(cell.sites[0], Population):
        plan = plan_quantile(Roster(names, cell.sizes, Unit("number")), cell.tau, cell.epsilon, **said)
        rates = plan.crowd.rates

        def drawn(site: int, query: Message) -> Message:
            if not isinstance(query, Query):
                raise TypeError("only queries are answered")
            points, r = np.array(query.points), rates[site]
            above = 1 - cell.sites[site].cdf(points)
            if query.periods:
                quantiles = cell.sites[site].quantile((np.arange(401) + 0.5) / 401)
                phases = (quantiles[:, None] - points) / np.array(query.periods)
                above = np.mean(phases - np.floor(phases) >= 0.5, axis=0)
            ones = generator.binomial(query.counts, r * above + (1 - r) / 2)
            return Tally(query.round, tuple(ones.tolist()))

        return plan, drawn
    records = {name: draw(generator, n) for name, draw, n in zip(names, cell.sites, cell.sizes, strict=True)}
    prepared = prepare(records, cell.tau, cell.epsilon, **said)
    doors: list[Door] = doors_of(prepared.plan, prepared.open(dice(int(generator.integers(1 << 62)))))

    def asked(site: int, query: Message) -> Message:
        if not isinstance(query, Query):
            raise TypeError("only queries are answered")
        return doors[site].ask(query.round, query)

    return prepared.plan, asked


def study(cell: AbsenceCell, generator: Generator) -> Run:
    """Run one study."""
    plan, answer = opened(cell, generator)
    coin = generator.bytes(16)
    method: Any = (
        SequenceQuantile(plan, coin=coin)
        if cell.method == "sequence"
        else StagedQuantile(plan, coin=coin, certified=cell.method == "certified")
    )
    stay, largest = list(range(len(cell.sizes))), int(np.argmax(cell.sizes))
    last = int(generator.integers(1, 26)) if cell.absence.gone else 1 << 62
    state, rounds, vain, over = method.init(), 0, 0, False
    while (queries := method.query(state)) is not None:
        rounds += 1
        asked = [k for k, message in zip(stay, queries.messages, strict=True) if message is not None]
        away = {k for k in asked if generator.random() < cell.absence.chance or (k == largest and rounds > last)}
        vain = vain + 1 if asked == [largest] and rounds > last else 0
        if vain > VAIN and not over:
            try:
                method = method.without(state, [NAMES[largest]])
                stay.remove(largest)
                state, vain = method.init(), 0
                continue
            except Infeasible:  # too few are left: it ends with what was heard
                over = True
        state = method.step(state, replies(queries, stay, away, answer, over))
    result = method.outcome(state)
    low, high = result.interval
    turned, lost = result.method != cell.method, not np.isfinite(high - low)
    truth = cell.quantile(stay)
    return Run(low <= truth <= high, turned, bool(lost), high - low, rounds, len(stay) < len(cell.sizes))


def replies(queries: Queries, stay: list[int], away: set[int], answer: Answering, over: bool) -> list[Message | None]:
    """Return what sites say to a round; who is away says nothing until its deadline, and is gone where all is over."""
    return [
        None if message is None else Absent(queries.round, gone=over) if k in away else answer(k, message)
        for k, message in zip(stay, queries.messages, strict=True)
    ]


def scaled(family: Population, medians: Sequence[float]) -> tuple[Population, ...]:
    """Return a family with the given medians, by its scale."""
    return tuple(family.moved(0, median / float(family.quantile(0.5))) for median in medians)


def shifted(family: Population, medians: Sequence[float], scale: float) -> tuple[Population, ...]:
    """Return a family with the given medians, by its location."""
    return tuple(family.moved(median - scale * float(family.quantile(0.5)), scale) for median in medians)


LOGNORMAL, GAMMA, NORMAL, STUDENT = (
    population("lognormal", 0.5),
    population("gamma", 4.0),
    population("normal"),
    population("student", 4.0),
)
ALIKE, MILD, STRONG = (20.0, 20.0, 20.0), (17.0, 20.0, 23.0), (12.0, 41.0, 22.0)
# the rules were chosen on these ...
TUNED = {
    "alike": scaled(LOGNORMAL, ALIKE),
    "mild": scaled(LOGNORMAL, MILD),
    "strong": scaled(LOGNORMAL, STRONG),
}
# ... and not on these
UNSEEN = {
    "alike, gamma": scaled(GAMMA, ALIKE),
    "mild, normal": shifted(NORMAL, (23.0, 17.0, 20.0), 6.0),
    "strong, gamma": scaled(GAMMA, (41.0, 22.0, 12.0)),
    "strong, normal": shifted(NORMAL, (12.0, 30.0, 41.0), 6.0),
    "strong, student": shifted(STUDENT, (22.0, 12.0, 41.0), 5.0),
}


def heaped(scale: float) -> Callable[[Generator, int], Floats]:
    """Return amounts of which half are whole hundreds."""

    def draw(generator: Generator, n: int) -> Floats:
        values = np.round(stats.lognorm(0.6, scale=scale).rvs(n, random_state=generator), 2)
        return np.asarray(np.where(generator.random(n) < 0.5, np.round(values, -2), values), dtype=np.float64)

    return draw


def visits(mean: float) -> Callable[[Generator, int], Floats]:
    """Return counts."""
    return lambda generator, n: np.asarray(stats.poisson(mean).rvs(n, random_state=generator), dtype=np.float64)


def ordinary_cells() -> list[AbsenceCell]:
    """Return five sites with a few thousand ordinary records."""
    sizes, means, scales = (900, 700, 1200, 500, 1700), (4.0, 6.0, 5.0, 9.0, 3.0), (800.0, 1200.0, 950.0, 1500.0, 700.0)
    weights = np.array(sizes) / sum(sizes)

    def count(tau: float) -> Callable[[Sequence[int]], float]:
        def truth(stay: Sequence[int]) -> float:
            part = weights[list(stay)] / weights[list(stay)].sum()
            below = part @ np.array([stats.poisson(means[k]).cdf(np.arange(60)) for k in stay])
            return float(np.argmax(below >= tau))

        return truth

    def amount(tau: float) -> Callable[[Sequence[int]], float]:
        def truth(stay: Sequence[int]) -> float:
            part = weights[list(stay)] / weights[list(stay)].sum()
            bases = [stats.lognorm(0.6, scale=scales[k]) for k in stay]

            def below(x: float) -> float:
                whole = (np.floor(x / 100 + 1e-9) + 0.5) * 100
                return float(part @ np.array([(base.cdf(x + 0.005) + base.cdf(whole)) / 2 for base in bases]))

            low, high = 0.0, 1e5
            for _ in range(80):
                middle = (low + high) / 2
                low, high = (low, middle) if below(middle) >= tau else (middle, high)
            nearest = round(high / 100) * 100.0
            return nearest if abs(nearest - high) < 0.01 else round(high, 2)

        return truth

    return [
        AbsenceCell(name, draws, tau, sizes=sizes, epsilon=2.0, kind=kind, truth=truth(tau))
        for tau in (0.5, 0.9)
        for name, draws, kind, truth in (
            ("counts", tuple(map(visits, means)), "counts", count),
            ("heaped amounts", tuple(map(heaped, scales)), None, amount),
        )
    ]


_CELLS: list[AbsenceCell] = []  # inherited by forked workers: populations are functions, which cannot be sent


def _runs(task: tuple[int, int, int]) -> list[Run]:
    index, replications, seed = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        generator = dice(seed).generator()
        return [study(_CELLS[index], generator) for _ in range(replications)]


def table(cells: Sequence[AbsenceCell], replications: int, seed: int, jobs: int) -> None:
    """Print a row a cell; lengths are relative to those of the same cell without absences, which stands before it."""
    heads = ("covered", "turned", "lost", "length", "rounds", "went on")
    print(f"{'sites':<18}{'tau':>5}{'method':>11}{'absent':>15}" + "".join(f"{head:>9}" for head in heads))
    _CELLS[:] = cells
    lengths: dict[tuple[str, float, str], float] = {}
    with warnings.catch_warnings(), ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the workers use none of them
        found = pool.map(_runs, [(i, replications, seed + i) for i in range(len(cells))])
        for cell, runs in zip(cells, found, strict=True):
            covers, turned, lost, length, rounds, went = (np.array(column) for column in zip(*runs, strict=True))
            kept = float(np.median(length[~went])) if not went.all() else np.nan
            base = lengths.setdefault((cell.name, cell.tau, cell.method), kept)
            means = (
                covers.mean(),
                turned.mean(),
                lost.mean(),
                kept / base if base > 0 else np.nan,
                rounds.mean(),
                went.mean(),
            )
            numbers = "".join(f"{mean:>9.3f}" for mean in means)
            print(f"{cell.name:<18}{cell.tau:>5g}{cell.method:>11}{cell.absence.name:>15}{numbers}", flush=True)


def cells_of(sites: dict[str, tuple[Population, ...]], methods: Sequence[str]) -> list[AbsenceCell]:
    """Return the cells of three sites."""
    return [
        AbsenceCell(name, populations, tau, absence, method)
        for method in methods
        for name, populations in sites.items()
        for tau in (0.5, 0.9)
        for absence in (NOBODY, SOME, GONE)
    ]


def run(replications: int, jobs: int) -> None:
    """Print three tables: what the rules were chosen on, what not, and ordinary data."""
    error = (0.05 * 0.95 / replications) ** 0.5
    print(f"\nAbsent sites, {replications} studies a cell: the error of a coverage of .95 is {error:.3f}")
    table(cells_of(TUNED, ("staged", "certified")), replications, 7000, jobs)
    table(cells_of(UNSEEN, ("staged",)), replications, 8000, jobs)
    cells = [replace(cell, absence=absence) for cell in ordinary_cells() for absence in (NOBODY, SOME)]
    table(cells, replications, 9000, jobs)
