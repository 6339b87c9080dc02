"""Linear quantile regression without privacy: the online recursion beside statsmodels, scikit-learn and river.

statsmodels (QuantReg, reweighted least squares) and scikit-learn (QuantileRegressor, a linear program) see all rows at
once and as often as they like; river's linear model and Sottovoce's regressor at epsilon infinity see each row once.
Sottovoce at epsilon 4 is beside them, to show what privacy costs. The truth is known where the rows are made up; of a
real table it is the exact fit to all rows, from which people are drawn with replacement.
"""

import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import QuantileRegressor

import sottovoce as sv
from benchmarks.peers.installed import Peer, peer
from benchmarks.peers.sheets import Comparison, Sheet, figure, listed, seconds
from benchmarks.regression_tables_data import read_table, reason
from sottovoce.core.arrays import Floats
from sottovoce.sim import dice
from sottovoce_papers.simulation.families import Generator

LEVEL, BUDGET = 0.95, 4.0
OPEN, PRIVATE = "Sottovoce, no privacy", "Sottovoce, epsilon 4"
MOST = {"scikit-learn": 20_000}  # rows, beyond which a call takes minutes
RIVER, RATES = "river, online", (1.0, 10.0, 100.0)  # steps fall as the rate over the root of their number
WARM = 2_000  # rows of a fit before any is timed: what compiles or loads at the first call is not its speed


class Fit(NamedTuple):
    """Coefficients, intercept first, and their intervals, if there are any."""

    coefficients: Floats
    intervals: Floats | None = None


Fitter = Callable[[Any, Any, float, Sequence[tuple[float, float]]], Fit]


class Design(NamedTuple):
    """A population of rows: how they are drawn, the level asked, the true coefficients, the covariates' bounds."""

    name: str
    tau: float
    truth: Floats
    bounds: list[tuple[float, float]]
    draw: Callable[[Generator, int], tuple[Floats, Floats]]


def waits() -> Design:
    """Return a wait by hour and age, with more spread later in the day: exact coefficients at every level."""
    tau = 0.75
    z = float(norm.ppf(tau))

    def draw(generator: Generator, n: int) -> tuple[Floats, Floats]:
        x = np.column_stack([generator.uniform(0, 24, n), generator.integers(0, 90, n)])
        spread = 4 + 0.5 * x[:, 0]
        return x, 20 + 0.8 * x[:, 0] + 0.1 * x[:, 1] + spread * generator.standard_normal(n)

    truth = np.array([20 + 4 * z, 0.8 + 0.5 * z, 0.1])
    return Design("waits by hour and age", tau, truth, [(0.0, 24.0), (0.0, 90.0)], draw)


def spending() -> Design:
    """Return amounts with a heavy right tail by two indicators and three numbers, at the median."""
    beta = np.array([30.0, 8.0, -5.0, 3.0, 0.0, 10.0])

    def draw(generator: Generator, n: int) -> tuple[Floats, Floats]:
        x = np.column_stack([(generator.random((n, 2)) < (0.5, 0.2)).astype(float), generator.uniform(0, 1, (n, 3))])
        noise = 12 * (generator.lognormal(0.0, 0.8, n) - 1.0)  # its median is zero
        return x, beta[0] + x @ beta[1:] + noise

    return Design("spending, five covariates", 0.5, beta, [(0.0, 1.0)] * 5, draw)


def flights() -> tuple[Design | None, str]:
    """Return delays by distance, hour and season, from the table of all flights; or the reason why not."""
    if why := reason("flights"):
        return None, why
    table = read_table("flights")
    frame, names = table.complete, ["miles", "hour", "summer"]
    x, y, tau = frame[names].to_numpy(float), frame[table.response].to_numpy(float), 0.75
    bounds = [table.bounds[name] for name in names]
    x = np.clip(x, *np.array(bounds).T)
    truth = _exact(x, y, tau)

    def draw(generator: Generator, n: int) -> tuple[Floats, Floats]:
        rows = generator.integers(0, len(y), n)
        return x[rows], y[rows]

    return Design("delays of flights", tau, truth, bounds, draw), ""


def _exact(x: Floats, y: Floats, tau: float) -> Floats:
    """Return the exact fit to a whole table."""
    from benchmarks.regression_tables_exact import exact

    return np.asarray(exact(np.column_stack([np.ones(len(y)), x]), y, np.ones(len(y)), tau))


