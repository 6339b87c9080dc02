"""Exact fits of the real tables beside those of statsmodels: ``python -m benchmarks.regression_statsmodels [TABLE]``.

It needs the bench extra. Weights, of tables whose people have several rows, become repeated rows.
"""

import importlib
import sys
import time
import warnings

import numpy as np

from benchmarks.regression_tables_data import NAMES, read_table, reason
from benchmarks.regression_tables_exact import errors, exact, hessian, open_covariance
from sottovoce.core.arrays import Floats

MOST = 5_000  # iterations


def loss(x: Floats, y: Floats, weights: Floats, beta: Floats, tau: float) -> float:
    """Return the mean check loss."""
    away = y - x @ beta
    return float(weights @ (away * (tau - (away < 0))) / weights.sum())


def repeated(x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return every row as often as its weight says, in whole numbers."""
    scale = next(k for k in range(1, 61) if np.allclose(weights * k, np.round(weights * k), atol=1e-9))
    times = np.round(weights * scale).astype(np.int64)
    return np.repeat(x, times, axis=0), np.repeat(y, times)


def run(names: list[str]) -> None:
    """Print how far apart both fits are, in standard errors of the open fit, and which has the smaller loss."""
    theirs_of = importlib.import_module("statsmodels.regression.quantile_regression").QuantReg
    print("| table | tau | rows | farthest, in open standard errors | its loss over ours, less 1 | seconds | ours |")
    print("|---|---|---|---|---|---|---|")
    for name in names or NAMES:
        if why := reason(name):
            print(f"{name} is left out: {why}.")
            continue
        table = read_table(name)
        x, y, weights = table.design()
        for tau in table.taus:
            began = time.perf_counter()
            beta = exact(x, y, weights, tau)
            between = time.perf_counter()
            with warnings.catch_warnings(action="ignore"):
                theirs = np.asarray(theirs_of(*repeated(x, y, weights)[::-1]).fit(q=tau, max_iter=MOST).params)
            ended = time.perf_counter()
            to_raw = np.eye(len(beta))
            unit = errors(open_covariance(x, weights, hessian(x, y, weights, beta, tau), tau), to_raw)
            apart, least = float(np.max(np.abs(theirs - beta) / unit)), loss(x, y, weights, beta, tau)
            more = loss(x, y, weights, theirs, tau) / least - 1
            seconds = f"{ended - between:.1f} | {between - began:.1f}"
            print(f"| {name} | {tau:g} | {len(y):,} | {apart:.4f} | {more:.1e} | {seconds} |", flush=True)


if __name__ == "__main__":
    run(sys.argv[1:])
