"""Quantiles with a trusted curator (OpenDP, diffprivlib, Google's library) and without one, at equal epsilon.

Neighbours differ in one record that is replaced, which is what a local epsilon promises: OpenDP's measurement is asked
at distance 2 of a data set of known size, diffprivlib's exponential mechanism is of that kind by itself, and Google's
tree, whose epsilon is for a record added or removed, gets half of it. All are given the same public bounds, OpenDP the
data's own step for its candidates. Google's tree takes thin branches for empty, so that its usual shape loses some
tails: of two shapes it is shown with the one of smaller error, row by row. Ends of intervals for whole numbers are
rounded, as estimates are. The error is that from the population's quantile, so that sampling counts for everybody, as
it does for whoever asks.
"""

import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import sottovoce as sv
from benchmarks.peers.central_picture import draw
from benchmarks.peers.installed import Peer, diffprivlib, peer
from benchmarks.peers.populations import Asked, candidates, ordinary, real
from benchmarks.peers.sheets import Comparison, Sheet, figure, seconds
from sottovoce.core.arrays import Floats
from sottovoce.sim import dice

EPSILON, LEVEL = 1.0, 0.95
OPEN, GOOGLE = "no privacy", "Google (PyDP), central"
OURS, CERTIFIED = "Sottovoce, local", "Sottovoce certified, local"
SHAPES = ((4, 16), (9, 4))  # of Google's tree, height and branches: the usual ones, and narrower ones


class Answer(NamedTuple):
    """An estimate with its interval, if there is one."""

    estimate: float
    low: float = float("nan")
    high: float = float("nan")


Asker = Callable[[Floats], Answer]


class Cell(NamedTuple):
    """How a library did: mean absolute error, its median time, and of its intervals coverage and median length."""

    error: float
    seconds: float
    covered: float
    length: float
    failed: str  # why there is no answer at all
    missing: str = ""  # how often there was none


def openly(asked: Asked, _n: int, _epsilon: float, _module: Any) -> Asker:
    """Return the sample's own quantile."""
    return lambda values: Answer(float(np.quantile(values, asked.tau, method="inverted_cdf")))


def ours(method: str) -> Callable[[Asked, int, float, Any], Asker]:
    """Return a method of `federated_quantile`, at one site; whole numbers are known by their type."""

    def make(asked: Asked, _n: int, epsilon: float, _module: Any) -> Asker:
        def ask(values: Floats) -> Answer:
            held = values.astype(np.int64) if asked.whole else values
            r = sv.federated_quantile([held], asked.tau, epsilon, bounds=asked.bounds, level=LEVEL, method=method)
            return Answer(float(r.estimate), float(r.interval.low), float(r.interval.high))

        return ask

    return make


def by_opendp(asked: Asked, n: int, epsilon: float, module: Any) -> Asker:
    """Return OpenDP's private quantile over a public grid of candidates."""
    module.enable_features("contrib")
    domain = module.vector_domain(module.atom_domain(T=float, nan=False), size=n)
    grid = candidates(asked)

    def make(scale: float) -> Any:
        return module.m.make_private_quantile(
            domain, module.symmetric_distance(), module.max_divergence(), grid, asked.tau, scale
        )

    measure = make(module.binary_search_param(make, d_in=2, d_out=epsilon))
    return lambda values: Answer(float(measure(values)))


def by_diffprivlib(asked: Asked, _n: int, epsilon: float, module: Any) -> Asker:
    """Return diffprivlib's exponential mechanism between the order statistics."""
    return lambda values: Answer(float(module.quantile(values, asked.tau, epsilon=epsilon, bounds=asked.bounds)))


def by_google(shape: tuple[int, int]) -> Callable[[Asked, int, float, Any], Asker]:
    """Return Google's tree of noisy counts in some shape, with its interval."""

    def make(asked: Asked, _n: int, epsilon: float, module: Any) -> Asker:
        def ask(values: Floats) -> Answer:
            tree = module.QuantileTree(*asked.bounds, *shape)
            for value in values.tolist():
                tree.add_entry(value)
            (found,) = tree.compute_quantiles_and_confidence_intervals(
                epsilon / 2, 0.0, 1, 1, [asked.tau], LEVEL, "laplace"
            )
            return Answer(found.quantile, found.lower_bound, found.upper_bound)

        return ask

    return make


class Library(NamedTuple):
    """A library and how it is asked."""

    name: str
    make: Callable[[Asked, int, float, Any], Asker]
    module: Any = None


