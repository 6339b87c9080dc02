"""One quantile over many sites, each record answering once through randomised response."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from sottovoce.client.randomness import Dice, SystemDice
from sottovoce.client.site import Site
from sottovoce.engine import fused
from sottovoce.engine.conversation import converse
from sottovoce.engine.participation import Coin
from sottovoce.engine.source import Source
from sottovoce.errors import BadInput
from sottovoce.estimators.asking import Ask, Counts, Talker
from sottovoce.estimators.pace import constant, decay
from sottovoce.estimators.schedule import elapsed
from sottovoce.estimators.search import Found, find
from sottovoce.estimators.sgd import SgdState
from sottovoce.estimators.staged import Local, StagedStudy, talk
from sottovoce.estimators.study import SgdStudy, horizon
from sottovoce.facade.panel import Panel, confidence, number, prepare
from sottovoce.facade.result import QuantileResult
from sottovoce.facade.solutions import RegressionSolution, SelfNormalisedSolution, Solution, StagedSolution
from sottovoce.protocol.messages import Study

METHODS = ("staged", "regression", "self-normalised")
QUARTILE = 0.6745  # of the normal law: the paper's steps presume its spread of one
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
    part = number(participation, "participation")
    if not 0 < part <= 1:
        raise BadInput(f"participation must lie in (0, 1], not {participation!r}; give the part of sites that answers.")
    if method == "staged" and (part < 1 or not (isinstance(schedule, str) and schedule == "every:1")):
        raise BadInput("schedule and participation belong to method 'regression' or 'self-normalised'; choose one.")
    if method != "staged" and robust:
        raise BadInput("robust=True belongs to method 'staged'; leave it out.")
    panel = prepare(
        sites, tau, epsilon, shares=shares, bounds=bounds, scale=scale, resolution=resolution, missing=missing
    )
    if method != "staged":
        elapsed(
            schedule, int(panel.crowd.sizes.max())
        )  # a schedule that cannot be read is refused before anything is spent
    return run_panel(panel, level, method, schedule, part, robust, randomness, progress)


def run_panel(
    panel: Panel,
    level: float,
    method: str,
    schedule: str | Sequence[int],
    participation: float,
    robust: bool,
    randomness: Dice | None,
    progress: Progress | None,
) -> QuantileResult:
    """Run a checked study."""
    doors = open_sites(panel, randomness)
    solution: Solution
    warnings = panel.warnings
    if method == "staged":
        study = StagedStudy(panel.tau, panel.crowd, panel.bounds, panel.scale, robust)
        local, rounds = converse(talk(study), doors, progress)
        solution = StagedSolution(local)
        warnings += staged_warnings(local, robust)
    else:
        found, rounds = converse(_search(panel), doors, progress)
        walk = _walk_study(
            panel, found, method, schedule, participation, rounds, [door.size - door.spent for door in doors]
        )
        states: list[SgdState] = []
        sources = [Source(*door.hand_over(rounds + 1)) for door in doors]
        state = fused.run(walk, sources, Coin(walk, randomness), states.append)
        if progress is not None:
            progress(sum(door.size for door in doors))
        solution = (RegressionSolution if method == "regression" else SelfNormalisedSolution)(
            walk, state, tuple(states)
        )
        rounds += len(walk.elapsed)
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


def _search(panel: Panel) -> Generator[Ask, Counts, Found]:
    """Find a start and a unit for the recursion."""
    return (yield from find(Talker(panel.crowd), panel.bounds, panel.scale, care=1.0, rough=False))


def _walk_study(
    panel: Panel,
    found: Found,
    method: str,
    schedule: str | Sequence[int],
    participation: float,
    rounds: int,
    left: list[int],
) -> SgdStudy:
    """Plan the recursion on the records that the search left."""
    iterations = horizon(max(left), len(left), participation)
    slope = 0.25 / found.scale
    pace = (
        constant(iterations, slope) if method == "regression" else decay(panel.crowd.rates, unit=found.scale / QUARTILE)
    )
    return SgdStudy(
        taus=panel.taus,
        shares=panel.crowd.shares,
        channels=panel.channels,
        sizes=np.array(left, dtype=np.int64),
        elapsed=elapsed(schedule, iterations),
        start=found.centre,
        pace=pace,
        participation=participation,
        first=rounds,
    )
