"""Quantiles of groups through the public call: coverage of each group and of all together, lengths, and what help buys.

The common question for a grid (`server.quantile.groups.protocol`) was chosen on the populations of
`benchmarks.ordinary_cells` without the public call; groups, layouts and populations here, and other seeds, test it. One
study gives all intervals: each group's own, all together, and those with the help of the others. Lengths are over the
group's true quantile.
"""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import sottovoce as sv
from benchmarks.ordinary_cells import KNOWN, UNSEEN, OrdinaryPopulation, atom, counted, of, plain, rounded
from sottovoce.inference.common.several import each_of
from sottovoce.server.quantile.groups.ends import GroupEnds
from sottovoce.server.quantile.groups.shrunk import shrunk
from sottovoce.sim.randomness import dice

Family = Callable[[float], OrdinaryPopulation]


def _heaped(factor: float) -> OrdinaryPopulation:
    amounts = stats.lognorm(0.6, scale=300 * factor)
    return of("", (), rounded(0.3, amounts, 50), rounded(0.3, amounts, 10), plain(0.4, amounts))


def _zeros(factor: float) -> OrdinaryPopulation:
    return of("", (), atom(0.3, 0.0), plain(0.7, stats.lognorm(0.8, scale=200 * factor)))


def _ages(factor: float) -> OrdinaryPopulation:
    years = stats.norm(45 * factor, 14)
    return of("", (), rounded(0.15, years, 10), rounded(0.25, years, 5), rounded(0.6, years, 1))


FAMILIES: dict[str, Family] = {
    "waits (gamma)": lambda factor: of("", (), plain(1, stats.gamma(2, scale=10 * factor))),
    "counts (negative binomial)": lambda factor: of("", (), counted(stats.nbinom(3, 3 / (3 + 12 * factor)))),
    "amounts, 60 % heaped": _heaped,
    "amounts, 30 % zeros": _zeros,
    "ages, 40 % heaped": _ages,
}
LAYOUTS: dict[str, tuple[int, ...]] = {
    "20 of 2,000": (2_000,) * 20,
    "50 of 1,000": (1_000,) * 50,
    "6 of 300 to 100,000": (300, 1_000, 3_000, 10_000, 30_000, 100_000),
}
SPREADS = {"unlike": 0.1, "alike": 0.0, "one odd": 0.0}  # standard deviation of the logarithm of the groups' scales
ASKED = (("unlike", 0.5), ("alike", 0.5), ("one odd", 0.5), ("unlike", 0.9))
ODD = 1.6  # scale of the odd group
SEEN = ("own", "joint", "length", "certified", "each", "each_joint", "each_length", "average", "average_length")
LEVEL, SEED = 0.95, 8_200
Task = tuple[str, str, str, float, float, int, int]


class GroupScores(NamedTuple):
    """What the runs of a cell came to: coverages (mean, lowest group, all together), lengths, with and without help."""

    answered: float
    certified: float
    own: float
    lowest: float
    joint: float
    length: float
    helped: float
    helped_lowest: float
    helped_joint: float
    shorter: float
    average: float
    average_lowest: float
    average_shorter: float
    equal: float


def factors(layout: str, spread: str) -> list[float]:
    """Return the scales of the groups: those of a normal distribution, large and small mixed."""
    m = len(LAYOUTS[layout])
    if spread == "one odd":
        return [*[1.0] * (m - 1), ODD]
    places = [NormalDist().inv_cdf((at * 7 % m + 0.5) / m) for at in range(m)] if m % 7 else []
    return [float(np.exp(SPREADS[spread] * place)) for place in places]


def one(task: Task) -> GroupScores | None:
    """Run one cell; None where no group can be asked."""
    warnings.simplefilter("ignore")
    family, layout, spread, epsilon, tau, runs, seed = task
    sizes, scales = LAYOUTS[layout], factors(layout, spread)
    populations = [FAMILIES[family](factor) for factor in scales]
    truth = np.array([population.quantile(tau) for population in populations])
    m, told = len(sizes), []
    for i, own in enumerate(dice(seed).split(runs)):
        generator = dice(seed + 7_919 * (i + 1)).generator()
        drawn = [population.sample(generator, n) for population, n in zip(populations, sizes, strict=True)]
        whole = all(bool(np.all(values == np.round(values))) for values in drawn)
        sites = {f"g{at}": values.astype(np.int64) if whole else values for at, values in enumerate(drawn)}
        try:
            made = sv.group_quantiles(sites, tau, epsilon, level=LEVEL, randomness=own)
        except sv.Infeasible:
            return None
        told.append((made, _seen(made, truth)))
    answered = np.array([[f"g{at}" in made.groups for at in range(m)] for made, _ in told])
    rows = {name: np.array([seen[name] for _, seen in told]) for name in told[0][1]}
    return GroupScores(
        float(answered.mean()),
        float(np.nanmean(rows["certified"])),
        *_coverage(rows["own"]),
        _together(rows["joint"]),
        float(np.nanmedian(rows["length"])),
        *_coverage(rows["each"]),
        _together(rows["each_joint"]),
        float(np.nanmedian(rows["each_length"] / rows["length"])),
        *_coverage(rows["average"]),
        float(np.nanmedian(rows["average_length"] / rows["length"])),
        float(np.mean([made.equal.pvalue <= 1 - LEVEL for made, _ in told])),
    )


def _coverage(held: Any) -> tuple[float, float]:
    """Return the mean coverage, and that of the group with the lowest."""
    return float(np.nanmean(held)), float(np.nanmin(np.nanmean(held, axis=0)))


def _together(held: Any) -> float:
    """Return how often all intervals of a study hold."""
    return float(np.mean(np.all((held == 1) | np.isnan(held), axis=1)))


