"""Covariates in [-1, 1] with any margins, joined by a Gaussian copula of any correlation."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import special

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

Generator = np.random.Generator

NODES = 1 << 14  # of a tabulated Beta distribution, which is what is drawn and what is integrated,
ENDS = 8.2  # out to where the normal distribution function reaches 1
POINTS = 1 << 19  # of the integration


@dataclass(frozen=True)
class Margin:
    """The distribution of one covariate: ``uniform``, ``beta`` (a, b) over [-1, 1], or ``sign`` (the chance of +1)."""

    kind: str
    shape: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if {"uniform": 0, "beta": 2, "sign": 1}.get(self.kind) != len(self.shape):
            raise BadInput(
                f"margin {self.kind!r} {self.shape} is not known; give uniform, beta (a, b) or sign (chance)."
            )

    def value(self, normal: Floats) -> Floats:
        """Return the covariate that standard normal numbers stand for: its quantile at their level."""
        if self.kind == "uniform":
            return np.asarray(2.0 * special.ndtr(normal) - 1.0)
        if self.kind == "sign":
            return np.where(normal > special.ndtri(1.0 - self.shape[0]), 1.0, -1.0)
        table = _table(*self.shape)
        place = np.clip((normal + ENDS) * ((NODES - 1) / (2 * ENDS)), 0.0, NODES - 1.000001)
        node = place.astype(np.int64)
        return np.asarray(table[node] + (place - node) * (table[node + 1] - table[node]))


@lru_cache(maxsize=32)
def _table(a: float, b: float) -> Floats:
    """Return the quantiles of a Beta distribution rescaled to [-1, 1] at the levels of evenly spaced normal numbers."""
    return np.asarray(2.0 * special.betaincinv(a, b, special.ndtr(np.linspace(-ENDS, ENDS, NODES))) - 1.0)


@dataclass(frozen=True)
class Covariates:
    """Margins, and the correlation of the normal variables behind them: one number for every pair, or a matrix.

    Examples
    --------
    >>> Covariates((Margin("uniform"), Margin("sign", (0.5,)))).second_moments.round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.333333, 0.0], [0.0, 0.0, 1.0]]
    """

    margins: tuple[Margin, ...]
    correlation: float | tuple[tuple[float, ...], ...] = 0.0

    def __post_init__(self) -> None:
        matrix = self._matrix
        if matrix.shape != (self.p, self.p) or np.linalg.eigvalsh(matrix).min(initial=1.0) <= 0:
            raise BadInput(f"the correlation must be that of {self.p} variables, and positive definite; change it.")

    @property
    def p(self) -> int:
        """Return how many covariates there are."""
        return len(self.margins)

    @property
    def _matrix(self) -> Floats:
        if isinstance(self.correlation, tuple):
            return np.array(self.correlation)
        return np.full((self.p, self.p), self.correlation) + (1.0 - self.correlation) * np.eye(self.p)

    @property
    def independent(self) -> bool:
        """Tell whether the covariates are independent."""
        return bool(np.all(self._matrix == np.eye(self.p)))

    def from_normal(self, normal: Floats) -> Floats:
        """Return the covariates that independent standard normal numbers, (n, p), stand for."""
        if not self.independent:
            normal = np.einsum("ik,jk->ij", normal, np.linalg.cholesky(self._matrix))
        columns = [margin.value(normal[:, j]) for j, margin in enumerate(self.margins)]
        return np.column_stack(columns) if columns else np.zeros((len(normal), 0))

    def sample(self, generator: Generator, n: int) -> Floats:
        """Draw n people's covariates, (n, p)."""
        if self.independent and all(margin.kind == "uniform" for margin in self.margins):
            return generator.uniform(-1.0, 1.0, (n, self.p))
        return self.from_normal(generator.standard_normal((n, self.p)))

    def moments(self, tilt: float = 0.0) -> Floats:
        """Return E xx' / (1 + tilt z_1) with x = (1, z), to 1e-5, or 2e-4 where a correlated covariate is a sign."""
        return _moments(self, tilt).copy()

    @cached_property
    def second_moments(self) -> Floats:
        """Return E xx' with x = (1, z)."""
        return self.moments()


@lru_cache(maxsize=64)
def _moments(covariates: Covariates, tilt: float) -> Floats:
    """Average over evenly spread points, or over each margin alone where they are independent."""
    if not covariates.independent:
        z = covariates.from_normal(special.ndtri(evenly_spread(POINTS, covariates.p)))
        x = np.column_stack([np.ones(len(z)), z])
        weights = 1.0 / (1.0 + tilt * z[:, 0]) / len(z)
        return np.asarray(x.T @ (x * weights[:, None]))
    levels = special.ndtri((np.arange(POINTS) + 0.5) / POINTS)
    columns = [margin.value(levels) for margin in covariates.margins]
    means, squares = np.array([1.0] + [c.mean() for c in columns]), [1.0] + [float((c * c).mean()) for c in columns]
    total = np.outer(means, means)
    np.fill_diagonal(total, squares)
    if tilt:
        weight = 1.0 / (1.0 + tilt * columns[0])
        tilted = [float((weight * columns[0] ** k).mean()) for k in range(3)]
        total *= tilted[0]
        total[1, :] = total[:, 1] = tilted[1] * means
        total[0, 1] = total[1, 0] = tilted[1]
        total[1, 1] = tilted[2]
    return total


def evenly_spread(n: int, p: int) -> Floats:
    """Return n (a power of two) points of the inside of [0, 1]^p: Sobol's, scrambled once and for all.

    Examples
    --------
    >>> abs(float((evenly_spread(1 << 13, 2) ** 2).mean()) - 1 / 3) < 1e-5
    True
    """
    from scipy.stats import qmc  # slow to import, and seldom needed

    return np.asarray(np.clip(qmc.Sobol(p, rng=2024).random(n), 2.0**-40, 1.0 - 2.0**-40))
