"""How long does a New York taxi trip take? The real data of Liu and Hu's private online quantile regression.

Run `python examples/taxi.py FILE.parquet` on a file of yellow-taxi trips of the Taxi & Limousine Commission: a month as
it is published (`tpep_pickup_datetime`, `PULocationID`, ...), or a sample of several months with a column `month`
(`pickup_datetime`, `pickup_location_id`, ...). Cleaning, features, response and holdout are those of their section 5.
For every level and budget it fits

- `default`: `PrivateQuantileRegressor(tau, epsilon)` with the bounds of the covariates, and nothing else;
- `cq, found`: the paper's channel and the schedule of its simulations, starting where the first people say;
- `cq, printed`: the paper's channel, start at zero, steps .08 i^-.75, projection onto [-8, 8] and order of time;

and sets them beside an exact quantile regression on the same training trips. All dice are seeded: nothing is private.
"""

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as parquet

import sottovoce as sv
from sottovoce.client.regression.rows import Rows
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.local.regression.liu_hu import LiuHuRun
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.protocol.regression.box import cq
from sottovoce.server.regression.study import LiuHuStudy
from sottovoce_papers.simulation.regression.cell import printed
from sottovoce_papers.simulation.regression.exact_fit import exact_fit
from sottovoce_papers.simulation.regression.taxi import BOUNDS, HOLDOUT, covariates

Floats = npt.NDArray[np.float64]
COLUMNS = {
    "pickup": ("pickup_datetime", "tpep_pickup_datetime"),
    "dropoff": ("dropoff_datetime", "tpep_dropoff_datetime"),
    "passengers": ("passenger_count",),
    "miles": ("trip_distance",),
    "fare": ("fare_amount",),
    "from": ("pickup_location_id", "PULocationID"),
    "to": ("dropoff_location_id", "DOLocationID"),
}


class Trips(NamedTuple):
    """Covariates (n, 8) and response, in the order of time, of trips to learn from and of the holdout."""

    x: Floats
    y: Floats
    test_x: Floats
    test_y: Floats
    raw: int


def load(path: str, seed: int) -> Trips:
    """Read and clean a file as section 5.1 does, and draw the holdout."""
    names = set(parquet.read_schema(path).names)
    found = {what: next((name for name in known if name in names), None) for what, known in COLUMNS.items()}
    if missing := [COLUMNS[what][0] for what, name in found.items() if name is None]:
        raise BadInput(f"{path} has no column {', '.join(missing)}; give a file of yellow-taxi trips.")
    by_month = "month" in names
    table = parquet.read_table(path, columns=[*found.values(), *(["month"] if by_month else [])])
    pickup, dropoff = (table[found[end]].to_numpy().astype("datetime64[s]") for end in ("pickup", "dropoff"))
    numbers = ("passengers", "miles", "fare", "from", "to")
    passengers, miles, fare, start, end = (table[found[name]].to_numpy().astype(float) for name in numbers)
    month = pickup.astype("datetime64[M]")
    if by_month:
        due = np.array(table["month"].to_pylist(), dtype="datetime64[M]")
    else:
        values, counts = np.unique(month, return_counts=True)
        due = values[np.argmax(counts)]
    minutes = (dropoff - pickup).astype(float) / 60
    kept = (month == due) & (minutes >= 1) & (minutes <= 180) & (miles > 0) & (miles <= 100) & (fare > 0)
    kept &= (passengers >= 1) & (passengers <= 6) & np.isfinite(start) & np.isfinite(end)
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(pickup[rows], kind="stable")]
    x = covariates(pickup[rows], passengers[rows], miles[rows], start[rows], end[rows])
    y = np.log1p(minutes[rows])
    held = np.zeros(len(rows), dtype=bool)
    held[sv.sim.dice(seed).generator().choice(len(rows), round(HOLDOUT * len(rows)), replace=False)] = True
    return Trips(x[~held], y[~held], x[held], y[held], table.num_rows)


def default(trips: Trips, tau: float, epsilon: float, seed: int) -> tuple[Floats, bool]:
    """Fit what a user gets who knows the bounds alone."""
    return _fit(trips, sv.PrivateQuantileRegressor(tau, epsilon, bounds=list(BOUNDS), randomness=sv.sim.dice(seed)))


def cq_found(trips: Trips, tau: float, epsilon: float, seed: int) -> tuple[Floats, bool]:
    """Fit through the paper's channel with the schedule of its simulations, all guesses found by the first people."""
    cell = printed(tau, trips.x.shape[1], epsilon)
    channel = f"cq:{cell.q},{cell.s}" if cell.private else "open"
    m = sv.PrivateQuantileRegressor(
        tau, epsilon, channel, list(BOUNDS), "self-normalised", randomness=sv.sim.dice(seed)
    )
    return _fit(trips, m)


