"""Several levels at once from one report a person: a public split of the records, joint coverage, no crossing."""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sottovoce.api.quantile.federated import Progress, open_sites, staged_warnings
from sottovoce.api.quantile.panel import QuantilePlan, prepare
from sottovoce.core.arrays import Ints
from sottovoce.core.checks import check_callers, confidence, number
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.local.quantile.conversation import converse
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile
from sottovoce.server.quantile.feasibility import PAIRS, STAGES, support
from sottovoce.server.quantile.result import QuantileResult, finite
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.search import find
from sottovoce.server.quantile.solutions import Interval, staged_solution
from sottovoce.server.quantile.staged import Local, StagedStudy, staged_protocol
from sottovoce.server.quantile.together import together

FEWEST = 20  # records of a site for each level


@dataclass(frozen=True)
class QuantilesResult:
    """Several quantiles with intervals that hold jointly."""

    results: tuple[QuantileResult, ...]
    level: float
    split: tuple[float, ...]

    @property
    def taus(self) -> tuple[float, ...]:
        """Return the levels, ascending."""
        return tuple(result.tau for result in self.results)

    @property
    def estimates(self) -> tuple[float, ...]:
        """Return the estimates, sorted so that they do not cross."""
        return tuple(sorted(result.estimate for result in self.results))

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Return intervals that cover all quantiles at once; sorting their ends never lowers the coverage."""
        each = 1 - (1 - self.level) / len(self.results)
        ends = [result.interval_at(each) for result in self.results]
        lows, highs = sorted(end.low for end in ends), sorted(end.high for end in ends)
        return tuple(Interval(low, high) for low, high in zip(lows, highs, strict=True))

    @property
    def private(self) -> bool:
        """Tell whether the run protects its records."""
        return self.results[0].private

    def summary(self) -> str:
        """Return a table of the levels, then the promise."""
        first = self.results[0]
        lines = [
            f"Private quantiles with {self.level:.4g} joint coverage; every record answered for one level only.",
            f"{'tau':>8} {'estimate':>16} {'low':>16} {'high':>16} {'of the records':>15}",
        ]
        for tau, estimate, (low, high), part in zip(self.taus, self.estimates, self.intervals, self.split, strict=True):
            cells = " ".join(f"{first.format(value):>16}" for value in (estimate, low, high))
            lines.append(f"{tau:>8.4g} {cells} {part:>15.1%}")
        lines += [f"Warning: {warning}" for result in self.results for warning in result.warnings]
        lines += [f"Hint: {hint}" for hint in first.hints]
        return "\n".join([*lines, first.promise])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON: what is infinite is None."""
        return {
            "level": self.level,
            "joint": [
                {"tau": tau, "estimate": estimate, "low": finite(low), "high": finite(high), "split": part}
                for tau, estimate, (low, high), part in zip(
                    self.taus, self.estimates, self.intervals, self.split, strict=True
                )
            ],
            "private": self.private,
            "results": [result.to_dict() for result in self.results],
        }

    def __str__(self) -> str:
        return self.summary()