def _seen(made: Any, truth: Any) -> dict[str, Any]:
    """Return for every group whether its intervals hold the truth, and how long they are; NaN if it was left out."""
    m = len(truth)
    found: dict[str, Any] = {
        name: np.full(m, np.nan)
        for name in (
            "own",
            "joint",
            "length",
            "certified",
            "each",
            "each_joint",
            "each_length",
            "average",
            "average_length",
        )
    }
    individual, joint = made.individual, made.joint
    ends, each = GroupEnds(made.results), each_of(LEVEL, m, independent=False)
    helped = {how: shrunk(ends, how, LEVEL) for how in ("each", "average")}
    together = shrunk(ends, "each", each)
    for at, name in enumerate(made.names):
        place = int(name[1:])
        value, (low, high) = float(truth[place]), individual[name]
        found["own"][place] = low <= value <= high
        found["joint"][place] = joint[name].low <= value <= joint[name].high
        found["length"][place] = (high - low) / value
        found["certified"][place] = made.results[at].method == "certified"
        moved = ends.rounded(at, each) if (row := together[at]) is None else (row.low, row.high)
        found["each_joint"][place] = moved[0] <= value <= moved[1]
        for how, rows in helped.items():
            row = rows[at]
            reach = (low, high) if row is None else (row.low, row.high)
            found[how][place] = reach[0] <= value <= reach[1]
            if row is not None:
                found[f"{how}_length"][place] = (reach[1] - reach[0]) / value
    return found


def ordinary(task: tuple[int, bool, float, int, int, float, int, int]) -> tuple[str, float, float, float] | None:
    """Run one kind of ordinary data in small groups, all alike: coverage, part certified, and its seed's population."""
    warnings.simplefilter("ignore")
    index, unseen, tau, m, records, epsilon, runs, seed = task
    population: OrdinaryPopulation = (UNSEEN if unseen else KNOWN)[index]
    truth, held, certified = population.quantile(tau), [], []
    for i, own in enumerate(dice(seed + index).split(runs)):
        generator = dice(seed + 1_000 * index + i).generator()
        values = [population.sample(generator, records) for _ in range(m)]
        whole = all(bool(np.all(column == np.round(column))) for column in values)
        try:
            made = sv.group_quantiles(
                [column.astype(np.int64) if whole else column for column in values], tau, epsilon, randomness=own
            )
        except (sv.Infeasible, sv.BadInput):
            return None
        held += [low <= truth <= high for low, high in made.individual.values()]
        certified += [result.method == "certified" for result in made.results]
    return population.name, tau, float(np.mean(held)), float(np.mean(certified))


def run(runs: int, jobs: int, only: Sequence[str] = ()) -> None:
    """Print coverage and lengths of cells with some words in their names, then of ordinary data in small groups."""
    tasks = [
        (family, layout, spread, epsilon, tau, max(runs * 20 // len(sizes), 2), SEED + 100 * number)
        for number, (family, (layout, sizes), (spread, tau)) in enumerate(product(FAMILIES, LAYOUTS.items(), ASKED))
        for epsilon in (1.0, 2.0, 4.0)
        if all(word in _name(family, layout, spread, epsilon, tau) for word in only)
    ]
    print(f"{20 * runs} intervals a cell; coverage of own (mean, lowest group), of all together, with help")
    print(f"{'cell':<58} {'asked':>6} {'cert':>5} {'own':>11} {'joint':>6} {'len':>6} {'each':>23} {'average':>17} eq")
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for task, found in zip(tasks, pool.map(one, tasks), strict=True):
            print(f"{_name(*task[:5]):<58} {'refused' if found is None else _line(found)}", flush=True)
    _run_ordinary(max(runs // 25, 2), jobs, only)


def _name(family: str, layout: str, spread: str, epsilon: float, tau: float) -> str:
    return f"{family}, {layout}, {spread}, eps {epsilon:g}, tau {tau:g}"


def _line(found: GroupScores) -> str:
    own, helped, average = (f"{mean:.3f} {low:.2f}" for mean, low in (
        (found.own, found.lowest), (found.helped, found.helped_lowest), (found.average, found.average_lowest)
    ))  # fmt: skip
    return (
        f"{found.answered:>6.2f} {found.certified:>5.2f} {own:>11} {found.joint:>6.2f} {found.length:>6.3f} "
        f"{helped:>11} {found.helped_joint:>5.2f} {found.shorter:>5.2f} {average:>11} {found.average_shorter:>5.2f} "
        f"{found.equal:.2f}"
    )


def _run_ordinary(runs: int, jobs: int, only: Sequence[str]) -> None:
    """Print coverage of all kinds of ordinary data, in groups that alone would be certified at the median."""
    for m, records, epsilon in ((50, 1_000, 2.0), (20, 2_000, 1.0)):
        tasks = [
            (index, unseen, tau, m, records, epsilon, runs, SEED)
            for unseen, kinds in ((False, KNOWN), (True, UNSEEN))
            for index, population in enumerate(kinds)
            for tau in population.levels
            if all(word in f"ordinary {population.name}" for word in only)
        ]
        if not tasks:
            return
        print(f"ordinary data, {m} groups of {records:,}, epsilon {epsilon:g}, {runs} runs")
        covered: list[float] = []
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            for found in pool.map(ordinary, tasks):
                if found is not None:
                    covered.append(found[2])
                    print(f"{found[0]:<36} {found[1]:>5g} covered {found[2]:.3f} certified {found[3]:.2f}", flush=True)
        if covered:
            print(
                f"{len(covered)} kinds, mean {np.mean(covered):.3f}, {sum(each < 0.92 for each in covered)} below .92"
            )
