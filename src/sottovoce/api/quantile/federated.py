"""One quantile over many sites, each record answering once through randomised response."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sottovoce.api.quantile.panel import QuantilePlan, prepare
from sottovoce.api.quantile.recursion import Recursion, prepare_recursion, run_recursion
from sottovoce.client.quantile.site import Site
from sottovoce.core.checks import check_callers, confidence
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.local.quantile.conversation import converse
from sottovoce.protocol.messages import Study
from sottovoce.server.quantile.feasibility import PAIRS, STAGES
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.solutions import Solution, staged_solution
from sottovoce.server.quantile.staged import Local, StagedStudy, staged_protocol

METHODS = ("staged", "regression", "self-normalised")
Progress = Callable[[int], None]


def federated_quantile(
    sites: Any,
    tau: Any,
    epsilon: Any,
    *,
    level: float = 0.95,
    method: str = "staged",
    shares: Any = "pooled",
    schedule: str | Sequence[int] = "every:1",
    participation: float = 1.0,
    graph: Any = None,
    norm: str = "l2",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    robust: bool = False,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
    progress: Progress | None = None,
) -> QuantileResult:
    """Estimate one quantile over many sites under local differential privacy, with a confidence interval.

    Parameters
    ----------
    sites
        A mapping from site to a one-dimensional column (numpy, Arrow, pandas, polars, a list), a sequence of columns,
        or what `read_frame` or `read_files` returned.
    tau
        The level, or a mapping from site to level (the estimand is then at the weighted sum of the levels).
    epsilon
        The budget of a record's one report, or a mapping from site to budget; ``math.inf`` for no privacy.
    level
        The confidence level.
    method
        "staged" (default), or the paper's recursion with the "regression" or the "self-normalised" interval.
    shares
        "pooled" (proportional to size), "equal", or a mapping from site to share: they define the estimand.
    schedule
        For the paper's recursion: "every:E", "log", or the rounds' lengths.
    participation
        For the paper's recursion: the part of the sites that answers in each round.
    graph
        For the paper's recursion without a server: "ring", or a symmetric matrix that says which sites talk.
    norm
        The norm of the self-normalised interval: "l2" (constant memory), "sup" or "l1".
    bounds
        A public pair that contains the quantile; shortens the search.
    scale
        A rough public spread of the records; shortens the search.
    resolution
        The public step to whose multiples the records are rounded; they are dithered by it and the interval covers
        the atom.
    robust
        Ask five points a stage: for a quantile that may lie between two modes, at 10 to 20 % more length.
    randomness
        None for the operating system's entropy; `sim.dice` for simulation, which makes the result not private.
    missing
        "refuse" missing values, or "drop" and count them.
    progress
        Called with the number of records that have just answered.

    Returns
    -------
    The estimate with its interval, tests, budgets, trajectory and summary.

    Examples
    --------
    >>> import sottovoce as sv
    >>> waits = sv.sim.dice(1).generator().gamma(2.0, 10.0, size=(2, 60_000))
    >>> r = sv.federated_quantile({"north": waits[0], "south": waits[1]}, 0.5, {"north": 1.0, "south": 2.0},
    ...                           randomness=sv.sim.dice(2))
    >>> bool(r.interval.low < 16.78 < r.interval.high), r.private, round(r.epsilon["south"], 6)
    (True, False, 2.0)
    """
    study = plan_study(
        sites,
        tau,
        epsilon,
        level=level,
        method=method,
        shares=shares,
        schedule=schedule,
        participation=participation,
        graph=graph,
        norm=norm,
        bounds=bounds,
        scale=scale,
        resolution=resolution,
        robust=robust,
        missing=missing,
    )
    return run_study(study, randomness, progress)


@dataclass(frozen=True, eq=False)
class PlannedStudy:
    """A study whose whole input is checked, and of which nothing is spent yet."""

    panel: QuantilePlan
    recursion: Recursion | None
    level: float
    method: str
    robust: bool


def plan_study(
    sites: Any,
    tau: Any,
    epsilon: Any,
    *,
    level: float = 0.95,
    method: str = "staged",
    shares: Any = "pooled",
    schedule: str | Sequence[int] = "every:1",
    participation: float = 1.0,
    graph: Any = None,
    norm: str = "l2",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    robust: bool = False,
    missing: str = "refuse",
) -> PlannedStudy:
    """Check all input of `federated_quantile` without asking any record."""
    if method not in METHODS:
        raise BadInput(f"method {method!r} is unknown; choose one of {', '.join(map(repr, METHODS))}.")
    confidence(level)
    if not isinstance(robust, bool):
        raise BadInput(f"robust must be True or False, not {robust!r}; choose one.")
    walks = method != "staged"
    plain = isinstance(schedule, str) and schedule == "every:1" and participation == 1 and norm == "l2"
    if not walks and not (plain and graph is None):
        raise BadInput(
            "schedule, participation, graph and norm belong to method 'regression' or 'self-normalised'; choose one."
        )
    if walks and robust:
        raise BadInput("robust=True belongs to method 'staged'; leave it out.")
    panel = prepare(
        sites,
        tau,
        epsilon,
        shares=shares,
        bounds=bounds,
        scale=scale,
        resolution=resolution,
        missing=missing,
        limits=STAGES if walks or robust else PAIRS,
    )
    recursion = prepare_recursion(panel, method, schedule, participation, graph, norm) if walks else None
    return PlannedStudy(panel, recursion, level, method, robust)


def run_study(
    study: PlannedStudy, randomness: RandomSource | None = None, progress: Progress | None = None
) -> QuantileResult:
    """Run a planned study: from here on records answer."""
    panel = study.panel
    check_callers(randomness, progress)
    doors = open_sites(panel, randomness)
    solution: Solution
    warnings = panel.warnings
    if study.recursion is not None:
        solution, rounds = run_recursion(panel, study.recursion, study.method, doors, randomness, progress)
        reports = solution.reports
    else:
        staged = StagedStudy(panel.tau, panel.crowd, panel.bounds, panel.scale, study.robust)
        local, rounds = converse(staged_protocol(staged), doors, progress)
        solution, reports = staged_solution(local), sum(door.spent for door in doors)
        warnings += staged_warnings(local, study.robust)
    return QuantileResult(
        panel=panel,
        solution=solution,
        level=study.level,
        method=study.method,
        rounds=rounds,
        reports=reports,
        private=all(door.private for door in doors) and not panel.table.seeded,
        warnings=warnings,
    )


def open_sites(panel: QuantilePlan, randomness: RandomSource | None) -> list[Site]:
    """Open a site for each column of records, with dice of its own."""
    dice = SystemEntropy() if randomness is None else randomness
    return [
        Site(records, Study(float(tau), channel.epsilon, panel.resolution), own, channel)
        for records, tau, channel, own in zip(
            panel.table.records, panel.taus, panel.channels, dice.split(len(panel.names)), strict=True
        )
    ]


def staged_warnings(local: Local | Fitted, robust: bool) -> tuple[str, ...]:
    """Return what the stages noticed."""
    if isinstance(local, Fitted):
        return ("records are scarce: the interval takes the density to be smooth around the quantile, no edge nearby",)
    if local.dips and not robust:
        return ("the density seems to dip at the quantile, as between two modes: compare with robust=True",)
    return ()