def ours(epsilon: float) -> Fitter:
    """Return the regressor of this library."""

    def fit(x: Any, y: Any, tau: float, bounds: Sequence[tuple[float, float]]) -> Fit:
        found = sv.PrivateQuantileRegressor(tau, epsilon, bounds=bounds).fit(x, y)
        return Fit(np.array([found.intercept_, *found.coef_]), np.asarray(found.confidence_interval(level=LEVEL)))

    return fit


def by_statsmodels(module: Any) -> Fitter:
    """Return QuantReg with its default standard errors."""

    def fit(x: Any, y: Any, tau: float, _bounds: object) -> Fit:
        found = module.QuantReg(y, np.column_stack([np.ones(len(y)), x])).fit(q=tau)
        return Fit(np.asarray(found.params), np.asarray(found.conf_int(1 - LEVEL)))

    return fit


def by_scikit(x: Any, y: Any, tau: float, _bounds: object) -> Fit:
    """Fit scikit-learn's QuantileRegressor without a penalty."""
    found = QuantileRegressor(quantile=tau, alpha=0.0).fit(x, y)
    return Fit(np.array([found.intercept_, *found.coef_]))


def by_river(module: Any, rate: float) -> Fitter:
    """Return river's linear model with the quantile loss, on covariates scaled by the public bounds."""

    def fit(x: Any, y: Any, tau: float, bounds: Sequence[tuple[float, float]]) -> Fit:
        optim = module.optim
        model = module.linear_model.LinearRegression(
            optimizer=optim.SGD(optim.schedulers.InverseScaling(learning_rate=rate, power=0.5)),
            intercept_lr=optim.schedulers.InverseScaling(learning_rate=rate, power=0.5),
            loss=optim.losses.Quantile(alpha=tau),
        )
        low, high = np.array(bounds).T
        scaled = ((x - low) / (high - low)).tolist()
        for row, outcome in zip(scaled, y.tolist(), strict=True):
            model.learn_one(dict(enumerate(row)), outcome)
        slopes = np.array([model.weights.get(at, 0.0) for at in range(x.shape[1])]) / (high - low)
        return Fit(np.array([model.intercept - slopes @ low, *slopes]))

    return fit


class Shown(NamedTuple):
    """A fitter over several draws: its error, the coverage of its intervals, processor seconds.

    The error is a root mean square over draws and coefficients, each taken over the span of its covariate.
    """

    error: float
    covered: float
    seconds: float


