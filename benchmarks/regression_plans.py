"""What a plan predicts of each coefficient's interval, against the median that comes: density and moments are true."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.regression_interval_cells import CELLS, IntervalCell
from sottovoce.core.arrays import Floats
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.omega import Covariates, omega_at
from sottovoce.server.regression.predicted import predict
from sottovoce_papers.simulation.regression.default import replicate

LEVEL = 0.95
PEOPLE = (30_000, 100_000, 300_000)


def predicted(cell: IntervalCell, people: int) -> Floats:
    """Return the half width of each coefficient's interval that is predicted, density and moments being true."""
    setting = cell.setting
    study, moments = setting.study(), setting.design.second_moments
    known = Covariates(moments[0, 1:].copy(), moments[1:, 1:].copy())
    density = np.array([setting.design.hessian(cell.tau)[0, 0]])
    truth = replace(study, omega=omega_at(study.channel, known, 0)[None], density=density, moments=moments)
    return np.asarray(predict(truth, people, LEVEL).halves[0])


def obtained(fit: DitheredFit) -> Floats:
    """Return the half widths of one fit, NaN where a coefficient is not determined."""
    d = fit.study.d
    found = np.full(d, np.nan)
    for j, axis in enumerate(np.eye(d)):
        if fit.determined(0, axis):
            low, high = fit.interval(0, axis, LEVEL)
            found[j] = (high - low) / 2
    return found


def run(replications: int, cells: Sequence[str] = (), people: Sequence[int] = PEOPLE, seed: int = 77) -> None:
    """Print the ratios of prediction to median, smallest and largest of the coefficients of a cell."""
    print(f"Predicted half widths over the median of those determined, {replications} replications a cell")
    print("| design, tau, eps | people | determined | smallest | largest |\n|---|---|---|---|---|")
    inside = total = 0
    for cell in CELLS:
        if cells and cell.name not in cells and cell.design not in cells:
            continue
        runs = replicate(cell.setting, list(people), obtained, replications, seed)
        for at, n in enumerate(people):
            widths = np.array([each[at] for each in runs])
            given = np.isfinite(widths).mean(axis=0)
            sure = given >= 0.5
            if not sure.any():
                print(f"| {cell.name} | {n:,} | {given.mean():.2f} | | |")
                continue
            ratios = predicted(cell, n)[sure] / np.nanmedian(widths[:, sure], axis=0)
            inside += int(np.count_nonzero(np.abs(np.log(ratios)) <= np.log(1.25)))
            total += len(ratios)
            print(f"| {cell.name} | {n:,} | {given.mean():.2f} | {ratios.min():.2f} | {ratios.max():.2f} |", flush=True)
    print(f"{inside} of {total} coefficients lie within 25 %")
