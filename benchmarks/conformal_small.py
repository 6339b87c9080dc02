"""Private thresholds from many small sites: the length of sets by each mechanism, what is chosen, and if it holds."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.conformal_cells import OTHERS
from benchmarks.conformal_tables import seed_of, show
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.server.conformal.coverage.counted import choose_counts, edges_for
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate, choose_local
from sottovoce.server.conformal.methods import settle
from sottovoce.server.conformal.plan import SiteFacts
from sottovoce.server.conformal.public_grid import PublicGrid
from sottovoce.server.conformal.settings import check_settings
from sottovoce_papers.simulation.conformal.repeat import Repeated, Setting, repeat
from sottovoce_papers.simulation.conformal.repeat_pooled import repeat_aggregate, repeat_counts, repeat_local
from sottovoce_papers.simulation.conformal.score_distributions import (
    ScoreDistribution,
    mixture,
    scaled,
    score_distribution,
)
from sottovoce_papers.simulation.families import Generator

SHAPES = ((20, 50), (50, 20), (100, 10), (200, 5))
EPSILONS = (0.5, 1.0, 2.0, 4.0)
BOUNDS = {"twice": 2.0, "20 times": 20.0}  # the public maximum over the true quantile
FORMER = ("sparse-vector", "exponential", "paper", "local", "aggregate")
ZERO = ScoreDistribution("zero", lambda x: np.asarray(np.asarray(x) >= 0, dtype=float), lambda u: 0.0 * np.asarray(u))
CROWDS: dict[str, tuple[tuple[int, ...], tuple[float, ...], float]] = {
    "40 of 5 to 40 scores": (tuple(np.linspace(5, 40, 40).astype(int).tolist()), (1.0,) * 40, 0.1),
    "budgets .3 to 4": ((20,) * 60, (0.3, 1.0, 2.0, 4.0) * 15, 0.1),
    "one of 400, 30 of 10": ((400, *(10,) * 30), (1.0,) * 31, 0.1),
    "alpha .05": ((20,) * 80, (2.0,) * 80, 0.05),
    "alpha .3": ((12,) * 30, (1.0,) * 30, 0.3),
    "300 of 1": ((1,) * 300, (3.0,) * 300, 0.2),
}


def families() -> dict[str, ScoreDistribution]:
    """Return ordinary scores: absolute errors, counts, and errors of which most are nothing."""
    whole = scaled(score_distribution("exponential"), 3.0).rounded(1.0)
    zeros = mixture("zero-inflated", [ZERO, score_distribution("exponential")], [0.7, 0.3])
    named = {name: score_distribution(name) for name in ("half-normal", "exponential", "log-normal")}
    return {**named, "whole numbers": whole, "zero-inflated": zeros}


def run(replications: int = 2000) -> None:
    count = max(replications, 2000)
    for bound in BOUNDS:
        _lengths(bound, count)
    _chosen(count)
    _conditional(count)
    _held(count)
    _unlike(count)


def calibrated(
    mechanism: str, sizes: tuple[int, ...], epsilons: tuple[float, ...], distribution: ScoreDistribution, edges: Floats,
    count: int, alpha: float = 0.1, delta: float | None = None,
) -> Repeated:  # fmt: skip
    """Calibrate again and again by one mechanism."""
    seed = seed_of(mechanism, sizes, epsilons, distribution.name, len(edges), float(edges[-1]), alpha, delta)
    guarantee = "marginal" if delta is None else "training-conditional"
    promise = (alpha, guarantee, 0.1 if delta is None else delta)
    if mechanism == "counts":
        choice = choose_counts(sizes, epsilons, len(edges), *promise)  # type: ignore[arg-type]
        return repeat_counts(choice, sizes, distribution, edges, count, seed)
    if mechanism == "local":
        return repeat_local(choose_local(sizes, epsilons, len(edges), *promise), distribution, edges, count, seed)  # type: ignore[arg-type]
    if mechanism == "aggregate":
        summed = choose_aggregate(sum(sizes), len(sizes), min(epsilons), len(edges), *promise)  # type: ignore[arg-type]
        return repeat_aggregate(summed, sum(sizes), distribution, edges, count, seed)
    setting = Setting(sizes, epsilons, mechanism, len(edges), alpha, delta)
    return repeat(setting, count, seed, distribution, edges)


def automatic(
    sizes: tuple[int, ...], epsilons: tuple[float, ...], top: float, alpha: float = 0.1, delta: float | None = None
) -> tuple[str, Floats]:
    """Return the mechanism that is taken unless told otherwise, and its edges."""
    guarantee = "marginal" if delta is None else "training-conditional"
    settings = check_settings(alpha, guarantee, 0.1 if delta is None else delta, "closest", 1, False, "auto", True)
    facts = [SiteFacts(*fact) for fact in zip(sizes, epsilons, strict=True)]
    settled = settle(settings, PublicGrid(0.0, top, None), facts)
    return str(settled.settings.mechanism), np.array(settled.line)


def figure(found: Repeated, distribution: ScoreDistribution, alpha: float = 0.1, top: float = np.inf) -> str:
    """Return mean coverage and the mean threshold over the true quantile, infinite ones as twice the maximum."""
    quantile = float(distribution.quantile(1 - alpha))
    ratio = float(np.mean(np.minimum(found.thresholds, 2 * top)) / quantile)
    often = f", {found.infinite:.1%} inf" if found.infinite > 0.0005 else ""
    return f"{found.mean:.3f} ({ratio:.2f}{often})"


def _lengths(bound: str, count: int) -> None:
    """Print every mechanism as it stands, and what is chosen."""
    every, rows = families(), []
    for (sites, size), epsilon, mechanism in product(SHAPES, EPSILONS, (*FORMER, "counts", "auto")):
        cells = []
        for distribution in every.values():
            top = BOUNDS[bound] * float(distribution.quantile(0.9))
            sizes, epsilons = (size,) * sites, (epsilon,) * sites
            # as it was unless told otherwise: equal steps
            how, edges = mechanism, distribution.edges({"local": 16, "aggregate": 32}.get(mechanism, 100), top)
            if mechanism == "auto":
                how, edges = automatic(sizes, epsilons, top)
            elif mechanism == "counts":
                edges = PublicGrid(0.0, top, None).ratios(edges_for(sizes, epsilons, 0.1))
            try:
                found = calibrated(how, sizes, epsilons, distribution, edges, count // 4 if how in FORMER else count)
            except (Infeasible, BadInput):
                cells.append("refused")
                continue
            cells.append(figure(found, distribution, top=top))
        name = f"auto: {how}" if mechanism == "auto" else mechanism
        rows.append((f"{sites} x {size}", f"{epsilon:g}", name, *cells))
    title = f"Public maximum {bound} the true quantile: mean coverage (mean threshold over the true one)"
    show(title, ("sites", "epsilon", "mechanism", *every), rows)


def _chosen(count: int) -> None:
    """Print what is chosen and reached over many shapes, and what was forecast."""
    rows = []
    for (sites, size), epsilon in product(((5, 200), (10, 20), (10, 100), (50, 20), (50, 200), (500, 20)), EPSILONS):
        sizes, epsilons = (size,) * sites, (epsilon,) * sites
        cells = []
        for name in ("half-normal", "log-normal"):
            distribution = score_distribution(name)
            top = 5 * float(distribution.quantile(0.9))
            how, edges = automatic(sizes, epsilons, top)
            found = calibrated(how, sizes, epsilons, distribution, edges, count)
            cells.append(f"{figure(found, distribution, top=top)}, sd {found.spread:.3f}")
        rows.append((f"{sites} x {size}", f"{epsilon:g}", how, len(edges), *cells))
    headers = ("sites", "epsilon", "mechanism", "edges", "half-normal", "log-normal")
    show("What is chosen, maximum five times the quantile", headers, rows)


def _conditional(count: int) -> None:
    """Print how often one calibration covers enough, where that was asked for."""
    rows = []
    for (sites, size), epsilon in product(((50, 20), (200, 5), (500, 20)), EPSILONS):
        sizes, epsilons = (size,) * sites, (epsilon,) * sites
        cells = []
        for name, distribution in families().items():
            top = 5 * float(distribution.quantile(0.9))
            how, edges = automatic(sizes, epsilons, top, delta=0.1)
            try:
                found = calibrated(how, sizes, epsilons, distribution, edges, count, delta=0.1)
            except Infeasible:
                cells.append("refused")
                continue
            del name
            cells.append(f"{found.part(0.9 - 1e-12):.3f}; {figure(found, distribution, top=top)}")
        rows.append((f"{sites} x {size}", f"{epsilon:g}", how, *cells))
    title = "Training-conditional, delta .1: part of calibrations with .9 or more; mean coverage (length)"
    show(title, ("sites", "epsilon", "mechanism", *families()), rows)


def checked(count: int) -> Iterator[tuple[str, float, Repeated]]:
    """Yield counts on distributions that nothing was tuned on, sites of unequal sizes and budgets, and other levels."""
    others = {name: score_distribution(name) for name in OTHERS} | families()
    cells = [(f"{m} x {n}, epsilon {e:g}", ((n,) * m, (e,) * m, 0.1)) for (m, n), e in product(SHAPES, EPSILONS)]
    for (title, (sizes, epsilons, alpha)), (name, distribution) in product([*cells, *CROWDS.items()], others.items()):
        for end in (0.95, 0.9998):  # the grid ends below what many scores reach, or above nearly all
            top = float(distribution.quantile(end))
            low = -top if float(distribution.cdf(-1e-9)) > 0.05 else 0.0
            grid = PublicGrid(low, max(top, 1e-6), None)
            edges = grid.ratios(edges_for(sizes, epsilons, alpha))
            try:
                found = calibrated("counts", sizes, epsilons, distribution, edges, count, alpha)
            except Infeasible:
                continue
            yield f"{title}, {name}, grid to {end:g}", 1 - alpha, found


def _held(count: int) -> None:
    """Print the cells whose coverage lies lowest beside its Monte-Carlo error."""
    found = [(name, level, each) for name, level, each in checked(2 * count)]
    z = [(each.mean - level) / each.error if each.error else np.inf for _, level, each in found]
    order = np.argsort(z)[:6]
    rows = [(found[i][0], f"{z[i]:+.2f}", f"{found[i][2].mean:.4f} ± {found[i][2].error:.4f}") for i in order]
    below = sum(each.mean < level for _, level, each in found)
    title = f"Lowest of {len(found)} cells of counts, {below} with a mean below 1 - alpha"
    show(title, ("cell", "z", "mean coverage"), rows)


def _unlike(count: int) -> None:
    """Print coverage of the sites' mixture where sites differ in scale, which nothing is promised for."""
    rows = []
    for spread, epsilon in product((0.0, 0.2, 0.5, 1.0), (1.0, 2.0)):
        cells = [_differing(mechanism, spread, epsilon, count) for mechanism in ("counts", "sparse-vector")]
        rows.append((f"{spread:g}", f"{epsilon:g}", *cells))
    title = "50 sites of 20 half-normal scores whose scales differ: mean coverage of the mixture, sd (length)"
    show(title, ("sd of log scale", "epsilon", "counts", "sparse vector, 24 edges"), rows)