def measure(design: Design, n: int, fitters: dict[str, Fitter], replications: int, seed: int) -> dict[str, Shown]:
    """Fit the same rows by every library, each draw anew."""
    generator, spans = dice(seed).generator(), np.array([1.0, *(high - low for low, high in design.bounds)])
    squares: dict[str, list[Floats]] = {name: [] for name in fitters}
    held: dict[str, list[float]] = {name: [] for name in fitters}
    took: dict[str, list[float]] = {name: [] for name in fitters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, y = design.draw(dice(seed + 1).generator(), min(n, WARM))
        for fitter in fitters.values():
            fitter(x, y, design.tau, design.bounds)
        for _ in range(replications):
            x, y = design.draw(generator, n)
            for name, fitter in fitters.items():
                if n > MOST.get(name, n):
                    continue
                start = time.process_time()
                found = fitter(x, y, design.tau, design.bounds)
                took[name].append(time.process_time() - start)
                squares[name].append((found.coefficients - design.truth) ** 2)
                if found.intervals is not None:
                    low, high = found.intervals.T
                    held[name].append(float(np.mean((low <= design.truth) & (design.truth <= high))))
    return {
        name: Shown(
            float(np.sqrt(np.mean(np.array(squares[name]) * spans**2))),
            statistics.fmean(held[name]) if held[name] else math.nan,
            statistics.median(took[name]),
        )
        for name in fitters
        if took[name]
    }


def with_best_rate(cell: dict[str, Shown]) -> dict[str, Shown]:
    """Leave of river's rates the one with the least error: chosen after the fact, to its advantage."""
    rates = [name for name in cell if name.startswith(RIVER)]
    best = min(rates, key=lambda name: cell[name].error, default=None)
    return {RIVER if name == best else name: shown for name, shown in cell.items() if name == best or name not in rates}


def libraries() -> tuple[dict[str, Fitter], tuple[Peer, ...]]:
    """Return what can be run here; the first one is the exact fit that the others are held against."""
    stats, river = peer("statsmodels", "statsmodels.regression.quantile_regression"), peer("river", "river")
    fitters: dict[str, Fitter] = {}
    if stats.module is not None:
        fitters["statsmodels"] = by_statsmodels(stats.module)
    fitters["scikit-learn"] = by_scikit
    if river.module is not None and all(peer("river", f"river.{part}").module for part in ("optim", "linear_model")):
        fitters |= {f"{RIVER} {rate:g}": by_river(river.module, rate) for rate in RATES}
    fitters[OPEN], fitters[PRIVATE] = ours(math.inf), ours(BUDGET)
    return fitters, (stats, peer("scikit-learn", "sklearn"), river)


def run(plan: Sequence[tuple[int, int]] = ((10_000, 20), (100_000, 20), (1_000_000, 4))) -> Comparison:
    """Compare errors, coverage and times; the plan has numbers of rows with numbers of draws."""
    fitters, peers = libraries()
    real, why = flights()
    designs = [waits(), spending(), *([real] if real is not None else [])]
    cells = {
        (d, n): with_best_rate(measure(designs[d], n, fitters, times, 61))
        for n, times in plan
        for d in range(len(designs))
    }
    names = list(next(iter(cells.values())))

    def rows(write: Callable[[Shown], str]) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (
                f"{designs[d].name}, tau {designs[d].tau:g}",
                f"{n:,}",
                *(write(cell[name]) if name in cell else "" for name in names),
            )
            for (d, n), cell in cells.items()
        )

    columns = ("data", "rows", *names)
    errors = Sheet(
        "Error of the coefficients",
        columns,
        rows(lambda shown: figure(shown.error)),
        "Root mean square over draws and coefficients, each over the span of its covariate, in units of the response; "
        f"{' '.join(f'{times} draws of {n:,} rows,' for n, times in plan)[:-1]}. Empty: minutes a call, not run.",
    )
    covered = Sheet(
        f"Intervals of level {LEVEL:g}: how often they hold the true coefficient",
        columns,
        rows(lambda shown: "none" if math.isnan(shown.covered) else f"{shown.covered:.3f}"),
    )
    times = Sheet("Time of a fit (processor)", columns, rows(lambda shown: seconds(shown.seconds)))
    question = (
        "The same rows: how far from the true coefficients is one pass that asks each row once, beside fits that see "
        "all rows as often as they like, and what does privacy add?"
    )
    findings = _findings(list(cells.values()), max(n for n, _ in plan))
    absent = (Peer("", "", None, f"delays of flights: {why}"),) if why else ()
    return Comparison("Quantile regression", question, (errors, covered, times), tuple(findings), (*peers, *absent))


def _findings(cells: Sequence[dict[str, Shown]], largest: int) -> list[str]:
    """Say what the tables show."""
    said = []
    exact = next(iter(cells[0]))
    for name in (OPEN, PRIVATE):
        ratios = [cell[name].error / cell[exact].error for cell in cells if exact in cell]
        middle, least, most = (figure(each, 2) for each in (statistics.median(ratios), min(ratios), max(ratios)))
        said.append(
            f"{name}: {middle} times the error of {exact} in the median over the rows ({least} to {most}), and "
            f"{statistics.fmean(cell[name].covered for cell in cells):.3f} of the coefficients held."
        )
    last = cells[-1]
    if exact in last:
        said.append(
            f"With {largest:,} rows a fit of {exact} takes {figure(last[exact].seconds / last[OPEN].seconds, 2)} "
            "times as long as ours, in the last row."
        )
    said.append(
        "Where all rows are at hand and nobody's privacy is at stake, take statsmodels: it is exact, and has more "
        "kinds of standard errors. river learns from a stream and forgets the rows; it gives no intervals, and its "
        "rate has to be tuned by hand: here the best of "
        f"{listed([f'{rate:g}' for rate in RATES])} over the root of the step, chosen after the fact for each row."
    )
    return said
