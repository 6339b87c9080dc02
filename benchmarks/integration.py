"""Coverage, length and error of a target helped by sources, over families, levels, crowds of sources and shifts."""

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.integration_cells import FAMILIES, SETTINGS, Case, cases, fill_pools, summarise
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration import known_bound, valid, weighted
from sottovoce_papers.simulation.integration.grid import Score

TARGETS = 2.5  # replications of a target for each of a source: the target's are not shared by others


def run(replications: int, jobs: int) -> None:
    """Print the figures by setting and over all."""
    speed()
    print(
        f"\nA target helped by sources: {replications} replications of a source, {TARGETS:g} times as many of a target"
    )
    everything: list[tuple[Case, Score]] = []
    with warnings.catch_warnings(), ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the workers use none of them
        tasks = {name: pool.submit(_setting, name, replications) for name in SETTINGS}
        for name, task in tasks.items():
            scored = task.result()
            everything += scored
            _print(name, scored)
    _print("all", everything)


def _setting(name: str, replications: int) -> list[tuple[Case, Score]]:
    """Measure one setting."""
    families = list(FAMILIES)
    pools = fill_pools(families, name, int(TARGETS * replications), replications, seed=4000 + 7 * len(name))
    return list(cases(families, name, pools, bounded=True))


def _print(name: str, scored: list[tuple[Case, Score]]) -> None:
    print(f"{name} ({len(scored)} cases)")
    for what, value in summarise(scored).items():
        print(f"  {what:<34}{value:8.3f}")


def speed() -> None:
    """Print how long the combination of a hundred sites takes, each method in milliseconds of one run."""
    target = SiteEstimate(0.0, 1.0, 30.0)
    sources = [SiteEstimate(0.01 * k, 0.5 + 0.01 * k, 30.0) for k in range(100)]
    ways: dict[str, Callable[[], object]] = {
        "valid": lambda: valid.combine(target, target.interval(0.95), sources, 0.95),
        "known-bound": lambda: known_bound.combine(target, sources, [1.0] * 100, 0.95),
        "adaptive": lambda: weighted.paper("adaptive", target, sources, 0.95),
    }
    for name, way in ways.items():
        way()
        start = time.perf_counter()
        for _ in range(20):
            way()
        print(f"{name}, a hundred sources: {(time.perf_counter() - start) / 20 * 1e3:.2f} ms")
