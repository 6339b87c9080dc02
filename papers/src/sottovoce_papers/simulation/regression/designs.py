"""Populations for quantile regression whose coefficients, Hessian and moments are known.

A person has covariates z in [-1, 1]^p and the response ``y = x'beta + (1 + tilt z_1)(e - Q(tau))`` with x = (1, z) and
Q the quantile function of e, so that x'beta is the tau-quantile of y given x, also where the spread depends on z_1.
"""

from dataclasses import dataclass

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.populations import Population, population
from sottovoce_papers.simulation.regression.cell import alternating
from sottovoce_papers.simulation.regression.covariates import Covariates, Generator, Margin


@dataclass(frozen=True, eq=False)
class Design:
    """Covariates, coefficients, errors, how their spread grows with the first covariate, and whether it is held out.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> z, y = paper(2).sample(dice(1).generator(), 5, tau=0.75)
    >>> z.shape, y.shape, round(float(paper(2).hessian(0.75)[0, 0]), 6)
    ((5, 2), (5,), 0.375)
    """

    name: str
    covariates: Covariates
    coefficients: tuple[float, ...]
    errors: Population
    tilt: float = 0.0
    held_out: bool = False

    def __post_init__(self) -> None:
        if len(self.coefficients) != self.p + 1 or abs(self.tilt) >= 1 or (self.tilt and not self.p):
            raise BadInput(f"design {self.name!r} needs p + 1 coefficients and a tilt below 1; change it.")

    @property
    def p(self) -> int:
        """Return how many covariates there are."""
        return self.covariates.p

    @property
    def beta(self) -> Floats:
        """Return the true coefficients, intercept first."""
        return np.array(self.coefficients)

    @property
    def second_moments(self) -> Floats:
        """Return E xx'."""
        return self.covariates.second_moments

    def sample(self, generator: Generator, n: int, tau: float) -> tuple[Floats, Floats]:
        """Draw n people whose tau-quantile is x'beta: covariates (n, p) and responses (n,)."""
        z = self.covariates.sample(generator, n)
        spread = 1.0 + self.tilt * z[:, 0] if self.tilt else 1.0
        noise = self.errors.sample(generator, n) - float(self.errors.quantile(tau))
        return z, self.beta[0] + z @ self.beta[1:] + spread * noise

    def beta_at(self, level: float, tau: float) -> Floats:
        """Return the true coefficients at another level than the one the sample is drawn for."""
        beta = self.beta
        apart = float(self.errors.quantile(level)) - float(self.errors.quantile(tau))
        beta[0] += apart
        if self.tilt:
            beta[1] += apart * self.tilt
        return beta

    def density(self, tau: float) -> float:
        """Return the density of an error at its tau-quantile."""
        return float(self.errors.density(self.errors.quantile(tau)))

    def hessian(self, tau: float) -> Floats:
        """Return E f(x'beta | x) xx', the slope of the expected score at the truth."""
        return self.density(tau) * self.covariates.moments(self.tilt)


def paper(p: int) -> Design:
    """Return the paper's design: independent uniform covariates and logistic errors of scale 1/2."""
    distribution = population("logistic").moved(0.0, 0.5)
    return Design(f"paper-{p}", Covariates((Margin("uniform"),) * p), tuple(alternating(p).tolist()), distribution)
