"""Private settings in which coverage is measured: those of the notes, and many on which nothing was tuned."""

import math
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce_papers.simulation.conformal.data_sets import data_folder, read_set
from sottovoce_papers.simulation.conformal.real_scores import residual_distribution
from sottovoce_papers.simulation.conformal.repeat import Repeated, Setting, repeat
from sottovoce_papers.simulation.conformal.score_distributions import ScoreDistribution, score_distribution

TUNED = ("half-normal", "log-normal")
REAL = ("bio", "bike")
OTHERS = (
    "exponential",
    "t3",
    "heavy mixture",
    "gap at 0.9",
    "gap at 0.88",
    "rounded exponential",
    "ten values",
    "signed",
)
SHAPES = ((3, 50), (3, 500), (10, 50), (10, 500), (50, 50), (50, 500))
EPSILONS = (0.5, 1.0, 5.0, 10.0)
MECHANISMS = ("sparse-vector", "exponential")
ENDS = ("fitting", "wide", "narrow")


class Cell(NamedTuple):
    """One setting, one law and one grid."""

    name: str
    setting: Setting
    distribution: ScoreDistribution
    edges: Floats

    @property
    def level(self) -> float:
        return 1 - self.setting.alpha


class SiteEstimate(NamedTuple):
    """A cell and its calibrations; None where the design refuses to promise a finite set."""

    cell: Cell
    found: Repeated | None

    @property
    def z(self) -> float:
        """Return how many Monte-Carlo errors the mean coverage lies above 1 - alpha."""
        if self.found is None:
            return math.inf
        above = self.found.mean - self.cell.level
        return above / self.found.error if self.found.error > 0 else math.copysign(math.inf, above)


def edges_of(distribution: ScoreDistribution, end: str, bins: int = 100) -> Floats:
    """Return a grid that ends where scores end, ten times as far, or at their .95 quantile."""
    top = float(distribution.quantile(0.95)) if end == "narrow" else float(distribution.quantile(1 - 1 / 5000))
    top *= 10.0 if end == "wide" else 1.0
    return distribution.edges(bins, top, minimum=-top if distribution.cdf(0.0) > 0.1 else 0.0)


def named_cells(distributions: tuple[ScoreDistribution, ...], mechanisms: tuple[str, ...]) -> Iterator[Cell]:
    """Yield the settings of the notes: five sites of 200 scores, a hundred bins."""
    for mechanism, epsilon, distribution in product(mechanisms, EPSILONS, distributions):
        setting = _setting((200,) * 5, (epsilon,) * 5, mechanism)
        yield Cell(
            f"{mechanism}, epsilon {epsilon:g}, {distribution.name}", setting, distribution, distribution.edges(100)
        )


def other_cells(
    distributions: tuple[str, ...] = OTHERS, shapes: tuple[tuple[int, int], ...] = SHAPES, ends: tuple[str, ...] = ENDS
) -> Iterator[Cell]:
    """Yield other laws, sizes, numbers of sites and grids."""
    for mechanism, epsilon, (sites, scores), name, end in product(
        MECHANISMS, (0.5, 1.0, 5.0), shapes, distributions, ends
    ):
        distribution = score_distribution(name)
        title = f"{mechanism}, epsilon {epsilon:g}, m={sites}, n={scores}, {name}, {end} grid"
        yield Cell(
            title, _setting((scores,) * sites, (epsilon,) * sites, mechanism), distribution, edges_of(distribution, end)
        )


def uneven_cells(distributions: tuple[str, ...] = (*TUNED, *OTHERS)) -> Iterator[Cell]:
    """Yield sites of unequal sizes with unequal budgets, one of them none, and other levels."""
    twenty = tuple(np.linspace(20, 600, 20).astype(int).tolist())
    crowds: dict[str, tuple[tuple[int, ...], tuple[float, ...], float]] = {
        "30..480": ((30, 60, 120, 240, 480), (0.5, 1.0, 1.0, 2.0, 5.0), 0.1),
        "30..480 turned": ((30, 60, 120, 240, 480), (5.0, 2.0, 1.0, 1.0, 0.5), 0.1),
        "one open": ((50, 100, 200, 200), (math.inf, 1.0, 1.0, 0.5), 0.1),
        "twenty": (twenty, (0.5, 1.0, 2.0, 4.0) * 5, 0.1),
        "alpha .05": ((200,) * 10, (1.0,) * 10, 0.05),
        "alpha .2": ((200,) * 5, (1.0,) * 5, 0.2),
    }
    for mechanism, (crowd, (sizes, epsilons, alpha)), name in product(MECHANISMS, crowds.items(), distributions):
        distribution = score_distribution(name)
        setting = _setting(sizes, epsilons, mechanism, alpha)
        yield Cell(f"{mechanism}, {crowd}, {name}", setting, distribution, edges_of(distribution, "fitting"))


@cache
def _setting(sizes: tuple[int, ...], epsilons: tuple[float, ...], mechanism: str, alpha: float = 0.1) -> Setting:
    """Return one object a setting, so that its plan is made once."""
    return Setting(sizes, epsilons, mechanism, alpha=alpha)


@cache
def real_distributions() -> tuple[ScoreDistribution, ...]:
    """Return the laws of real residuals, none where the folder is absent."""
    folder = data_folder(REAL)
    return () if folder is None else tuple(residual_distribution(read_set(folder, name)) for name in REAL)


def measure(cell: Cell, replications: int, seed: int) -> SiteEstimate:
    """Calibrate a cell again and again."""
    try:
        _ = cell.setting.plan
    except Infeasible:
        return SiteEstimate(cell, None)
    return SiteEstimate(cell, repeat(cell.setting, replications, seed, cell.distribution, cell.edges))


def ratio(measured: SiteEstimate) -> float:
    """Return the mean of the finite thresholds over the true quantile."""
    if measured.found is None:
        return math.inf
    finite = measured.found.thresholds[np.isfinite(measured.found.thresholds)]
    return float(finite.mean() / measured.cell.distribution.quantile(measured.cell.level)) if len(finite) else math.inf
