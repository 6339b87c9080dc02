"""What does a government employee of the Rocky Mountains earn? One region asks, and three larger ones may help.

The illustration of section 5.3 of the data-integration paper. Run `python examples/salaries.py --data FOLDER`, or name
the folder by the variable SOTTOVOCE_DATA; it holds `gov_census/gov_census.parquet`, the 204,309 government employees
of the American Community Survey 2018 that the R package fairadapt carries, with the columns `salary` and
`economic_region`. For each level and each setting of the rates it asks all sites once, and combines their answers by

- `target alone`, `valid` (the default), `conservative`, and `known-bound` with a bound that somebody might have chosen;
- the paper's target and its three weighted estimators, over its ten chains a site.

Everything is then repeated with fresh dice, and intervals are counted that hold the exact quantile of the target: an
example may look. `--redraw` also draws the records of every site anew, with replacement, for intervals count that noise
too. All dice are seeded and the records are published: nothing here is private.

Salaries are rounded, by the survey to 100 dollars (1,000 from 50,000 on) and by people: 87 to 91 in a hundred are whole
thousands. So the public step, `resolution=`, is 1,000: every record is moved by up to half of it before it answers, and
the ends of intervals are rounded to it. The paper takes logarithms; quantiles do not need that, and step and bound are
meant in dollars.
"""

import argparse
import math
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import sottovoce as sv
from sottovoce.server.integration.result import IntegratedResult

Sites = dict[str, npt.NDArray[np.float64]]
TARGET, SOURCES = "Rocky Mountain", ("Southeast", "Far West", "Mideast")
NAMES = (TARGET, *SOURCES)
RATES = {  # of truthful answers, in the order of the names; at rate 1 a site shows its records
    "rate .7 everywhere": (0.7, 0.7, 0.7, 0.7),
    "rates .7, .8, .9 and 1": (0.7, 0.8, 0.9, 1.0),
}
STEP = 1_000.0
# Somebody might think beforehand that whoever pays much less, or much more, loses people to the neighbours.
EVERYWHERE = dict.fromkeys(SOURCES, 2_000.0)
ONE_SOURCE = {"Southeast": 2_000.0, "Far West": math.inf, "Mideast": math.inf}
PAPER = {"target": "Target", "adaptive": "ADP(1)", "decay": "ADP(decay)", "conservative-paper": "ADP(cons)"}
TABLE_1 = {  # estimate and length of the interval, as printed
    ("rate .7 everywhere", 0.25): {"decay": (24_909, 1_992), "conservative-paper": (23_721, 1_910)},
    ("rate .7 everywhere", 0.5): {"decay": (44_281, 1_041), "conservative-paper": (43_403, 1_459)},
    ("rates .7, .8, .9 and 1", 0.25): {"decay": (24_891, 1_753), "conservative-paper": (23_724, 1_896)},
    ("rates .7, .8, .9 and 1", 0.5): {"decay": (44_268, 1_009), "conservative-paper": (44_620, 1_410)},
}
TABLE_1_TARGET = {0.25: (27_442, 3_014), 0.5: (45_374, 1_950)}


class Said(NamedTuple):
    """What one method says: estimate and interval before they are rounded, the interval as given."""

    estimate: float
    interval: tuple[float, float]
    given: tuple[float, float]
    contradicted: bool = False


def load(folder: Path) -> Sites:
    """Read the salaries of the four regions."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / "gov_census" / "gov_census.parquet", columns=["salary", "economic_region"])
    salary, region = table["salary"].to_numpy().astype(float), np.array(table["economic_region"].to_pylist())
    return {name: salary[region == name] for name in NAMES}


def exact(records: npt.NDArray[np.float64], tau: float) -> float:
    """Return the quantile of records in sight."""
    return float(np.quantile(records, tau, method="inverted_cdf"))


def spread(records: npt.NDArray[np.float64], tau: float) -> float:
    """Return the quantile of records that are spread evenly over half a step to either side."""
    low, high = float(records.min()) - STEP, float(records.max()) + STEP
    while high - low > 0.01:
        middle = (low + high) / 2
        below = float(np.clip((middle - records) / STEP + 0.5, 0, 1).mean())
        low, high = (middle, high) if below < tau else (low, middle)
    return high


def budgets(rates: tuple[float, ...]) -> dict[str, float]:
    """Return the epsilon of each site."""
    return {
        name: math.inf if rate == 1 else math.log((1 + rate) / (1 - rate))
        for name, rate in zip(NAMES, rates, strict=True)
    }


def said(result: IntegratedResult) -> Said:
    """Return what a combination says."""
    found = result.combination
    contradicted = any("contradicted" in warning for warning in result.warnings)
    return Said(found.estimate, (found.low, found.high), result.interval, contradicted)


def ask(sites: Sites, tau: float, rates: tuple[float, ...], seed: int) -> tuple[IntegratedResult, dict[str, Said]]:
    """Ask all sites twice, by the default and by the paper's chains; return the default, and what every method says."""
    dice = sv.sim.dice(seed).split(2)
    valid = sv.integrated_quantile(TARGET, sites, tau, budgets(rates), resolution=STEP, randomness=dice[0])
    chains = sv.integrated_quantile(
        TARGET, sites, tau, budgets(rates), method="adaptive", resolution=STEP, randomness=dice[1]
    )
    own = valid.target
    found = {
        "target alone": Said(own.measured.estimate, (own.low, own.high), valid.target_interval),
        "valid": said(valid),
        "conservative": said(valid.by_method("conservative")),
        "known-bound, 2,000 for all": said(valid.by_method("known-bound", bound=EVERYWHERE)),
        "known-bound, Southeast only": said(valid.by_method("known-bound", bound=ONE_SOURCE)),
    }
    found |= {f"paper's {name}": said(chains.by_method(method)) for method, name in PAPER.items()}
    return valid, found


