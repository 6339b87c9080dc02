"""Speed of the default regression: nanoseconds a person in the loop, and reports a second through the estimator."""

import time

import numpy as np

from sottovoce import PrivateQuantileRegressor
from sottovoce.client.regression.rows import Rows
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression.default import Setting
from sottovoce_papers.simulation.regression.designs import paper

PEOPLE = 1_000_000
CELLS = ((2, 2.0, 150.0), (8, 2.0, 250.0), (2, 4.0, 150.0), (8, 8.0, 250.0))


def nanoseconds(p: int, epsilon: float, people: int = PEOPLE, repeats: int = 3) -> float:
    """Return the CPU time of one person in the compiled loop, seeded dice and looks included, the best of a few."""
    setting = Setting(paper(p), 0.75, epsilon)
    features, response = setting.design.sample(dice(1).generator(), people, 0.75)
    rows, study, best = Rows(np.ascontiguousarray(features), response), setting.study(), float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        DitheredRun(study).ask(rows, dice(2), shuffle=False)
        best = min(best, time.thread_time() - start)
    return best / people * 1e9


def reports_a_second(p: int = 2, epsilon: float = 2.0, people: int = 2 * PEOPLE) -> float:
    """Return the reports a second through the whole estimator, dice from the operating system, one thread."""
    features, response = paper(p).sample(dice(1).generator(), people, 0.75)
    model = PrivateQuantileRegressor(0.75, epsilon)
    model.fit(features[: people // 10], response[: people // 10])
    start = time.perf_counter()
    model.fit(features, response)
    return people / (time.perf_counter() - start)


def run() -> None:
    print("\nThe default regression, one core")
    for p, epsilon, limit in CELLS:
        print(f"   p = {p}, epsilon {epsilon:g}: {nanoseconds(p, epsilon):6.0f} ns a person (limit {limit:.0f})")
    print(f"   through the estimator, p = 2, operating system's dice: {reports_a_second() / 1e6:.2f} million reports/s")
