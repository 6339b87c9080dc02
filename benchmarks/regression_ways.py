"""Coverage of the default regression in every way it is called: levels, batches, a pilot, guesses, contrasts, sites.

The people are ordinary: whole ages, skewed distances, a column of two values; the response's scale grows with all of
them, so that every level has coefficients of its own. Truths are exact, as all conditional quantiles are linear.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import sottovoce as sv
from sottovoce.client.door import Door
from sottovoce.client.order import order_key
from sottovoce.client.regression.rows import Rows
from sottovoce.client.regression.site_people import SitePeople
from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import Infeasible
from sottovoce.local.runner import run as run_method
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.settings import DEFAULTS, read_settings
from sottovoce.server.regression.sites import SitesRegression

LEVEL = 0.95
COEFFICIENT, OF_CONTRAST, OF_ELLIPSOID = range(3)  # what is judged
PEOPLE = 60_000
BOUNDS = {"age": (18.0, 90.0), "miles": (0.0, 30.0), "member": (0.0, 1.0)}
LOCATION, SCALE = np.array([4.0, 0.10, 0.8, -3.0]), np.array([2.0, 0.02, 0.15, 1.0])
ERROR = stats.gamma(2.0)
CONTRAST = np.array([0.0, 30.0, 0.0, 0.0])
GUESSES = {"density": 0.06, "size": 20.0, "start": 10.0}


def people(draw: Any, n: int, shift: float = 0.0) -> tuple[Floats, Floats]:
    """Draw people, who wait longer by ``shift``."""
    age = draw.integers(18, 91, n).astype(float)
    miles = np.minimum(draw.gamma(1.5, 4.0, n), 30.0)
    member = (draw.random(n) < 0.3).astype(float)
    x = np.column_stack([age, miles, member])
    whole = np.column_stack([np.ones(n), x])
    return x, shift + whole @ LOCATION + (whole @ SCALE) * ERROR.rvs(size=n, random_state=draw)


def truth(tau: float) -> Floats:
    """Return the coefficients of a level."""
    return np.asarray(LOCATION + SCALE * ERROR.ppf(tau))


class Way(NamedTuple):
    """How the regression is called: its parameters, and who asks."""

    given: Mapping[str, Any]
    ask: Callable[[Mapping[str, Any], Any, int], Any]


def fit(given: Mapping[str, Any], draw: Any, n: int) -> Any:
    """Fit all people at once."""
    x, y = people(draw, n)
    return sv.PrivateQuantileRegressor(**given).fit(x, y).result_


def batches(given: Mapping[str, Any], draw: Any, n: int) -> Any:
    """Fit people as they come, in twelve batches of unequal size."""
    model, x, y = sv.PrivateQuantileRegressor(**given), *people(draw, n)
    ends = [0, *np.sort(draw.choice(np.arange(1, n), 11, replace=False)), n]
    for first, last in pairwise(ends):
        model.partial_fit(x[first:last], y[first:last])
    return model.result_


def sites(*parts: float) -> Callable[[Mapping[str, Any], Any, int], Any]:
    """Ask the people of several sites, each in a loop of its own."""

    def ask(given: Mapping[str, Any], draw: Any, n: int) -> Any:
        options = {key: value for key, value in given.items() if key not in ("randomness", "bounds")}
        settings = read_settings({**DEFAULTS, "bounds": BOUNDS, **options})
        bounds = read_bounds(settings.bounds, tuple(BOUNDS))
        plan = RegressionPlan(
            settings, design_of(settings, bounds), bounds, settings.starts(bounds.to_scaled), LEVEL, "y"
        )
        low, high = (np.array([BOUNDS[name][end] for name in BOUNDS]) for end in (0, 1))
        sizes, key, doors, before = [int(part * n) for part in parts], b"c" * 16, [], 0
        for size, source in zip(sizes, given["randomness"].split(len(sizes)), strict=True):
            x, y = people(draw, size)
            rows = Rows(np.ascontiguousarray(2 * (x - low) / (high - low) - 1), y)
            one = SitePeople(
                rows, plan.design.channels, source, epsilon=plan.design.epsilon, key=key, before=before,
                order=order_key(source),
            )  # fmt: skip
            doors.append(Door(one, b"study"))
            before += size
        return run_method(SitesRegression(plan, sizes, key, private=False), doors)

    return ask


WAYS = {
    "one level, a pilot before": Way({"tau": 0.5}, fit),
    "one level, public guesses": Way({"tau": 0.75, **GUESSES}, fit),
    "a declared column": Way({"tau": 0.5, "two_valued": ["x2"]}, fit),
    "three levels": Way({"tau": [0.25, 0.5, 0.75]}, fit),
    "two levels at epsilon 8, one letter": Way({"tau": [0.5, 0.75], "epsilon": 8.0}, fit),
    "three levels at epsilon 1.5, split": Way({"tau": [0.25, 0.5, 0.75], "epsilon": 1.5}, fit),
    "twelve batches": Way({"tau": 0.5}, batches),
    "three sites": Way({"tau": 0.5}, sites(0.5, 0.3, 0.2)),
    "ten sites": Way({"tau": 0.75}, sites(*[0.1] * 10)),
}


class Task(NamedTuple):
    """A way, and which of its replications."""

    name: str
    people: int
    seed: int


def replicate(task: Task) -> list[tuple[float, bool, float, int]]:
    """Return of each coefficient, contrast and ellipsoid whether it holds the truth, is determined, and its length."""
    way, found = WAYS[task.name], []
    die = sv.sim.dice(task.seed)
    given = {"epsilon": 3.0, "bounds": list(BOUNDS.values()), "randomness": die, **way.given}
    result = way.ask(given, die.generator(), task.people)
    for at, tau in enumerate(result.taus):
        exact, axes = truth(tau), [*np.eye(4), CONTRAST]
        for k, axis in enumerate(axes):
            low, high = result.interval(at, axis, LEVEL)
            sure = k == len(exact) or bool(result.determined[at][k])
            found.append(
                (low <= float(axis @ exact) <= high, sure, high - low, COEFFICIENT if k < len(exact) else OF_CONTRAST)
            )
        found.append((ellipsoid(result, exact, tau), True, 1.0, OF_ELLIPSOID))
    return found


def ellipsoid(result: Any, exact: Floats, tau: float) -> float:
    """Return whether the ellipsoid holds the truth; NaN where it is refused."""
    try:
        return float(result.ellipsoid(tau, LEVEL).contains(exact))
    except Infeasible:
        return float("nan")


def run(replications: int = 100, jobs: int = 1, people: int = PEOPLE, seed: int = 6001) -> None:
    """Print coverage in each way."""
    print(
        f"\nThe default regression as it is called, {people:,} ordinary people, {replications} runs each, level {LEVEL}"
    )
    print("| way | coverage (intervals) | determined | contrast of 30 years | ellipsoid | without ends |")
    print("|---|---|---|---|---|---|")
    for k, name in enumerate(WAYS):
        with ProcessPoolExecutor(jobs) as pool:
            tasks = [Task(name, people, seed + 1000 * k + i) for i in range(replications)]
            rows = np.array([row for part in pool.map(replicate, tasks, chunksize=4) for row in part], dtype=float)
        single, contrast, region = (rows[rows[:, 3] == kind] for kind in (COEFFICIENT, OF_CONTRAST, OF_ELLIPSOID))
        print(
            f"| {name} | {single[:, 0].mean():.3f} ({len(single)}) | {single[:, 1].mean():.2f} | "
            f"{contrast[:, 0].mean():.3f} ({len(contrast)}) | {np.nanmean(region[:, 0]):.3f} | "
            f"{np.isinf(rows[:, 2]).mean():.3f} |",
            flush=True,
        )