def cq_printed(trips: Trips, tau: float, epsilon: float, seed: int) -> tuple[Floats, bool]:
    """Run section 5.2 as it is printed; the facade has no such step, so this builds the study itself."""
    p = trips.x.shape[1]
    cell = printed(tau, p, epsilon)
    channel = cq(tau, p, epsilon, q=cell.q, s=cell.s) if cell.private else open_channel((tau,), p)
    study = LiuHuStudy(
        channel, np.eye(p + 1)[None], np.zeros((1, p + 1)), scale=0.08, power=0.75, offset=0.0, limit=8.0
    )
    recursion = LiuHuRun(study, None)
    recursion.ask(Rows(trips.x, trips.y), sv.sim.dice(seed), shuffle=False)
    return recursion.estimate().point[0], True


def _fit(trips: Trips, m: sv.PrivateQuantileRegressor) -> tuple[Floats, bool]:
    m.fit(trips.x, trips.y)
    found = np.concatenate(([m.intercept_], m.coef_))
    try:
        with warnings.catch_warnings(action="ignore"):  # which coefficients have none is not asked here
            return found, bool(np.isfinite(m.confidence_interval()).all())
    except Infeasible:
        return found, False


METHODS: dict[str, Callable[[Trips, float, float, int], tuple[Floats, bool]]] = {
    "default": default,
    "cq, found": cq_found,
    "cq, printed": cq_printed,
}


def judge(beta: Floats, trips: Trips, tau: float) -> tuple[float, float]:
    """Return hit rate and check loss on the holdout."""
    away = trips.test_y - beta[0] - trips.test_x @ beta[1:]
    return float(np.mean(away <= 0)), float(np.mean(away * (tau - (away < 0))))


def cell_of(trips: Trips, tau: float, epsilon: float, method: str, reference: Floats, seeds: range) -> dict[str, Any]:
    """Return a line of the table: mean and standard deviation over the repetitions."""
    best = judge(reference, trips, tau)[1]
    found, told = [], 0
    for seed in seeds:
        beta, intervals = METHODS[method](trips, tau, epsilon, seed)
        hit, loss = judge(beta, trips, tau)
        found.append((hit, 1e3 * (loss - best), float(np.linalg.norm(beta - reference))))
        told += intervals
    mean, spread = np.mean(found, axis=0).tolist(), np.std(found, axis=0).tolist()
    line: dict[str, Any] = {"tau": tau, "epsilon": None if math.isinf(epsilon) else epsilon, "method": method}
    for at, name in enumerate(("hit_rate", "excess_loss_e3", "distance")):
        line |= {name: mean[at], f"{name}_sd": spread[at]}
    return line | {"repetitions": len(seeds), "with_intervals": told}


def text(line: dict[str, Any]) -> str:
    """Write a line of the table."""
    numbers = (("hit_rate", 3), ("excess_loss_e3", 2), ("distance", 3))
    cells = [f"{line[name]:.{digits}f} ({line[name + '_sd']:.{digits}f})" for name, digits in numbers]
    budget = "inf" if line["epsilon"] is None else f"{line['epsilon']:g}"
    given = "-" if line["method"] == "cq, printed" else f"{line['with_intervals']}/{line['repetitions']}"
    return "| " + " | ".join([f"{line['tau']:g}", budget, line["method"], *cells, given]) + " |"


def main(arguments: list[str] | None = None) -> None:
    """Print the table, line by line, or everything as JSON."""
    parser = argparse.ArgumentParser(description="Private quantile regression of taxi trips, against the paper's.")
    parser.add_argument("path", help="a Parquet file of yellow-taxi trips")
    parser.add_argument("--epsilon", default="2,4,8,16,inf")
    parser.add_argument("--tau", default=".5,.75")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the holdout; the repetitions count on from it")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    asked = parser.parse_args(arguments)
    taus, budgets = ([float(part) for part in given.split(",")] for given in (asked.tau, asked.epsilon))
    seeds = range(asked.seed, asked.seed + asked.repetitions)
    trips = load(asked.path, asked.seed)
    say: Callable[[str], object] = (lambda _: None) if asked.json else (lambda line: sys.stdout.write(line + "\n"))
    say(f"{trips.raw:,} trips; {len(trips.y) + len(trips.test_y):,} after cleaning, {len(trips.test_y):,} held out\n")
    say("| tau | epsilon | method | hit rate | 10^3 excess loss | distance | fits with intervals |")
    say("|---|---|---|---|---|---|---|")
    references, lines = [], []
    for tau in taus:
        reference = exact_fit(trips.x, trips.y, tau)
        hit, loss = judge(reference, trips, tau)
        references.append({"tau": tau, "hit_rate": hit, "loss": loss, "coefficients": reference.tolist()})
        say(f"| {tau:g} | - | exact, all trips in sight | {hit:.3f} | 0 (loss {loss:.4f}) | 0 | - |")
        for epsilon in budgets:
            for method in METHODS:
                try:
                    lines.append(cell_of(trips, tau, epsilon, method, reference, seeds))
                    say(text(lines[-1]))
                except BadInput as refusal:  # such as a budget for which the paper prints no channel
                    say(f"| {tau:g} | {epsilon:g} | {method} | {refusal} |")
    if asked.json:
        facts = {"raw": trips.raw, "training": len(trips.y), "holdout": len(trips.test_y), "seed": asked.seed}
        sys.stdout.write(json.dumps({**facts, "exact": references, "private": lines}) + "\n")


if __name__ == "__main__":
    main()