def libraries() -> tuple[tuple[Library, ...], tuple[Peer, ...]]:
    """Return what can be run here, no privacy first and Sottovoce last."""
    peers = (peer("opendp", "opendp.prelude"), diffprivlib(), peer("python-dp", "pydp.algorithms.quantile_tree"))
    makers = (
        [Library("OpenDP, central", by_opendp)],
        [Library("diffprivlib, central", by_diffprivlib)],
        [Library(GOOGLE, by_google(shape)) for shape in SHAPES],
    )
    there = [
        library._replace(module=found.module)
        for several, found in zip(makers, peers, strict=True)
        for library in several
        if found.module is not None
    ]
    own = (Library(OURS, ours("staged")), Library(CERTIFIED, ours("certified")))
    return (Library(OPEN, openly), *there, *own), peers


def measure(asked: Asked, n: int, epsilon: float, found: Sequence[Library], replications: int, seed: int) -> list[Cell]:
    """Ask every library of the same samples; the samples are seeded, the noise is the operating system's."""
    askers = [library.make(asked, n, epsilon, library.module) for library in found]
    answers: list[list[Answer]] = [[] for _ in found]
    times: list[list[float]] = [[] for _ in found]
    failed: list[list[str]] = [[] for _ in found]
    generator = dice(seed).generator()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(replications):
            values = asked.sample(generator, n)
            for at, ask in enumerate(askers):
                start = time.process_time()
                try:
                    answer = ask(values)
                    answers[at].append(Answer(*map(_rounded, answer)) if asked.whole else answer)
                except sv.Infeasible:
                    failed[at].append("refused")
                except Exception as error:  # a peer that fails on such data is shown, whatever it raises
                    failed[at].append(f"fails: {type(error).__name__}")
                times[at].append(time.process_time() - start)
    cells = [_cell(asked, each, took, why) for each, took, why in zip(answers, times, failed, strict=True)]
    return _best_shape(found, cells)


def _rounded(value: float) -> float:
    return value if math.isnan(value) or math.isinf(value) else float(round(value))


def _best_shape(found: Sequence[Library], cells: Sequence[Cell]) -> list[Cell]:
    """Leave of several shapes of a library the one with the least error: chosen after the fact, to its advantage."""
    best: dict[str, Cell] = {}
    for library, cell in zip(found, cells, strict=True):
        held = best.get(library.name)
        if held is None or held.failed or (not cell.failed and cell.error < held.error):
            best[library.name] = cell
    return list(best.values())


def _cell(asked: Asked, answers: Sequence[Answer], times: Sequence[float], failed: Sequence[str]) -> Cell:
    """Sum up the answers of one library."""
    if not answers:
        return Cell(float("nan"), statistics.median(times), float("nan"), float("nan"), failed[0])
    slack = 1e-9 * max(1.0, abs(asked.truth))
    return Cell(
        statistics.fmean(abs(answer.estimate - asked.truth) for answer in answers),
        statistics.median(times),
        statistics.fmean(answer.low - slack <= asked.truth <= answer.high + slack for answer in answers)
        if answers[0].low == answers[0].low
        else float("nan"),
        statistics.median(answer.high - answer.low for answer in answers),
        "",
        f" ({len(failed)} of {len(times)} fail)" if failed else "",
    )


def _shown(cell: Cell) -> str:
    return cell.failed or figure(cell.error) + cell.missing


def _interval(cell: Cell) -> tuple[str, str]:
    return (cell.failed, "") if cell.failed else (f"{cell.covered:.2f}", figure(cell.length))


def _promises(found: Sequence[Library]) -> Sheet:
    """Say whom one has to trust, for each library that ran."""
    said = {
        OPEN: ("the curator, and all who see the result", "none", "not asked for here"),
        "OpenDP, central": ("the curator, with all records", "of the result", "none for a quantile"),
        "diffprivlib, central": ("the curator, with all records", "of the result, floats", "none"),
        GOOGLE: ("the curator, with all records", "of the result", "of the noise alone"),
        OURS: ("nobody: a record sends one noisy bit", "of every record's letter", "of sampling and noise"),
        CERTIFIED: (
            "nobody: a record sends one noisy bit",
            "of every record's letter",
            "the same, for all data",
        ),
    }
    rows = tuple((name, *said[name]) for name in dict.fromkeys(library.name for library in found))
    return Sheet("Whom one has to trust", ("library", "who is trusted", "epsilon is", "interval"), rows)