def redrawn(sites: Sites, seed: int) -> Sites:
    """Draw as many records anew at each site."""
    draw = sv.sim.dice(seed).generator()
    return {name: draw.choice(records, len(records)) for name, records in sites.items()}


def block(sites: Sites, tau: float, setting: str, repetitions: int, seed: int, redraw: bool) -> str:
    """Write one setting: a single run, and how often each method covers."""
    first, once = ask(sites, tau, RATES[setting], seed)
    truth, between = exact(sites[TARGET], tau), spread(sites[TARGET], tau)
    runs = []
    for k in range(repetitions):
        again = 1_000_000 * (seed + 1) + k
        runs.append(ask(redrawn(sites, again) if redraw else sites, tau, RATES[setting], again)[1])
    lines = [f"tau {tau:g}, {setting}. Exact quantiles, and the sites' own intervals in one run:"]
    for site in first.known:
        away = f"{exact(sites[site.name], tau) - truth:+,.0f}" if site.name != TARGET else "target"
        lines.append(
            f"  {site.name:<16}{exact(sites[site.name], tau):>8,.0f} {away:>9}   "
            f"[{first.rounded(site.low):,.0f}, {first.rounded(site.high):,.0f}], "
            f"{site.records:,} records, epsilon {site.epsilon:.2f}"
        )
    lines.append(
        f"  {'method':<28}{'estimate':>9}  {'95% interval':<18}{'covers':>7}"
        f"{'before':>8}{'length':>8}{'error':>7}  in print"
    )
    for method, one in once.items():
        found = [run[method] for run in runs]
        covers = np.mean([each.given[0] <= truth <= each.given[1] for each in found])
        before = np.mean([each.interval[0] <= between <= each.interval[1] for each in found])
        length = np.mean([each.interval[1] - each.interval[0] for each in found])
        error = math.sqrt(np.mean([(each.estimate - between) ** 2 for each in found]))
        refuted = np.mean([each.contradicted for each in found])
        lines.append(
            f"  {method:<28}{first.rounded(one.estimate):>9,.0f}  {f'[{one.given[0]:,.0f}, {one.given[1]:,.0f}]':<18}"
            f"{covers:>7.3f}{before:>8.3f}{length:>8,.0f}{error:>7,.0f}  {_print(method, setting, tau)}"
            + (f"(bound contradicted in {refuted:.0%} of runs)" if refuted else "")
        )
    return "\n".join(lines)


def _print(method: str, setting: str, tau: float) -> str:
    """Return what Table 1 of the paper says of a method."""
    known = {"target": TABLE_1_TARGET.get(tau), **TABLE_1.get((setting, tau), {})}
    found = next((known.get(key) for key, name in PAPER.items() if method == f"paper's {name}"), None)
    return "" if found is None else f"{found[0]:,}, length {found[1]:,} "


def main(arguments: list[str] | None = None) -> None:
    """Print a table for each level and setting, and draw the last run of the default."""
    parser = argparse.ArgumentParser(description="Salaries of one region, helped by three others.")
    parser.add_argument("--data", type=Path, default=os.environ.get("SOTTOVOCE_DATA"), help="the folder of data sets")
    parser.add_argument("--tau", default=".25,.5")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--redraw", action="store_true", help="draw the records anew as well")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, default=Path("demo/integration-salaries.png"), help="where to draw")
    asked = parser.parse_args(arguments)
    file = None if asked.data is None else Path(asked.data) / "gov_census" / "gov_census.parquet"
    if file is None or not file.exists():
        sys.stderr.write(
            "There is no gov_census/gov_census.parquet in the folder that SOTTOVOCE_DATA or --data names; make it from "
            "data/gov_census.rda of the R package fairadapt, with the columns salary and economic_region.\n"
        )
        raise SystemExit(2)
    sites, taus = load(Path(asked.data)), [float(part) for part in asked.tau.split(",")]
    sys.stdout.write(
        f"{asked.repetitions} runs with fresh {'records and dice' if asked.redraw else 'dice'}. Covers: how often the "
        "interval, rounded to thousands, holds the exact quantile of the\ntarget. Before: how often the unrounded one "
        "holds that of the records spread over their step. Length: the mean, and\nerror: the root of the mean square, "
        "both unrounded. In print: the paper's Table 1.\n\n"
    )
    for tau in taus:
        for setting in RATES:
            sys.stdout.write(block(sites, tau, setting, asked.repetitions, asked.seed, asked.redraw) + "\n\n")
    drawn = ask(sites, taus[-1], RATES["rate .7 everywhere"], asked.seed)[0]
    asked.plot.parent.mkdir(parents=True, exist_ok=True)
    drawn.plot(asked.plot)
    sys.stdout.write(f"Drawn to {asked.plot}.\n\n{drawn}\n")


if __name__ == "__main__":
    main()
