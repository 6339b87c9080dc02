"""One cell of the online regression, run many times: errors, coverage and lengths against the asymptotic ones."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression.default import Setting, replicate, sandwich

LEVEL, Z = 0.95, 1.959964


class Kept(NamedTuple):
    """What is kept of one fit."""

    error: float
    ready: bool
    intervals: Floats  # (d, 2)
    inside: bool  # the truth in the ellipsoid


class Row(NamedTuple):
    """A cell at one number of people."""

    people: int
    error: float
    spread: float  # standard error of the mean error
    asymptotic: float
    ready: float  # part of the runs that gave an interval
    coverage: Floats
    length: Floats  # median, relative to the oracle's
    ellipsoid: float


def run_cell(setting: Setting, people: Sequence[int], replications: int, seed: int) -> list[Row]:
    """Run a cell and sum it up at each number of people."""
    beta, variance = setting.design.beta, sandwich(setting)

    def keep(fit: DitheredFit) -> Kept:
        axes = np.eye(len(beta))
        ready = fit.needed() <= fit.people
        intervals = (
            np.array([fit.interval(0, axis, LEVEL) for axis in axes]) if ready else np.full((len(beta), 2), np.nan)
        )
        inside = bool(fit.ellipsoid(0, LEVEL).contains(beta)) if ready else False
        return Kept(float(np.linalg.norm(fit.point[0] - beta)), ready, intervals, inside)

    runs = replicate(setting, people, keep, replications, seed)
    return [_row(n, [run[i] for run in runs], beta, variance / n) for i, n in enumerate(people)]


def _row(n: int, kept: list[Kept], beta: Floats, variance: Floats) -> Row:
    errors = np.array([one.error for one in kept])
    ready = [one for one in kept if one.ready]
    nothing = np.full(len(beta), np.nan)
    draws = dice(1).generator().multivariate_normal(np.zeros(len(beta)), variance, 20_000)
    coverage, length, inside = nothing, nothing, float("nan")
    if ready:
        ends = np.array([one.intervals for one in ready])
        coverage = np.mean((ends[:, :, 0] <= beta) & (beta <= ends[:, :, 1]), axis=0)
        length = np.median(ends[:, :, 1] - ends[:, :, 0], axis=0) / (2 * Z * np.sqrt(np.diag(variance)))
        inside = float(np.mean([one.inside for one in ready]))
    return Row(
        n,
        float(errors.mean()),
        float(errors.std(ddof=1) / np.sqrt(len(errors))),
        float(np.mean(np.linalg.norm(draws, axis=1))),
        len(ready) / len(kept),
        coverage,
        length,
        inside,
    )


def line(label: str, row: Row) -> str:
    """Write a row for people to read."""
    numbers = " ".join(f"{value:.3f}" for value in row.coverage)
    lengths = " ".join(f"{value:.2f}" for value in row.length)
    return (
        f"{label:32s} n {row.people:>9,} error {row.error:.4f} ({row.spread:.4f}) asymptotic {row.asymptotic:.4f}"
        f" ready {row.ready:.2f} coverage {numbers} ellipsoid {row.ellipsoid:.3f} length {lengths}"
    )
