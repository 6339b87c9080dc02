"""Replications of the staged design with fresh records each time, and what they say: coverage, error, length.

A fresh record's letter is a Bernoulli draw with probability ``r (1 - F(q)) + (1 - r) / 2``, so a whole tally is one
binomial draw: the conversation is the method itself, only the letters are drawn together.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.normal import two_sided
from sottovoce.inference.quantile.asymptotic import standard_error
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.feasibility import support
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import Local, StagedStudy, staged_protocol
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.families import Generator
from sottovoce_papers.simulation.populations import Mixture, Population

QUANTILES = 4001  # of a population, for a phase question
SIZE = 0.05  # of the one-sided tests


@dataclass(frozen=True, eq=False)
class StagedCell:
    """One cell: populations at the sites, level, response rates, sizes and shares (None: pooled)."""

    name: str
    sites: Mixture
    tau: float
    rates: tuple[float, ...]
    sizes: tuple[int, ...]
    shares: tuple[float, ...] | None = None
    bounds: tuple[float, float] | None = None

    @property
    def profile(self) -> SiteProfile:
        """Return what the server knows."""
        sizes = np.array(self.sizes, dtype=np.int64)
        shares = sizes / sizes.sum() if self.shares is None else np.array(self.shares)
        return SiteProfile(shares, np.array(self.rates), sizes)

    @property
    def support(self) -> float:
        """Return s / t0, which says how hard the cell is."""
        return support(self.profile, self.tau).ratio

    @property
    def truth(self) -> float:
        """Return the quantile of the stated estimand."""
        return self.sites.quantile(self.tau, self.profile.shares)

    @property
    def oracle(self) -> float:
        """Return the standard error if every record had answered at the quantile and the density were known."""
        profile = self.profile
        at = self.truth
        return float(
            standard_error(
                self.sites.probabilities(at),
                self.sites.densities(at),
                profile.rates,
                profile.shares,
                profile.sizes.astype(np.float64),
            )
        )


@dataclass(frozen=True)
class Score:
    """What replications of a cell say; errors and lengths are relative to those of the oracle.

    ``greater`` and ``less`` are the sizes of the one-sided tests at .05; ``above`` and ``below`` are the parts of the
    runs whose interval lay beyond the quantile, which for 95 % (certified runs apart) are the sizes at .025.
    """

    name: str
    tau: float
    support: float
    coverage: float
    error: float
    length: float
    certified: float
    rounds: float
    searched: float
    worst: float
    replications: int
    greater: float
    less: float
    above: float
    below: float


def converse_fresh(
    cell: StagedCell, generator: Generator, watch: bool = True
) -> tuple[Local | Fitted | Certificate, int]:
    """Run one conversation with fresh records; return its outcome and the number of rounds."""
    profile = cell.profile
    coin = repr(generator.bit_generator.state).encode()  # another one each time, and no number is drawn for it
    conversation = staged_protocol(
        StagedStudy(cell.tau, profile, cell.bounds, None, coin=coin, phases=watch, watch=watch)
    )
    ask, rounds = next(conversation), 0
    rates = profile.rates[:, None]
    while True:
        rounds += 1
        above = 1 - np.array([site.cdf(ask.points) for site in cell.sites.populations])
        if ask.periods is not None:
            above = np.array([_upper_halves(site, ask.points, ask.periods) for site in cell.sites.populations])
        ones = generator.binomial(ask.counts, rates * above + (1 - rates) / 2)
        try:
            ask = conversation.send(ones)
        except StopIteration as stop:
            return stop.value, rounds


@lru_cache(maxsize=64)
def _quantiles(site: Population) -> Floats:
    """Return evenly spaced quantiles of a population."""
    return np.asarray(site.quantile((np.arange(QUANTILES) + 0.5) / QUANTILES))


def _upper_halves(site: Population, points: Floats, periods: Floats) -> Floats:
    """Return which part of a population answers a phase question with one, by its quantiles."""
    phases = (_quantiles(site)[:, None] - points) / periods
    return np.asarray(np.mean(phases - np.floor(phases) >= 0.5, axis=0))


def score(cell: StagedCell, replications: int, seed: int, level: float = 0.95) -> Score:
    """Replicate a cell and summarise; ``certified`` is the part of the runs that ended so."""
    generator, z = dice(seed).generator(), two_sided(level)
    truth, oracle = cell.truth, cell.oracle
    rows: list[tuple[float, float, float, int, float, bool, bool, bool]] = []
    for _ in range(replications):
        local, rounds = converse_fresh(cell, generator)
        found = staged_solution(local)
        low, high = found.interval(level)
        searched = local.milestones[0].reports / local.milestones[-1].reports
        greater, less = (found.p_value(truth, side) < SIZE for side in ("greater", "less"))
        rows.append((found.point, low, high, rounds, searched, isinstance(local, Certificate), greater, less))
    columns = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    points, lows, highs, rounds_, searched_, certified, greater_, less_ = columns
    errors: Floats = np.abs(points - truth) / oracle
    return Score(
        cell.name,
        cell.tau,
        cell.support,
        float(np.mean((lows <= truth) & (truth <= highs))),
        float(errors.mean()) / math.sqrt(2 / math.pi),
        float(np.median(highs - lows)) / (2 * z * oracle),
        float(certified.mean()),
        float(rounds_.mean()),
        float(searched_.mean()),
        float(errors.max()),
        replications,
        float(greater_.mean()),
        float(less_.mean()),
        float(np.mean(lows > truth)),
        float(np.mean(highs < truth)),
    )


_CELLS: list[StagedCell] = []  # inherited by forked workers: populations are functions, which cannot be sent


def score_all(
    cells: Sequence[StagedCell],
    replications: int,
    seed: int,
    jobs: int = 2,
    progress: Callable[[Score], None] | None = None,
) -> list[Score]:
    """Score many cells on a few processes, each cell with a seed of its own."""
    _CELLS[:] = cells
    scores = []
    with warnings.catch_warnings(), ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the workers use none of them
        tasks = [pool.submit(_score_one, i, replications, seed + i) for i in range(len(cells))]
        for task in tasks:
            scores.append(task.result())
            if progress is not None:
                progress(scores[-1])
    return scores


def _score_one(i: int, replications: int, seed: int) -> Score:
    return score(_CELLS[i], replications, seed)
