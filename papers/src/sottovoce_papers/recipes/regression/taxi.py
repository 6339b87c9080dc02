"""Tables 9 and 10: the paper's recursion, its two baselines and the default method on taxi trips, judged on a holdout.

``passes`` 1 is the stream once, in the order of time. Eight passes in random order are as many steps as the paper's
stream has, on a sample an eighth as large: they show the step's effect at its length, not privacy.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, exact, mean
from sottovoce_papers.simulation.regression.cell import Cell, printed
from sottovoce_papers.simulation.regression.exact_fit import exact_fit
from sottovoce_papers.simulation.regression.taxi import BOUNDS, SPLIT, Trips, read_trips
from sottovoce_papers.simulation.regression.taxi_runs import by_release, through_channel

VERSION = 1
TRAINING = 2_062_859  # trips of the paper's stream
RELEASES = {"DirectLaplace": "laplace", "FaceExponential": "faces", "FaceExponential even": "even faces"}
READINGS = {1: "one pass", 8: "eight passes"}


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Run one method at a level, a budget and a number of passes over the stream."""
    if data is None:
        raise BadInput("the taxi trips need a data folder; name it by --data or SOTTOVOCE_DATA.")
    trips = read_trips(data)
    tau, epsilon, passes = float(setting["tau"]), float(setting["epsilon"]), int(setting["passes"])
    method = str(setting["method"])
    fit = _fit_of(method, trips, tau, epsilon, passes)
    seeds = dice(seed).words(replications).tolist()
    found = np.array([_judged(fit(int(one >> 1)), data, tau, passes) for one in seeds])
    names = ("hit_rate", "excess_loss_e3", "distance", "excess_over_exact_e3", "distance_to_exact")
    measures = {name: mean(column) for name, column in zip(names, found.T, strict=True)}
    measures |= {f"{name}_sd": _spread(column) for name, column in zip(names[:3], found.T, strict=False)}
    if method in ("CQ", "nonprivate"):
        measures["n_eff"] = exact(effective(printed(tau, trips.x.shape[1], epsilon)))
    return [Row({"reading": READINGS[passes]}, measures)]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    each = {"FaceExponential": 0.2, "default": 0.5}.get(str(setting["method"]), 0.06)
    return 4.0 + replications * each * int(setting["passes"])


def effective(cell: Cell) -> float:
    """Return the paper's index of effective information at its own number of training trips (section 3.3).

    >>> f"{effective(printed(0.5, 8, 4.0)):.3g}"
    '3.4e+05'
    """
    if not cell.private:
        return float(TRAINING)
    d, s = cell.p + 1, cell.s
    with_face = (s - 1) / (d - 1)  # of the blocks that hold a slope, those that hold the face too
    slope = with_face * cell.kappa(True) ** 2 + (1 - with_face) * cell.kappa(False) ** 2
    return TRAINING * s / d * min(cell.kappa(True) ** 2, slope)


def _fit_of(method: str, trips: Trips, tau: float, epsilon: float, passes: int) -> Callable[[int], Floats]:
    x, y = trips.x[~trips.held], trips.y[~trips.held]
    if method == "default":
        return lambda seed: _default(x, y, tau, epsilon, seed)
    orders = _orders(len(y), passes)
    if method in ("CQ", "nonprivate"):
        return lambda seed: through_channel(x, y, orders, tau, epsilon, seed)
    return lambda seed: by_release(x, y, orders, tau, epsilon, seed, RELEASES[method])


def _orders(n: int, passes: int) -> list[npt.NDArray[np.int64]]:
    if passes == 1:
        return [np.arange(n)]
    generator = dice(SPLIT + 1).generator()
    return [generator.permutation(n) for _ in range(passes)]


def _default(x: Floats, y: Floats, tau: float, epsilon: float, seed: int) -> Floats:
    m = PrivateQuantileRegressor(tau, epsilon, bounds=list(BOUNDS), randomness=dice(seed)).fit(x, y)
    return np.concatenate([[m.intercept_], m.coef_])


def _judged(beta: Floats, data: Path, tau: float, passes: int) -> tuple[float, ...]:
    trips = read_trips(data)
    reference, best = _references(data, tau, passes)
    hit, loss = _holdout(trips, beta, tau)
    return (
        hit,
        1e3 * (loss - _holdout(trips, reference, tau)[1]),
        float(np.linalg.norm(beta - reference)),
        1e3 * (loss - _holdout(trips, best, tau)[1]),
        float(np.linalg.norm(beta - best)),
    )


@lru_cache(maxsize=8)
def _references(data: Path, tau: float, passes: int) -> tuple[Floats, Floats]:
    """Return the non-private recursion on the same stream, and the exact quantile regression."""
    trips = read_trips(data)
    x, y = trips.x[~trips.held], trips.y[~trips.held]
    return through_channel(x, y, _orders(len(y), passes), tau, np.inf, 1), _exact(data, tau)


@lru_cache(maxsize=2)
def _exact(data: Path, tau: float) -> Floats:
    trips = read_trips(data)
    return exact_fit(trips.x[~trips.held], trips.y[~trips.held], tau)


def _holdout(trips: Trips, beta: Floats, tau: float) -> tuple[float, float]:
    away = trips.y[trips.held] - beta[0] - trips.x[trips.held] @ beta[1:]
    return float(np.mean(away <= 0)), float(np.mean(away * (tau - (away < 0))))


def _spread(column: Floats) -> Measure:
    n = len(column)
    deviation = float(column.std(ddof=1)) if n > 1 else 0.0
    return Measure(deviation, deviation / math.sqrt(2 * max(n - 1, 1)), n)
