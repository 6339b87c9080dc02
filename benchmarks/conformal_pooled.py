"""Coverage where answers are summed over all sites: one-record local privacy, and secure sums of histograms."""

import numpy as np

from benchmarks.conformal_cells import OTHERS, REAL, TUNED, edges_of, real_distributions
from benchmarks.conformal_tables import seed_of, show, within
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate, choose_local
from sottovoce_papers.simulation.conformal.data_sets import absent
from sottovoce_papers.simulation.conformal.repeat import Repeated
from sottovoce_papers.simulation.conformal.repeat_pooled import repeat_aggregate, repeat_local
from sottovoce_papers.simulation.conformal.score_distributions import ScoreDistribution, score_distribution

LOCAL, SUMMED = 16, 32  # bins that the facade takes
RECORDS = (1_000, 10_000, 100_000, 1_000_000)


def tail_edges(distribution: ScoreDistribution, bins: int) -> Floats:
    """Return a public grid in the upper tail, as training scores would give it."""
    return np.unique(distribution.quantile(1 - np.geomspace(0.25, 1 / 5000, bins)))


def run(replications: int = 4000) -> None:
    distributions = (
        *(score_distribution(name) for name in TUNED),
        *real_distributions(),
        *(score_distribution(name) for name in OTHERS),
    )
    if not real_distributions():
        print(f"\nReal residuals are left out: {absent(REAL)}.")
    count = max(replications, 4000)
    every: list[tuple[float, str, Repeated]] = []
    headers = ("epsilon", "records", "grid", *(distribution.name for distribution in distributions))
    for name, bins in (("aggregate", SUMMED), ("local", LOCAL)):
        rows = []
        sizes = ((200, 5),) if name == "aggregate" else tuple((records // 5, 5) for records in RECORDS)
        for (size, sites), epsilon in ((s, e) for s in sizes for e in (0.5, 1.0, 5.0, 10.0)):
            for grid in ("even", "tail"):
                row = []
                for distribution in distributions:
                    edges = (
                        edges_of(distribution, "fitting", bins) if grid == "even" else tail_edges(distribution, bins)
                    )
                    try:
                        seed = seed_of(name, size, epsilon, grid, distribution.name)
                        found = _repeat(name, size, sites, epsilon, distribution, edges, count, seed)
                    except Infeasible:
                        row.append("refused")
                        continue
                    z = (found.mean - 0.9) / found.error if found.error else np.inf
                    title = f"{name}, epsilon {epsilon:g}, {size * sites:,}, {grid}, {distribution.name}"
                    every.append((z, title, found))
                    infinite = f", {found.infinite:.0%} infinite" if found.infinite > 0.005 else ""
                    row.append(f"{within(found.mean, found.error)}, {found.spread:.4f}{infinite}")
                rows.append((f"{epsilon:g}", f"{size * sites:,}", grid, *row))
        show(f"{name}, {bins} bins, {count:,} calibrations: mean coverage, sd", headers, rows)
    every.sort(key=lambda each: each[0])
    lowest = [(title, f"{z:+.2f}", within(found.mean, found.error, 5)) for z, title, found in every[:8]]
    show(f"Lowest of {len(every)} pooled cells", ("cell", "z", "mean coverage"), lowest)


def _repeat(
    name: str,
    size: int,
    sites: int,
    epsilon: float,
    distribution: ScoreDistribution,
    edges: Floats,
    count: int,
    seed: int,
) -> Repeated:
    if name == "local":
        return repeat_local(
            choose_local([size] * sites, [epsilon] * sites, len(edges)), distribution, edges, count, seed
        )
    choice = choose_aggregate(size * sites, sites, epsilon, len(edges))
    return repeat_aggregate(choice, size * sites, distribution, edges, count, seed)


if __name__ == "__main__":
    run()
