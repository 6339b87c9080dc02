"""Running the paper's recursion on a panel: a private search for start and unit, then the compiled rounds."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.api.quantile.panel import QuantilePlan
from sottovoce.client.quantile.site import Site
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import number
from sottovoce.core.errors import BadInput, Infeasible, SearchFailed
from sottovoce.core.random_source import RandomSource
from sottovoce.inference.self_normalised.memory import CHECKPOINTS
from sottovoce.local.quantile import compiled_walk as fused
from sottovoce.local.quantile.conversation import converse
from sottovoce.local.quantile.participation import Coin
from sottovoce.local.quantile.source import Source
from sottovoce.local.quantile.trajectory import ROWS
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.graph import metropolis, ring
from sottovoce.server.quantile.recursion.initialisation import Initialisation, find_initialisation
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.server.quantile.recursion.step_size import StepSize, constant, decay, step_length
from sottovoce.server.quantile.recursion.study import WalkStudy, horizon
from sottovoce.server.quantile.solutions import Footprints, RegressionSolution, SelfNormalisedSolution

FEWEST = 5  # rounds without which neither interval means anything
NORMS = ("l2", "sup", "l1")


@dataclass(frozen=True, eq=False)
class Recursion:
    """How the recursion runs, checked: schedule, participation, mixing matrix, and norm of the interval."""

    schedule: str | list[int]
    participation: float
    mixing: Floats | None
    norm: str


def prepare_recursion(
    panel: QuantilePlan, method: str, schedule: Any, participation: Any, graph: Any, norm: str
) -> Recursion:
    """Check what belongs to the recursion, before anything is spent."""
    part = number(participation, "participation")
    if not 0 < part <= 1:
        raise BadInput(f"participation must lie in (0, 1], not {participation!r}; give the part of sites that answers.")
    if norm not in NORMS or (norm != "l2" and method != "self-normalised"):
        raise BadInput(
            f"norm {norm!r} does not go with method {method!r}; "
            "choose 'l2', or 'sup' or 'l1' with method 'self-normalised'."
        )
    rounds = elapsed(schedule, int(panel.crowd.sizes.max()))
    if len(rounds) < FEWEST:
        raise BadInput(f"the schedule has {len(rounds)} rounds; give at least {FEWEST}, or more records.")
    mixing = None
    if graph is not None:
        if part < 1:
            raise BadInput("participation below 1 needs the server's average; leave graph out.")
        if isinstance(graph, str) and graph != "ring":
            raise BadInput(f"graph must be 'ring' or a matrix of who talks to whom, not {graph!r}; choose one.")
        mixing = metropolis(ring(len(panel.names)) if isinstance(graph, str) else graph, panel.crowd.shares)
    return Recursion(schedule if isinstance(schedule, str) else rounds.tolist(), part, mixing, norm)


def run_recursion(
    panel: QuantilePlan,
    recursion: Recursion,
    method: str,
    doors: list[Site],
    randomness: RandomSource | None,
    progress: Callable[[int], None] | None,
) -> tuple[RegressionSolution | SelfNormalisedSolution, int]:
    """Search, then walk over all records that are left; return the solution and the number of rounds."""
    initialisation, searched = converse(
        find_initialisation(panel.crowd, panel.tau, panel.bounds, panel.scale), doors, progress
    )
    before = sum(door.spent for door in doors)
    study = _study(panel, initialisation, recursion, method, searched, [door.size - door.spent for door in doors])
    footprints = Footprints()
    sources = [Source(*door.hand_over(searched + 1)) for door in doors]
    rows = ROWS if recursion.norm == "l2" else CHECKPOINTS
    state = fused.run(study, sources, Coin(study, randomness), footprints, rows=rows)
    if progress is not None:
        progress(sgd.reports(study, state))
    apart = max(1, len(footprints.states) // ROWS)
    kept = tuple(footprints.states[(len(footprints.states) - 1) % apart :: apart])  # the last is always kept
    path = None if recursion.norm == "l2" else footprints.path
    solution = (
        RegressionSolution(study, state, kept, before)
        if method == "regression"
        else SelfNormalisedSolution(
            study, state, kept, before, recursion.norm, path, _relaxation(study, initialisation)
        )
    )
    if not _arrived(solution):
        raise SearchFailed(
            f"the recursion for the {panel.tau:g} quantile ran away; give public bounds= or scale=, "
            "or a resolution= if many records are tied."
        )
    return solution, searched + len(study.elapsed)


def _arrived(solution: RegressionSolution | SelfNormalisedSolution) -> bool:
    """Tell whether a walk ended at a number, and a line through its reports was seen to rise."""
    try:
        return math.isfinite(solution.point) and solution.state.slope > 0
    except Infeasible:
        return False


def _constant(panel: QuantilePlan, left: list[int]) -> float:
    """Return the constant of the paper's step: 20 for its ten equal sites, less where the merged noise is larger."""
    ratios = np.array(left) / max(left)
    return 2 / float(np.sum(panel.crowd.shares**2 / ratios))


def _relaxation(study: WalkStudy, initialisation: Initialisation) -> float:
    """Return after which part of the run the point has forgotten where it was: 1 / (step x density), in rounds."""
    rounds, last = len(study.elapsed), int(study.elapsed[-1])
    step = step_length(study.pace, rounds, last, study.pace.slope) * last
    return 1 / (step * initialisation.density * rounds)


def _study(
    panel: QuantilePlan,
    initialisation: Initialisation,
    recursion: Recursion,
    method: str,
    searched: int,
    left: list[int],
) -> WalkStudy:
    """Plan the recursion on the records that the search left."""
    iterations = horizon(max(left), len(left), recursion.participation)
    schedule = recursion.schedule
    if not isinstance(schedule, str):  # what the search has spent is missing at the end
        schedule = schedule[: max(1, int(np.searchsorted(np.cumsum(schedule), iterations, side="right")))]
    pace: StepSize = (
        constant(iterations, slope=initialisation.density)
        if method == "regression"
        else decay(panel.crowd.rates, unit=initialisation.unit, constant=_constant(panel, left))
    )
    return WalkStudy(
        taus=panel.taus,
        shares=panel.crowd.shares,
        channels=panel.channels,
        sizes=np.array(left, dtype=np.int64),
        elapsed=elapsed(schedule, iterations),
        start=initialisation.point,
        pace=pace,
        mixing=recursion.mixing,
        participation=recursion.participation,
        first=searched,
    )
