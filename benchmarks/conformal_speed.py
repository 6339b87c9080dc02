"""Speed of one-shot conformal prediction: seconds of one core, and ratios within one run."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sottovoce as sv
from benchmarks.conformal_tables import show
from sottovoce.server.conformal.coverage.equal import argmin, closest

TABLES = ((1000, 1000), (10_000, 100), (10, 1000), (10, 100))
ARGMINS = ((1000, 1000), (10, 1000), (10_000, 100), (1000, 1_000_000))
LIMITS = {"table": 1.0, "argmin": 0.1, "unequal": 0.2}  # seconds
UNEQUAL = tuple(np.linspace(10, 2000, 1000).round().astype(int).tolist())  # a thousand different sizes

COLD = """
import time, sys
start = time.process_time()
import sottovoce as sv
loaded = time.process_time()
scores = [sv.sim.dice(i).generator().random(n) for i, n in enumerate({sizes})]
before = time.process_time()
sv.conformal_threshold(scores, 0.1)
print(loaded - start, time.process_time() - before)
"""
# the peak of this program alone: ru_maxrss would begin at that of the program that started it
MEMORY = """
import sottovoce as sv
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
from sottovoce.server.conformal.coverage.choose import choose
import scipy.special, numpy.fft, sottovoce.server.conformal.coverage.voting
sv.conformal_coverage(5, 5)
before = peak()
{work}
print(peak() - before)
"""


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the processor time of one call, the best of a few, on one thread."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    best = float("inf")
    with threadpool_limits(1):
        for _ in range(repeats):
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
    return best


def table_seconds(sites: int, scores: int) -> float:
    return seconds(lambda: sv.conformal_coverage(sites, scores))


def argmin_seconds(sites: int, scores: int) -> float:
    return seconds(lambda: argmin(sites, scores, 0.1))


def unequal_scores() -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    generator = sv.sim.dice(1).generator()
    return [generator.random(size) for size in UNEQUAL]


def unequal_seconds(statistics: int = 1) -> float:
    """Return the time of a whole call on a thousand sites of different sizes, after one to warm up."""
    scores = unequal_scores()
    sv.conformal_threshold(scores[:50], 0.1, statistics=statistics)
    return seconds(lambda: sv.conformal_threshold(scores, 0.1, statistics=statistics))


def run() -> None:
    square = np.ones((1000, 1000))
    unit = seconds(lambda: square @ square)
    pooled = np.concatenate(unequal_scores())
    sort = seconds(lambda: np.sort(pooled))
    rows: list[tuple[object, ...]] = []
    for shape in TABLES:
        cost = table_seconds(*shape)
        limit = f"{LIMITS['table']:g}" if shape in TABLES[:2] else ""
        rows.append(("whole table", shape, f"{cost:.3f}", limit, f"{cost / unit:.2f}"))
    for shape in ARGMINS:
        for name, rule in (("argmin", argmin), ("closest", closest)):
            cost = seconds(lambda rule=rule, shape=shape: rule(*shape, 0.1))  # type: ignore[misc]
            pair = rule(*shape, 0.1)
            assert pair is not None
            limit = f"{LIMITS['argmin']:g}" if name == "argmin" and shape[1] <= 1000 else ""
            chosen = f"{name} alone: l, k, M = {pair.order}, {pair.rank}, {pair.mean:.7f}"
            rows.append((chosen, shape, f"{cost:.4f}", limit, f"{cost / unit:.2f}"))
    for statistics in (1, 3):
        cost = unequal_seconds(statistics)
        limit = f"{LIMITS['unequal']:g}" if statistics == 1 else ""
        name = f"conformal_threshold, 1,000 different sizes 10 to 2,000, statistics={statistics}"
        rows.append((name, "", f"{cost:.3f}", limit, f"{cost / unit:.2f} ({cost / sort:.1f} sorts)"))
    show(
        "Speed: seconds of one core, the best of three",
        ("what", "(m, n)", "seconds", "limit", "times a product of 1000 x 1000 matrices"),
        rows,
    )
    print(f"\nUnits of this run: the product {unit:.4f} s, one sort of the {len(pooled):,} scores {sort:.4f} s.")
    show("Cold start of the call on a thousand sites, seconds", ("kernels", "import", "first call"), _cold())
    show("Memory beyond the imports", ("what", "MiB"), _memory())


def _fresh(code: str, **environment: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return [float(word) for word in done.stdout.split()]


def _cold() -> list[tuple[str, ...]]:
    code = COLD.format(sizes=UNEQUAL)
    with tempfile.TemporaryDirectory() as empty:
        first = _fresh(code, NUMBA_CACHE_DIR=empty, OPENBLAS_NUM_THREADS="1")
        second = _fresh(code, NUMBA_CACHE_DIR=empty, OPENBLAS_NUM_THREADS="1")
    return [
        (name, *(f"{value:.2f}" for value in found))
        for name, found in (("to be compiled", first), ("compiled before", second))
    ]


def _memory() -> list[tuple[str, str]]:
    works = {
        "table (1000, 1000), 7.6 MiB itself": "sv.conformal_coverage(1000, 1000)",
        "table (10000, 100), 7.6 MiB itself": "sv.conformal_coverage(10000, 100)",
        "argmin (1000, 1e6)": "from sottovoce.server.conformal.coverage.equal import argmin; argmin(1000, 10**6, 0.1)",
        "choice for 1,000 different sizes": "from sottovoce.server.conformal.coverage.choose import Aim; "
        "from sottovoce.server.conformal.coverage.voters import Kind; "
        f"choose([Kind(n) for n in {UNEQUAL}], [1] * 1000, Aim(0.1))",
    }
    if not Path("/proc/self/status").exists():
        return [("not known without /proc", "")]
    found = {name: _fresh(MEMORY.format(work=work), OPENBLAS_NUM_THREADS="1")[0] for name, work in works.items()}
    return [(name, f"{value / 1024:.1f}") for name, value in found.items()]


if __name__ == "__main__":
    run()