def _differing(mechanism: str, spread: float, epsilon: float, count: int) -> str:
    """Calibrate sites of different scales, drawn anew each time, and judge by their mixture."""
    from sottovoce.server.conformal.pooled import cell_of_counts
    from sottovoce.sim import dice

    sites, size, generator = 50, 20, dice(seed_of(mechanism, spread, epsilon)).generator()
    edges = edges_for([size] * sites, [epsilon] * sites, 0.1) if mechanism == "counts" else 24
    line = PublicGrid(0.0, 8.0, None).ratios(edges)
    half_normal = score_distribution("half-normal")
    covered, lengths = [], []
    if mechanism == "counts":
        choice = choose_counts([size] * sites, [epsilon] * sites, len(line))
    else:
        setting = Setting((size,) * sites, (epsilon,) * sites, mechanism, len(line))
    for _ in range(count // 4):
        scale = np.exp(spread * generator.normal(size=sites))
        scores = abs(generator.normal(size=(sites, size))) * scale[:, None]
        if mechanism == "counts":
            fall = np.exp(-epsilon)
            noise = generator.geometric(1 - fall, sites) - generator.geometric(1 - fall, sites)
            told = (scores <= line[list(choice.edge_of)][:, None]).sum(axis=1) + noise
            cell = cell_of_counts(told.tolist(), [size] * sites, choice)
            value = float(np.append(line, np.inf)[cell])
        else:
            value = _scanned(setting, scores, line, generator)
        covered.append(float(np.mean(half_normal.cdf(value / scale))) if np.isfinite(value) else 1.0)
        pooled = np.quantile(abs(generator.normal(size=(sites, 200))) * scale[:, None], 0.9)
        lengths.append(min(value, 16.0) / pooled)
    return f"{np.mean(covered):.3f}, {np.std(covered):.3f} ({np.mean(lengths):.2f})"


def _scanned(setting: Setting, scores: Floats, line: Floats, generator: Generator) -> float:
    """Return the threshold of sites that name cells."""
    from sottovoce.protocol.selection import selection
    from sottovoce_papers.simulation.conformal.selections import draw_cells

    choice = setting.plan.choice
    mechanism = selection("sparse-vector", scores.shape[1], choice.orders[0][0], len(line) + 1, setting.epsilons[0])
    counts = np.array([np.bincount(np.searchsorted(line, row), minlength=len(line) + 1) for row in scores])
    cells = draw_cells(mechanism, counts, generator)
    return float(np.sort(np.append(line, np.inf)[cells])[choice.rank - 1])


if __name__ == "__main__":
    run()
