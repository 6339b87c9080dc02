"""One cell of the paper's simulations: level, covariates, budget, channel CQ_X(q, s) and its step (sections 2.2 and 4).

The printed step ``10 kappa_ref sqrt(s / d) / (i^.65 + 300)`` does not give Table 12; divided by ``2 r_max sqrt(d)``, a
bound of the gradient's length, it does. Both are here.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

TABLE_2 = {
    (0.5, 1): ((4, 1), (2, 1), (4, 1), (4, 2), (16, 2), (8, 2)),
    (0.5, 2): ((2, 1), (2, 1), (2, 1), (4, 3), (8, 3), (8, 3)),
    (0.5, 5): ((2, 1), (2, 1), (4, 1), (8, 1), (3, 5), (4, 6)),
    (0.5, 8): ((2, 1), (2, 1), (4, 1), (3, 2), (3, 5), (4, 9)),
    (0.75, 1): ((4, 1), (2, 2), (2, 2), (4, 2), (8, 2), (16, 2)),
    (0.75, 2): ((2, 1), (2, 2), (4, 1), (3, 3), (8, 3), (16, 3)),
    (0.75, 5): ((2, 1), (4, 1), (4, 1), (3, 2), (3, 6), (8, 6)),
    (0.75, 8): ((2, 1), (2, 1), (3, 1), (8, 1), (3, 5), (4, 9)),
}
"""The paper's (q, s) for (tau, p), at the budgets .5, 1, 2, 4, 8 and 16."""

BUDGETS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
REACH = 10.0  # coefficients are projected onto [-10, 10]


class KernelInput(NamedTuple):
    """What a kernel needs of a cell, with every public factor multiplied in.

    ``truth`` is the chance that the record answers truthfully, for a block without and with the face; ``face`` (2,),
    ``within`` (2, q) and ``alone`` (q,) are the decoded values. No grid (q = 0) sends the exact score of all
    coordinates.
    """

    tau: float
    q: int
    s: int
    scale: float
    truth: tuple[float, float]
    face: Floats
    within: Floats
    alone: Floats


@dataclass(frozen=True)
class Cell:
    """A level, p covariates, a budget and CQ_X(q, s); an infinite budget is the non-private recursion.

    Examples
    --------
    >>> round(Cell(0.5, 2, 2.0, 2, 1).scale, 2), round(Cell(0.5, 2, 2.0, 2, 1, normalised=False).scale, 2)
    (2.54, 4.4)
    """

    tau: float
    p: int
    epsilon: float
    q: int = 2
    s: int = 1
    normalised: bool = True
    start: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not (0 < self.tau < 1 and self.p >= 0 and self.epsilon > 0 and self.q >= 2 and 1 <= self.s <= self.p + 1):
            raise BadInput("a cell needs 0 < tau < 1, p >= 0, epsilon > 0, q >= 2 and 1 <= s <= p + 1; change it.")

    @property
    def private(self) -> bool:
        """Tell whether anything is kept private."""
        return math.isfinite(self.epsilon)

    @property
    def beta(self) -> Floats:
        """Return the true coefficients: (1, -2, 3, ...), normalised."""
        return alternating(self.p)

    @property
    def radius(self) -> float:
        """Return how far a slope's score can lie from zero."""
        return max(self.tau, 1 - self.tau)

    def kappa(self, face: bool) -> float:
        """Return the chance that the record answers truthfully in a block with or without the face (9)."""
        letters = float(2 * self.q ** (self.s - 1) if face else self.q**self.s)
        return (1 - math.exp(-self.epsilon)) / (1 + (letters - 1) * math.exp(-self.epsilon))

    @property
    def scale(self) -> float:
        """Return the constant of the step."""
        d = self.p + 1
        possible = [face for face in (False, True) if face or self.s <= self.p]
        reference = min(self.kappa(face) for face in possible) * math.sqrt(self.s / d) if self.private else 1.0
        return 10 * reference / (2 * self.radius * math.sqrt(d) if self.normalised else 1.0)

    def kernel_input(self) -> KernelInput:
        """Return what the kernel needs."""
        if not self.private:
            empty = np.zeros(0)
            return KernelInput(self.tau, 0, self.p + 1, self.scale, (1.0, 1.0), empty, np.zeros((2, 0)), empty)
        faces, middle = np.array([-self.tau, 1 - self.tau]), 0.5 - self.tau
        grid = np.linspace(-1.0, 1.0, self.q)
        weight = (self.p + 1) / self.s
        out, into = self.kappa(False), self.kappa(True)
        return KernelInput(
            self.tau,
            self.q,
            self.s,
            self.scale,
            (out, into),
            weight * (middle + (faces - middle) / into),
            weight / into * np.outer(faces, grid),
            weight * self.radius / out * grid,
        )


def alternating(p: int) -> Floats:
    """Return the paper's coefficients: (1, -2, 3, -4, ...), normalised.

    Examples
    --------
    >>> alternating(1).round(3).tolist()
    [0.447, -0.894]
    """
    raw = np.arange(1.0, p + 2) * (-1.0) ** np.arange(p + 1)
    return np.asarray(raw / np.linalg.norm(raw))


def printed(tau: float, p: int, epsilon: float, normalised: bool = True) -> Cell:
    """Return a cell of the paper's grid with the channel of Table 2.

    Parameters
    ----------
    tau, p, epsilon
        The cell; an infinite epsilon is the non-private recursion.
    normalised
        Whether to divide the printed step by ``2 r_max sqrt(d)``, as Table 12 needs.

    Examples
    --------
    >>> printed(0.75, 8, 2.0).q
    3
    """
    if math.isinf(epsilon):
        return Cell(tau, p, epsilon, normalised=normalised)
    if (tau, p) not in TABLE_2 or epsilon not in BUDGETS:
        raise BadInput(f"(tau, p, epsilon) = ({tau}, {p}, {epsilon}) is not on the paper's grid; give a Cell instead.")
    q, s = TABLE_2[tau, p][BUDGETS.index(epsilon)]
    return Cell(tau, p, epsilon, q, s, normalised)
