"""Targets, sources and shifts on which the combinations of a target with its sources are measured."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce_papers.simulation.integration.grid import PATTERNS, SHIFTS, Score, score, signs
from sottovoce_papers.simulation.integration.pools import Pool, SiteCell, fill
from sottovoce_papers.simulation.populations import Population, population

FAMILIES: dict[str, Population] = {
    "normal": population("normal"),
    "cauchy": population("cauchy"),
    "gamma(2)": population("gamma", 2.0),
    "lognormal": population("lognormal", 1.0),
    "gumbel": population("gumbel"),
    "weibull(1.5)": population("weibull", 1.5),
}


class Setting(NamedTuple):
    """A target: level, records, response rate."""

    tau: float
    records: int
    rate: float


SETTINGS = {
    "tau .25, 20,000": Setting(0.25, 20_000, 0.5),
    "tau .5, 20,000": Setting(0.5, 20_000, 0.5),
    "tau .9, 20,000": Setting(0.9, 20_000, 0.5),
    "tau .9, 100,000": Setting(0.9, 100_000, 0.5),
}
# a source: how many times the target's records, at which rate
KINDS = {"A": (5.0, 0.9), "B": (3.0, 0.5), "C": (2.0, 0.25), "D": (1.0, 0.9), "E": (1.3, 0.25)}
CROWDS = {
    "K = 1, precise": "A",
    "K = 1, weak": "C",
    "K = 3, mixed": "ABC",
    "K = 3, weak": "CEC",
    "K = 10": "ABCDEABCDE",
}


@dataclass(frozen=True)
class Case:
    """One case: whose records, which target, which sources, and how they are shifted, in errors of the target."""

    family: str
    setting: str
    shapes: str  # of the sources: the target's own law ("same") or others
    crowd: str
    pattern: str
    shift: float


def site(family: str, setting: Setting, kind: str | None) -> SiteCell:
    """Return the target (no kind) or a source."""
    times, rate = (1.0, setting.rate) if kind is None else KINDS[kind]
    return SiteCell(FAMILIES[family], setting.tau, rate, int(times * setting.records))


def fill_pools(families: list[str], setting: str, targets: int, sources: int, seed: int) -> dict[tuple[str, str], Pool]:
    """Measure a target and one source of each kind in every family."""
    pools = {}
    for i, family in enumerate(families):
        for j, kind in enumerate(("", *KINDS)):
            cell = site(family, SETTINGS[setting], kind or None)
            pools[family, kind] = fill(cell, sources if kind else targets, seed + 100 * i + j)
    return pools


def cases(
    families: list[str], setting: str, pools: dict[tuple[str, str], Pool], bounded: bool
) -> Iterator[tuple[Case, Score]]:
    """Score every case of one setting; the known bound is one asymptotic error of the target, where all shifts are it.

    Sources of another law are scaled so that their asymptotic error is what it would be with the target's law.
    """
    public = SETTINGS[setting]
    for i, family in enumerate(families):
        unit = site(family, public, None).staged.oracle
        for shapes in ("same", "other"):
            for crowd, kinds in CROWDS.items():
                sources = []
                for k, kind in enumerate(kinds):
                    distribution = family if shapes == "same" else families[(i + 1 + k) % len(families)]
                    scale = site(family, public, kind).staged.oracle / site(distribution, public, kind).staged.oracle
                    y, error, df, low, high = pools[distribution, kind]
                    sources.append(Pool(y * scale, error * scale, df, low * scale, high * scale))
                last = "all" if len(kinds) > 1 else "one"
                for pattern in PATTERNS if len(kinds) > 1 else ("one",):
                    for shift in SHIFTS if pattern == "one" else SHIFTS[1:]:
                        moved = [float(unit * shift * sign) for sign in signs(pattern, len(kinds))]
                        bound = unit if bounded and (pattern, shift) == (last, 1.0) else None
                        found = score(pools[family, ""], sources, moved, bound)
                        yield Case(family, setting, shapes, crowd, pattern, shift), found


def summarise(scored: list[tuple[Case, Score]]) -> dict[str, float]:
    """Return the figures: lowest coverages, lengths, errors."""

    def column(name: str, rows: list[tuple[Case, Score]]) -> np.ndarray:
        return np.array([getattr(found, name) for _, found in rows])

    agreed = [row for row in scored if row[0].shift == 0]
    bounded = [row for row in scored if row[1].bounded == row[1].bounded]
    own, valid = column("target", scored), column("valid", scored)
    good = own >= 0.945
    return {
        "target": float(own.min()),
        "valid": float(valid.min()),
        "valid where the target has .945": float(valid[good].min()) if good.any() else float("nan"),
        "most below the target": float((valid - own).min()),
        "longest": float(column("length", scored).max()),
        "length, no shift": float(column("length", agreed).max()),
        "error, no shift, median": float(np.median(column("error", agreed))),
        "error, largest": float(column("error", scored).max()),
        "conservative": float(column("conservative", scored).min()),
        "known bound": float(column("bounded", bounded).min()) if bounded else float("nan"),
        "its length, precise": _largest(column("bounded_length", bounded)[column("ratio", bounded) < 0.1]),
        "its length, all": _largest(column("bounded_length", bounded)),
    }


def _largest(values: np.ndarray) -> float:
    return float(values.max()) if len(values) else float("nan")
