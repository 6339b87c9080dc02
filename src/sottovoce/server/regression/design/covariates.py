"""What is publicly known of the covariates: their first and second moments, by default those of Unif[-1, 1]."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.covariates import UNIFORM


@dataclass(frozen=True, eq=False)
class Covariates:
    """Means (p,) and second moments E z z' (p, p) of covariates in [-1, 1]."""

    means: Floats
    cross: Floats

    @property
    def p(self) -> int:
        """Return the number of slopes."""
        return len(self.means)

    @property
    def second(self) -> Floats:
        """Return E z_j^2 for each slope."""
        return np.diagonal(self.cross).copy()

    @property
    def alike(self) -> bool:
        """Tell whether every slope has the same moments."""
        return self.p == 0 or bool(np.ptp(self.second) <= 1e-12 and np.ptp(self.means) <= 1e-12)

    @property
    def information(self) -> Floats:
        """Return E x x' (p + 1, p + 1) of x = (1, z): the Hessian for density 1."""
        whole = np.ones((self.p + 1, self.p + 1))
        whole[0, 1:] = whole[1:, 0] = self.means
        whole[1:, 1:] = self.cross
        return whole

    @property
    def costs(self) -> Floats:
        """Return what a unit of variance of each score coordinate adds to the trace of H^-1 Omega H^-1 (density 1)."""
        return np.asarray((np.linalg.inv(self.information) ** 2).sum(axis=0))


def covariates(
    p: int,
    second_moments: float | Sequence[float] | Floats | None = None,
    means: Sequence[float] | Floats | None = None,
) -> Covariates:
    """Return the public moments, checked.

    Parameters
    ----------
    p
        The number of slopes.
    second_moments
        E z_j^2 for each slope, one number for all, or the matrix E z z'; None: 1/3, that of the uniform distribution.
    means
        E z_j for each slope; None: 0. Without a matrix, different covariates count as independent.

    Examples
    --------
    >>> covariates(2).costs
    array([1., 9., 9.])
    """
    centre = np.zeros(p) if means is None else np.asarray(means, dtype=float)
    given = np.asarray(UNIFORM if second_moments is None else second_moments, dtype=float)
    if centre.shape != (p,) or given.shape not in ((), (p,), (p, p)):
        raise BadInput(f"the public moments are not those of {p} slopes; give one number, or one for each slope.")
    cross = given.copy() if given.ndim == 2 else np.outer(centre, centre)
    if given.ndim < 2:
        np.fill_diagonal(cross, given)
    second = np.diagonal(cross)
    if p and not (np.all(second <= 1 + 1e-12) and np.all(second - centre**2 > 1e-8) and np.isfinite(cross).all()):
        raise BadInput(
            "a second moment of a covariate in [-1, 1] lies above its squared mean and at most at 1; "
            "give E z^2 after scaling to [-1, 1], and leave constant columns out."
        )
    found = Covariates(centre, cross)
    if p and np.linalg.eigvalsh(found.information)[0] < 1e-10:
        raise BadInput("the public second moments are those of collinear columns; leave one of them out.")
    return found
