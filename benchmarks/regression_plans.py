"""What a plan predicts of each coefficient's interval, against the median that comes of runs with the same guesses."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.regression_interval_cells import CELLS, IntervalCell
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.omega import Covariates, omega_at
from sottovoce.server.regression.predicted import predict
from sottovoce.sim.randomness import dice

LEVEL = 0.95
PEOPLE = (30_000, 100_000, 300_000)


def guessed(cell: IntervalCell, right: bool) -> DitheredStudy:
    """Return the study with the usual guesses, or with those that are right: density and moments."""
    setting = cell.setting
    study, moments = setting.study(), setting.design.second_moments
    if not right:
        return study
    known = Covariates(moments[0, 1:].copy(), moments[1:, 1:].copy())
    density = np.array([setting.design.hessian(cell.tau)[0, 0]])
    return replace(study, omega=omega_at(study.channel, known, 0)[None], density=density, moments=moments)


def obtained(fit: DitheredFit) -> Floats:
    """Return the half widths of one fit, NaN where a coefficient is not determined."""
    found = np.full(fit.study.d, np.nan)
    for j, axis in enumerate(np.eye(fit.study.d)):
        if fit.determined(0, axis):
            low, high = fit.interval(0, axis, LEVEL)
            found[j] = (high - low) / 2
    return found


class Task(NamedTuple):
    """A cell, and how it is run."""

    cell: IntervalCell
    people: tuple[int, ...]
    replications: int
    seed: int
    right: bool


def ratios(task: Task) -> list[tuple[int, Floats, Floats]]:
    """Return for each number of people how often coefficients are determined, and prediction over median."""
    setting, study, runs = task.cell.setting, guessed(task.cell, task.right), []
    for die in dice(task.seed).split(task.replications):
        run, generator, widths = DitheredRun(study), die.generator(), []
        for n in task.people:
            features, response = setting.design.sample(generator, n - run.people, setting.tau)
            run.ask(Rows(np.ascontiguousarray(features), response), die, shuffle=False)
            widths.append(obtained(run.estimate()))
        runs.append(widths)
    found = []
    for at, n in enumerate(task.people):
        widths_there = np.array([each[at] for each in runs])
        given = np.isfinite(widths_there).mean(axis=0)
        told = np.full(study.d, np.nan)
        sure = given >= 0.5
        if sure.any():
            told[sure] = predict(guessed(task.cell, True), n, LEVEL).halves[0, sure]
            told[sure] /= np.nanmedian(widths_there[:, sure], axis=0)
        found.append((n, given, told))
    return found


def run(
    replications: int, cells: Sequence[str] = (), people: Sequence[int] = PEOPLE, seed: int = 77, jobs: int = 1
) -> None:
    """Print the ratios of prediction to median, smallest and largest of the coefficients of a cell."""
    wanted = [cell for cell in CELLS if not cells or cell.name in cells or cell.design in cells]
    for right, words in ((True, "the run has the plan's guesses"), (False, "the run has the usual guesses")):
        print(f"\nPredicted half widths over the median of those determined, {replications} replications; {words}")
        print("| design, tau, eps | people | determined | smallest | largest |\n|---|---|---|---|---|")
        inside, total = dict.fromkeys(people, 0), dict.fromkeys(people, 0)
        with ProcessPoolExecutor(jobs) as pool:
            tasks = [Task(cell, tuple(people), replications, seed, right) for cell in wanted]
            for task, found in zip(tasks, pool.map(ratios, tasks), strict=True):
                for n, given, told in found:
                    known = told[np.isfinite(told)]
                    inside[n] += int(np.count_nonzero(np.abs(np.log(known)) <= np.log(1.25)))
                    total[n] += len(known)
                    ends = f"{known.min():.2f} | {known.max():.2f}" if len(known) else " | "
                    print(f"| {task.cell.name} | {n:,} | {given.mean():.2f} | {ends} |", flush=True)
        for n in people:
            print(f"{inside[n]} of {total[n]} coefficients lie within 25 % at {n:,} people")
