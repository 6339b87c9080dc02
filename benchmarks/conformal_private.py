"""Coverage of private thresholds, and whether it is ever below what was promised."""

from collections.abc import Iterable

import numpy as np

from benchmarks.conformal_cells import (
    EPSILONS,
    REAL,
    TUNED,
    SiteEstimate,
    measure,
    named_cells,
    other_cells,
    ratio,
    real_distributions,
    uneven_cells,
)
from benchmarks.conformal_tables import seed_of, show, within
from sottovoce_papers.simulation.conformal.data_sets import absent
from sottovoce_papers.simulation.conformal.repeat import Setting, repeat
from sottovoce_papers.simulation.conformal.score_distributions import score_distribution

MECHANISMS = ("sparse-vector", "exponential", "paper")


def run(replications: int = 4000) -> None:
    distributions = (*(score_distribution(name) for name in TUNED), *real_distributions())
    if len(distributions) == len(TUNED):
        print(f"\nReal residuals are left out: {absent(REAL)}.")
    count = max(replications, 4000)
    found = [measure(cell, 5 * count, seed_of(cell.name)) for cell in named_cells(distributions, MECHANISMS)]
    rows = []
    for start in range(0, len(found), len(distributions)):
        row = found[start : start + len(distributions)]
        setting = row[0].cell.setting
        rows.append((f"{setting.epsilons[0]:g}", setting.mechanism, *map(_figure, row)))
    order = {epsilon: place for place, epsilon in enumerate(f"{each:g}" for each in EPSILONS)}
    rows.sort(key=lambda row: (-order[str(row[0])], MECHANISMS.index(str(row[1]))))
    title = f"Private, m=5, n=200, 100 bins, {5 * count:,} calibrations: mean coverage, sd (threshold / true quantile)"
    show(title, ("epsilon", "mechanism", *(distribution.name for distribution in distributions)), rows)
    lowest("the named cells", found)
    others = [measure(cell, count, seed_of(cell.name)) for cell in other_cells()]
    lowest(f"other laws, sizes and grids, {count:,} calibrations", others)
    _by_grid(others)
    uneven = [measure(cell, count, seed_of(cell.name)) for cell in uneven_cells()]
    lowest(f"unequal sites and budgets, {count:,} calibrations", uneven)
    _conditional(count)


def _figure(measured: SiteEstimate) -> str:
    if measured.found is None:
        return "refused"
    mean = within(measured.found.mean, measured.found.error, 4)
    return f"{mean}, {measured.found.spread:.4f} ({ratio(measured):.2f})"


def lowest(title: str, cells: Iterable[SiteEstimate], most: int = 8) -> float:
    """Print the cells whose coverage lies lowest beside its Monte-Carlo error, and return the lowest z."""
    found = list(cells)
    kept = [each for each in found if each.found is not None]
    kept.sort(key=lambda each: each.z)
    below = sum(each.z < 0 for each in kept)
    rows = [
        (each.cell.name, f"{each.z:+.2f}", within(each.found.mean, each.found.error, 5), f"{each.found.infinite:.3f}")
        for each in kept[:most]
        if each.found is not None
    ]
    refused = len(found) - len(kept)
    counted = f"{len(kept)} cells, {refused} refused, {below} with a mean below 1 - alpha"
    show(f"Lowest of {title}: {counted}", ("cell", "z", "mean coverage", "infinite"), rows)
    means = [each.found.mean - each.cell.level for each in kept if each.found is not None]
    print(f"\nMean coverage less 1 - alpha: least {min(means):+.5f}, median {np.median(means):+.5f}.")
    return kept[0].z


def _by_grid(found: list[SiteEstimate]) -> None:
    """Print what the grid costs: coverage beyond what was asked, infinite sets, and settings that are refused."""
    groups: dict[tuple[str, float, str], list[SiteEstimate]] = {}
    for each in found:
        setting = each.cell.setting
        end = each.cell.name.rsplit(", ", 1)[1]
        groups.setdefault((str(setting.mechanism), setting.epsilons[0], end), []).append(each)
    rows = []
    for (mechanism, epsilon, end), cells in groups.items():
        kept = [each.found for each in cells if each.found is not None]
        means = [each.mean for each in kept]
        refused = {f"m={len(c.cell.setting.sizes)}, n={c.cell.setting.sizes[0]}" for c in cells if c.found is None}
        coverage = f"{min(means):.4f}, {np.median(means):.4f}, {max(means):.4f}"
        infinite = f"{np.mean([each.infinite for each in kept]):.3f}"
        rows.append((mechanism, f"{epsilon:g}", end, coverage, infinite, "; ".join(sorted(refused))))
    headers = ("mechanism", "epsilon", "grid", "mean coverage: least, median, most", "infinite", "refused")
    show("The same cells by grid", headers, rows)


def _conditional(replications: int) -> None:
    rows = []
    for epsilon in EPSILONS:
        setting = Setting((200,) * 5, (epsilon,) * 5, "sparse-vector", delta=0.1)
        for name in (*TUNED, "gap at 0.9", "rounded exponential"):
            distribution = score_distribution(name)
            found = repeat(
                setting, replications, seed_of("conditional", epsilon, name), distribution, distribution.edges(100)
            )
            part = found.part(0.9 - 1e-12)
            rows.append(
                (f"{epsilon:g}", name, within(part, (part * (1 - part) / replications) ** 0.5), f"{found.mean:.4f}")
            )
    show("Training-conditional, delta .1, sparse vector", ("epsilon", "law", "P(coverage >= .9)", "mean"), rows)


if __name__ == "__main__":
    run()
