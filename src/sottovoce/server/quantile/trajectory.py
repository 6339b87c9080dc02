"""What is kept of a run on the way: a few rows of estimate and interval, dense at the start, thin later."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.errors import Infeasible
from sottovoce.server.quantile.estimate import Estimate
from sottovoce.server.quantile.recursion.study import WalkStudy
from sottovoce.server.quantile.recursion.walk import WalkState, reports

ROWS = 200

Watch = Callable[[WalkState], None]
Estimating = Callable[[WalkStudy, WalkState, float], Estimate]


class Row(NamedTuple):
    """One line of a trajectory."""

    round: int
    reports: int
    average: float
    low: float
    high: float


class Trajectory:
    """Writes a row each time it is shown a state."""

    def __init__(self, study: WalkStudy, estimate: Estimating, level: float = 0.95) -> None:
        self._study, self._estimate, self._level = study, estimate, level
        self.rows: list[Row] = []

    def __call__(self, state: WalkState) -> None:
        """Add the row of a state; what cannot be estimated yet is left open."""
        point, low, high = math.nan, -math.inf, math.inf
        try:
            found = self._estimate(self._study, state, self._level)
            point, low, high = found.point, found.low, found.high
        except Infeasible:
            pass
        self.rows.append(Row(state.round, reports(self._study, state), point, low, high))


def checkpoints(rounds: int, rows: int = ROWS) -> npt.NDArray[np.int64]:
    """Return after which rounds to look: at most ``rows`` of them, the last round always.

    Examples
    --------
    >>> checkpoints(100, 5).tolist()
    [4, 16, 36, 64, 100]
    """
    return np.unique(np.ceil(rounds * (np.arange(1, rows + 1) / rows) ** 2 - 1e-9).astype(np.int64))