def federated_quantiles(
    sites: Any,
    taus: Sequence[float],
    epsilon: Any,
    *,
    level: float = 0.95,
    split: Sequence[float] | None = None,
    shares: Any = "pooled",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    robust: bool = False,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
    progress: Progress | None = None,
) -> QuantilesResult:
    """Estimate several quantiles at once; each record answers once, for one level drawn at random.

    Parameters
    ----------
    sites, epsilon, shares, bounds, scale, resolution, robust, randomness, missing, progress
        As for `federated_quantile`.
    taus
        The levels.
    level
        The confidence with which all intervals hold together.
    split
        The public parts of the records that answer for each level; without it equal parts, or, where equal parts would
        leave an extreme level barely supported, parts that support all levels alike.

    Examples
    --------
    >>> import sottovoce as sv
    >>> waits = sv.sim.dice(1).generator().exponential(30.0, size=(2, 60_000))
    >>> r = sv.federated_quantiles([waits[0], waits[1]], [0.25, 0.5, 0.75], 2.0, randomness=sv.sim.dice(2))
    >>> [bool(low < truth < high) for (low, high), truth in zip(r.intervals, (8.63, 20.79, 41.59))]
    [True, True, True]
    """
    levels = _levels(taus)
    confidence(level)
    limits = STAGES if robust else PAIRS
    panel = prepare(
        sites,
        0.5,
        epsilon,
        shares=shares,
        bounds=bounds,
        scale=scale,
        resolution=resolution,
        missing=missing,
        limits=limits,
    )
    parts = _parts(split, levels, panel.crowd)
    panels = [
        prepare(
            panel.table,
            tau,
            epsilon,
            shares=shares,
            bounds=bounds,
            scale=scale,
            resolution=resolution,
            thinned=part,
            limits=limits,
        )
        for tau, part in zip(levels, parts, strict=True)
    ]
    for name, size in zip(panel.names, panel.crowd.sizes.tolist(), strict=True):
        needed = math.ceil(FEWEST / min(parts) - 1e-9)
        if size < needed:
            raise BadInput(
                f"site {name!r} has {size} records, too few to answer for {len(levels)} levels split like this; "
                f"give it at least {needed}, or leave it out."
            )
    check_callers(randomness, progress)
    doors = open_sites(panel, randomness)
    locals_, rounds = converse(_talk(panels, parts, robust), doors, progress)
    private = all(door.private for door in doors) and not panel.table.seeded
    results = tuple(
        QuantileResult(
            panel=replace(own, warnings=()),
            solution=staged_solution(local),
            level=level,
            method="staged",
            rounds=rounds,
            reports=local.milestones[-1].reports,
            private=private,
            warnings=own.warnings + staged_warnings(local, robust),
        )
        for own, local in zip(panels, locals_, strict=True)
    )
    return QuantilesResult(results, level, tuple(parts))


def _talk(panels: list[QuantilePlan], parts: list[float], robust: bool) -> Generator[Ask, Ints, list[Local | Fitted]]:
    """Search once for all levels, then run one conversation a level on its own part of the records."""
    whole = panels[0].crowd
    talker = QueryAllocator(whole)
    found = yield from find(talker, panels[0].bounds, panels[0].scale)
    asked = np.sum([heard.counts.sum(axis=1) for heard in talker.heard], axis=0)
    left = whole.sizes - asked
    edges = np.floor(np.outer(np.concatenate(([0.0], np.cumsum(parts))).clip(max=1.0), left) + 0.5).astype(np.int64)
    talks = []
    for panel, sizes in zip(panels, np.diff(edges, axis=0), strict=True):
        crowd = SiteProfile(whole.shares, whole.rates, sizes)
        talks.append(staged_protocol(StagedStudy(panel.tau, crowd, panel.bounds, panel.scale, robust), found))
    return (yield from together(talks))


def _levels(taus: Sequence[float]) -> list[float]:
    """Return the levels in ascending order, or refuse."""
    if isinstance(taus, str | bytes) or not hasattr(taus, "__iter__"):
        raise BadInput(f"taus must be a sequence of levels, not {taus!r}; give for example [0.25, 0.5, 0.75].")
    levels = [number(tau, "tau") for tau in taus]
    if not levels or len(set(levels)) != len(levels) or not all(0 < tau < 1 for tau in levels):
        raise BadInput(f"taus must be different levels strictly between 0 and 1, not {list(taus)!r}; correct them.")
    if levels != sorted(levels):
        raise BadInput(f"taus must ascend, not {levels!r}; sort them.")
    return levels


def _parts(split: Sequence[float] | None, levels: list[float], crowd: SiteProfile) -> list[float]:
    """Return which part of the records answers for each level."""
    if split is not None:
        if isinstance(split, str | bytes) or not hasattr(split, "__iter__"):
            raise BadInput(f"split must be a sequence of parts, not {split!r}; give one for each level.")
        parts = [number(part, "split") for part in split]
        if len(parts) != len(levels) or min(parts) <= 0 or abs(sum(parts) - 1) > 1e-9:
            raise BadInput(
                f"split must be {len(levels)} positive parts that sum to 1, not {list(split)!r}; correct it."
            )
        return parts
    equal = 1 / len(levels)
    if max(support(crowd, tau).ratio / equal**0.5 for tau in levels) <= STAGES.warn:
        return [equal] * len(levels)
    needs = [min(tau, 1 - tau) ** -2 for tau in levels]
    return [need / sum(needs) for need in needs]
