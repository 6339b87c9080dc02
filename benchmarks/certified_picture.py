"""A picture of the three methods in eight populations: ``python -m benchmarks.certified_picture PATH``."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.certified import METHODS, case_runs
from benchmarks.certified_populations import CASES

RECORDS, RATE, RUNS = 20_000, 0.76, 20  # epsilon 2
COLOURS = {"default": "#4477aa", "certified": "#228833", "sequence": "#cc6677"}


def draw(path: Path) -> None:
    """Draw twenty intervals of each method, one panel a population."""
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    panels = figure.subplots(2, 4).ravel()
    for index, (case, axes) in enumerate(zip(CASES, panels, strict=True)):
        found = case_runs((index, RECORDS, RATE, RUNS))
        for row, method in enumerate(METHODS):
            low, high = np.array(found[method]).T
            at = (row * (RUNS + 3) + np.arange(RUNS)).astype(float)
            missed = ~case.covers(low, high)
            axes.hlines(at, low, high, color=COLOURS[method], linewidth=1.5)
            axes.plot(low, at, "|", high, at, "|", color=COLOURS[method], markersize=4)
            axes.plot(np.clip(case.truth, low, high)[missed], at[missed], "x", color="black", markersize=5)
        ends = np.concatenate([np.array(found[method]) for method in METHODS])
        near, far = np.quantile(ends[:, 0], 0.05), np.quantile(ends[:, 1], 0.95)
        axes.set_xlim(near - 0.15 * (far - near), far + 0.15 * (far - near))
        axes.axvline(case.truth, color="black", linestyle=":", linewidth=1)
        axes.set_ylim(3 * (RUNS + 3) - 2, -2)
        axes.set_yticks([row * (RUNS + 3) + RUNS / 2 for row in range(3)], METHODS if index % 4 == 0 else [""] * 3)
        axes.set_title(f"{case.name}, {case.tau:g} quantile", fontsize=10)
        axes.tick_params(labelsize=8, left=False)
        axes.xaxis.get_major_locator().set_params(nbins=5)
    figure.suptitle(f"{RECORDS:,} records, epsilon 2: {RUNS} studies of each method; dotted: the quantile; x: missed")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
