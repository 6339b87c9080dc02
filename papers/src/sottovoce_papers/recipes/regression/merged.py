"""Simulated and computed errors of online quantile regression put together into the rows of Tables 3, 4, 5 and 12.

An unbiased release's error falls as 1 / sqrt(n) once it has arrived, so a closed form at one horizon is one at all, and
a simulated mean at a million reports, multiplied by sqrt(1e6 / 3e8), stands for one at the final horizon.
"""

import math
from collections.abc import Sequence

import numpy as np

from sottovoce_papers.harness.cell import Row, Value
from sottovoce_papers.harness.measure import Measure, exact
from sottovoce_papers.recipes.regression.closed_form import READING
from sottovoce_papers.recipes.regression.recorded import READING as RECORDED
from sottovoce_papers.recipes.regression.trajectory import HORIZONS, KEPT
from sottovoce_papers.simulation.regression.cell import printed

FINAL, MILLION = 300_000_000, 1_000_000
SCALED = "n = 1e6, scaled"
Place = tuple[Value, Value, Value]


def final(rows: Sequence[Row]) -> list[Row]:
    """Return the final horizon's errors (Table 4): by the closed form, and simulated to a million and scaled."""
    made = []
    for row in rows:
        if row.where["reading"] == READING:
            made.append(Row(_where(row, READING, READING), {"error": row.measures["error"]}))
        elif row.where["reading"] == RECORDED:
            if row.where["n"] == FINAL:
                made.append(Row(_where(row, RECORDED, "simulated"), {"error": row.measures["error"]}))
        elif row.where["n"] == MILLION:
            shifted = row.where["method"] == "Face-exponential" and row.where["tau"] != 0.5
            how = "simulated; a bias does not shrink, not scaled" if shifted else "simulated and scaled"
            factor = 1.0 if shifted else math.sqrt(MILLION / FINAL)
            made.append(Row(_where(row, SCALED, how), {"error": times(row.measures["error"], factor)}))
    return made


def recovery(rows: Sequence[Row]) -> list[Row]:
    """Return the final horizon's errors and their ratios to those without privacy (Table 5)."""
    made = final(rows)
    base = {
        (row.where["tau"], row.where["p"], row.where["reading"]): row.measures["error"]
        for row in made
        if row.where["method"] == "nonprivate"
    }
    found = []
    for row in made:
        if row.where["method"] == "nonprivate":
            found.append(row)
        elif row.where["epsilon"] != "inf" and row.where["method"] in ("CQ", "default"):
            whole = base.get((row.where["tau"], row.where["p"], row.where["reading"]))
            more = {"ratio": ratio(row.measures["error"], whole)} if whole is not None else {}
            found.append(Row(row.where, {**row.measures, **more}))
    return found


def horizons(rows: Sequence[Row]) -> list[Row]:
    """Return the errors along the paper's horizons (Table 12): simulated as far as that goes, then the closed form."""
    made = []
    for row in rows:
        if row.where["reading"] == READING:
            method = row.where["method"]
            if method not in ("CQ", "nonprivate", "default"):
                continue
            last = _last(rows, row)
            for n in HORIZONS:
                error = {"error": times(row.measures["error"], math.sqrt(FINAL / n))}
                made.append(Row({**_where(row, READING, READING), "n": n}, error))
                if n > last:
                    made.append(Row({**_where(row, "simulated", READING), "n": n}, error))
        else:
            kept = row.where["reading"] in ("printed step", RECORDED)
            reading = str(row.where["reading"]) if kept else "simulated"
            where = {**_where(row, reading, "simulated"), "n": row.where["n"]}
            made.append(Row(where, {"error": row.measures["error"]}))
    return made


def decay(rows: Sequence[Row]) -> list[Row]:
    """Return effective information, errors at four horizons and the fitted slope (Table 3)."""
    found = []
    names = {MILLION: "1e6", 10 * MILLION: "1e7", 100 * MILLION: "1e8", FINAL: "3e8"}
    merged = horizons(rows)
    for row in rows:
        method = row.where["method"]
        if row.where["reading"] != READING or method not in ("CQ", "default"):
            continue
        for reading in ("simulated", READING, RECORDED):
            mine = [one for one in merged if _same(one, row) and one.where["reading"] == reading]
            measures = {names[int(one.where["n"])]: one.measures["error"] for one in mine if one.where["n"] in names}
            if not measures:
                continue
            if method == "CQ" and reading != RECORDED:  # of which single runs are not kept, so no slope's error
                tau, p, epsilon = (float(row.where[key]) for key in ("tau", "p", "epsilon"))
                cell = printed(tau, int(p), epsilon, normalised=False)
                measures["n_eff"] = exact(FINAL * (cell.scale / 10) ** 2)
                measures["slope"] = slope(mine, [one for one in rows if _same(one, row) and one.curves])
            how = "simulated, closed form from 3e7 on" if reading == "simulated" and method == "CQ" else reading
            found.append(Row(_where(row, reading, how), measures))
    return found


def slope(errors: Sequence[Row], runs: Sequence[Row]) -> Measure:
    """Fit log error to log n from a million on; ``runs`` keep every run's error, which tells the slope's own."""
    points = sorted((float(row.where["n"]), row.measures["error"]) for row in errors if float(row.where["n"]) >= KEPT)
    logs = np.log([n for n, _ in points])
    weights = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    value = float(weights @ np.log([measure.value for _, measure in points]))
    simulated = {n: measure for n, measure in points if measure.n}
    if not simulated:
        return exact(value)
    # A run's part in the fitted slope: its errors at all simulated horizons, which are not independent.
    kept = {float(row.where["n"]): np.array(row.curves["errors"]) for row in runs}
    parts = [
        weight * kept[n] / measure.value
        for weight, (n, measure) in zip(weights, points, strict=True)
        if n in simulated and n in kept
    ]
    part = np.sum(parts, axis=0)
    return Measure(value, float(np.std(part, ddof=1)) / math.sqrt(len(part)) if len(part) > 1 else 0.0, len(part))


def times(measure: Measure, factor: float) -> Measure:
    """Multiply a measure."""
    return Measure(measure.value * factor, measure.error * factor, measure.n)


def ratio(above: Measure, below: Measure) -> Measure:
    """Divide two independent measures.

    >>> ratio(Measure(2.0, 0.2, 10), Measure(4.0))
    Measure(value=0.5, error=0.05, n=10)
    """
    value = above.value / below.value
    return Measure(value, value * math.hypot(above.error / above.value, below.error / below.value), above.n)


def _where(row: Row, reading: str, how: str) -> dict[str, Value]:
    place = {key: row.where[key] for key in ("tau", "p", "epsilon", "method")}
    return {**place, "reading": reading, "how": how}


def _same(row: Row, other: Row) -> bool:
    return all(row.where[key] == other.where[key] for key in ("tau", "p", "epsilon", "method"))


def _last(rows: Sequence[Row], closed: Row) -> int:
    """Return the last horizon that was simulated with the step that is not the printed one."""
    simulated = [
        int(row.where["n"])
        for row in rows
        if _same(row, closed) and row.where["reading"] not in (READING, RECORDED, "printed step")
    ]
    return max(simulated, default=0)
