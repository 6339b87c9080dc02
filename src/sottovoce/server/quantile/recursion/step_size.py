"""How far one report moves the point: the paper's slowly falling step, and a constant one for a known horizon.

`decay` is section 4.1 of Cai, Hu and Wu: a round moves by ``gamma_m = 20 rbar / (m^0.51 + 100)``, shared among its
iterations. Its 20 and 100 presume data of spread one, hence ``unit``. `constant` moves each iteration by
``kappa / (H sqrt(N))`` where ``H`` is the density at the quantile, learnt on the way: the curvature bias
``kappa sigma f' / (4 H^2)`` and the relative noise of the slope, ``rho^2 = 2 / (kappa sqrt(N))``, are then balanced.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

FIRST_REFRESH = 32


class StepSize(NamedTuple):
    """A step rule: ``scale / (m^power + offset) / slope``, shared by the iterations of a round or for each of them."""

    scale: float
    power: float
    offset: float
    slope: float
    shared: bool
    refreshes: bool


def decay(rates: npt.ArrayLike, unit: float = 1.0, constant: float = 20.0) -> StepSize:
    """Return the paper's rule for sites with some response rates.

    Examples
    --------
    >>> round(step_length(decay([0.25, 0.75]), 1, 2, 1.0), 4)
    0.0495
    """
    return StepSize(
        constant * float(np.mean(np.asarray(rates, dtype=np.float64))) * unit, 0.51, 100.0, 1.0, True, False
    )


def constant(iterations: int, slope: float, kappa: float = 0.5) -> StepSize:
    """Return the constant rule for a horizon and a first guess of the density at the quantile.

    Examples
    --------
    >>> step_length(constant(10_000, slope=0.5), 7, 5, 0.5)
    0.01
    """
    return StepSize(kappa / math.sqrt(iterations), 0.0, 0.0, slope, False, True)


@njit(cache=True)
def step_length(pace: StepSize, number: int, elapsed: int, slope: float) -> float:
    """Return the step of one iteration in round ``number`` (from 1), which takes ``elapsed`` iterations."""
    # math.pow is one function compiled and not; ** would differ in the last digit for integers of numpy and of Python
    fall = math.pow(number, pace.power) + pace.offset if pace.power > 0 else 1.0
    step = pace.scale / fall / slope
    return step / elapsed if pace.shared else step


@njit(cache=True)
def refresh_due(pace: StepSize, number: int) -> bool:
    """Tell whether the slope is learnt anew after round ``number``: at 32, 64, 128, ..."""
    return pace.refreshes and number >= FIRST_REFRESH and number & (number - 1) == 0
