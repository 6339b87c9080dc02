"""One quantile over many sites, each record answering once through randomised response."""

from collections.abc import Callable, Sequence
from typing import Any

from sottovoce.client.randomness import Dice, SystemDice
from sottovoce.client.site import Site
from sottovoce.engine.conversation import converse
from sottovoce.errors import BadInput
from sottovoce.estimators.staged import Local, StagedStudy, talk
from sottovoce.facade.panel import Panel, confidence, prepare
from sottovoce.facade.result import QuantileResult
from sottovoce.facade.solutions import Solution, StagedSolution
from sottovoce.facade.walking import prepare_recursion, run_recursion
from sottovoce.protocol.messages import Study

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
    randomness: Dice | None = None,
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
        The public step to which the records are rounded; they are dithered by it and the interval covers the atom.
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
    if method not in METHODS:
        raise BadInput(f"method {method!r} is unknown; choose one of {', '.join(map(repr, METHODS))}.")
    confidence(level)
    walks = method != "staged"
    if not walks and (participation, schedule, graph, norm) != (1.0, "every:1", None, "l2"):
        raise BadInput(
            "schedule, participation, graph and norm belong to method 'regression' or 'self-normalised'; choose one."
        )
    if walks and robust:
        raise BadInput("robust=True belongs to method 'staged'; leave it out.")
    panel = prepare(
        sites, tau, epsilon, shares=shares, bounds=bounds, scale=scale, resolution=resolution, missing=missing
    )
    recursion = prepare_recursion(panel, method, schedule, participation, graph, norm) if walks else None
    doors = open_sites(panel, randomness)
    solution: Solution
    warnings = panel.warnings
    if recursion is not None:
        solution, rounds = run_recursion(panel, recursion, method, doors, randomness, progress)
    else:
        study = StagedStudy(panel.tau, panel.crowd, panel.bounds, panel.scale, robust)
        local, rounds = converse(talk(study), doors, progress)
        solution, warnings = StagedSolution(local), warnings + staged_warnings(local, robust)
    return QuantileResult(
        panel=panel,
        solution=solution,
        level=level,
        method=method,
        rounds=rounds,
        reports=sum(door.spent for door in doors),
        private=all(door.private for door in doors),
        warnings=warnings,
    )


def open_sites(panel: Panel, randomness: Dice | None) -> list[Site]:
    """Open a site for each column of records, with dice of its own."""
    dice = SystemDice() if randomness is None else randomness
    return [
        Site(records, Study(float(tau), channel.epsilon, panel.resolution), own, channel)
        for records, tau, channel, own in zip(
            panel.table.records, panel.taus, panel.channels, dice.split(len(panel.names)), strict=True
        )
    ]


def staged_warnings(local: Local, robust: bool) -> tuple[str, ...]:
    """Return what the stages noticed."""
    if local.bent and not robust:
        return ("the density seems to dip at the quantile, as between two modes: compare with robust=True",)
    return ()