def run(replications: int = 100, sizes: Sequence[int] = (1_000, 10_000, 100_000), cases: int = 99) -> Comparison:
    """Compare errors, intervals and times."""
    found, peers = libraries()
    tables, absent = real()
    cells: dict[tuple[Asked, int], list[Cell]] = {}
    for asked in (*ordinary(), *tables)[:cases]:
        for n in sizes:
            cells[asked, n] = measure(asked, n, EPSILON, found, replications, 90)
    names = tuple(dict.fromkeys(library.name for library in found))
    errors = tuple(
        (f"{asked.name}, tau {asked.tau:g} ({asked.truth:,.6g})", f"{n:,}", *map(_shown, row))
        for (asked, n), row in cells.items()
    )
    first = Sheet(
        f"Mean absolute error from the population's quantile, epsilon {EPSILON:g}",
        ("data (true quantile)", "records", *names),
        errors,
        f"{replications} samples a row, the same for all. In the data's units; answers to whole numbers are rounded. "
        "Refused: too few records for that level and epsilon, said before any is asked. OpenDP chooses among "
        "candidates in the data's own step; Google's tree is shown in the better of two shapes for each row, "
        f"{SHAPES[0][0]} levels of {SHAPES[0][1]} branches and {SHAPES[1][0]} of {SHAPES[1][1]}.",
    )
    held = [at for at, name in enumerate(names) if name in (OURS, CERTIFIED, GOOGLE)]
    intervals = tuple(
        (asked.name, f"{n:,}", *(text for at in held for text in _interval(row[at])))
        for (asked, n), row in cells.items()
        if n == max(sizes) or n == sorted(sizes)[len(sizes) // 2]
    )
    second = Sheet(
        f"Intervals at level {LEVEL:g}: how often they hold the population's quantile, and their median length",
        ("data", "records", *(f"{names[at]}: {what}" for at in held for what in ("coverage", "length"))),
        intervals,
        "Ends for whole numbers are rounded. Google's is for the sample's quantile before noise, by its documentation; "
        "OpenDP and diffprivlib give none.",
    )
    times = tuple(
        (f"{n:,}", *(seconds(statistics.median(row[at].seconds for (_, m), row in cells.items() if m == n))
                     for at in range(len(names))))
        for n in sizes
    )  # fmt: skip
    third = Sheet(
        "Time of a call (processor, median over the data)",
        ("records", *names),
        times,
        "Records as an array of numpy; Google's tree is fed one by one, as its Python face has it.",
    )
    question = (
        "The same samples, the same epsilon (for one record replaced), the same public bounds: how much further off is "
        "an answer for which nobody had to be trusted with the records?"
    )
    sheets = (_promises(found), first, second, third)
    return Comparison(
        "Quantiles with and without a trusted curator",
        question,
        sheets,
        tuple(_findings(cells, names)),
        (*peers, *(Peer("", "", None, why) for why in absent)),
        {"peers-central.png": lambda path: draw(path, cells, names)} if len(sizes) > 1 else {},
    )


def _findings(cells: dict[tuple[Asked, int], list[Cell]], names: Sequence[str]) -> list[str]:
    """Say what the tables show: what the missing curator costs, and whose intervals hold."""
    central = [at for at, name in enumerate(names) if name.endswith("central")]
    ours, said = names.index(OURS), []
    for n in sorted({n for _, n in cells}):
        ratios = [
            row[ours].error / best
            for (_, m), row in cells.items()
            if m == n and not row[ours].failed and (best := _best(row, central)) > 0
        ]
        if ratios:
            middle, least, most = (figure(each, 2) for each in (statistics.median(ratios), min(ratios), max(ratios)))
            said.append(
                f"With {n:,} records the local answer is {middle} times as far off as the best central one in the "
                f"median over the data where that one is off at all ({least} to {most})."
            )
    pairs = [(row[ours].error, _best(row, central)) for row in cells.values() if not row[ours].failed]
    if central:
        said.append(
            f"The best central answer is nearer in {sum(ours > best for ours, best in pairs)} of {len(pairs)} rows: "
            "where one curator may hold all records, a central library is the better choice. Sottovoce is for where "
            "nobody may."
        )
    for at, name in enumerate(names):
        held = [(row[at].covered, f"{asked.name}, {n:,}") for (asked, n), row in cells.items() if not row[at].failed]
        if held and min(held)[0] == min(held)[0]:
            pooled = statistics.fmean(covered for covered, _ in held)
            said.append(
                f"{name}: its intervals hold the population's quantile {pooled:.2f} of the time over all rows, "
                f"least {min(held)[0]:.2f} ({min(held)[1]})."
            )
    return said


def _best(row: Sequence[Cell], central: Sequence[int]) -> float:
    """Return the least error of the central libraries that answered, 0 where there is none."""
    return min((row[at].error for at in central if not row[at].failed), default=0.0)
