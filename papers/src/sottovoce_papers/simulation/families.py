"""Standard distributions in closed form: distribution function, density, quantile function and sampler, shape first."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from sottovoce.core.arrays import Floats

Generator = np.random.Generator

Family = tuple[
    Callable[..., Floats],
    Callable[..., Floats],
    Callable[..., Floats],
    Callable[..., Floats],
]

ROOT_TAU = np.sqrt(2 * np.pi)


def inverted(cdf: Callable[[npt.ArrayLike], Floats], low: Floats, high: Floats, u: npt.ArrayLike) -> Floats:
    """Find where a distribution function crosses some levels, between given ends, by bisection to the last digit."""
    below, above = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    levels = np.asarray(u, dtype=np.float64)
    for _ in range(200):
        middle = below + (above - below) / 2
        under = np.asarray(cdf(middle)) < levels
        below, above = np.where(under, middle, below), np.where(under, above, middle)
        if np.all((middle == below) & (middle == above)):
            break
    return np.asarray(above)


def _positive(x: npt.ArrayLike) -> Floats:
    """Return the part of x above zero."""
    return np.maximum(np.asarray(x, dtype=np.float64), 0.0)


def _where_positive(x: npt.ArrayLike, density: Callable[[Floats], Floats]) -> Floats:
    """Return a density that lives above zero, without warnings below it."""
    at = np.asarray(x, dtype=np.float64)
    return np.where(at > 0, density(np.where(at > 0, at, 1.0)), 0.0)


def _t_density(df: float, x: npt.ArrayLike) -> Floats:
    """Return Student's density."""
    scale = np.exp(special.gammaln((df + 1) / 2) - special.gammaln(df / 2)) / np.sqrt(df * np.pi)
    return np.asarray(scale * (1 + np.asarray(x) ** 2 / df) ** (-(df + 1) / 2))


FAMILIES: dict[str, Family] = {
    "normal": (
        special.ndtr,
        lambda x: np.exp(-np.square(x) / 2) / ROOT_TAU,
        special.ndtri,
        lambda g, n: g.standard_normal(n),
    ),
    "cauchy": (
        lambda x: 0.5 + np.arctan(x) / np.pi,
        lambda x: 1 / (np.pi * (1 + np.square(x))),
        lambda u: np.tan(np.pi * (np.asarray(u) - 0.5)),
        lambda g, n: g.standard_cauchy(n),
    ),
    "uniform": (
        lambda x: np.clip(x, 0.0, 1.0),
        lambda x: np.where((np.asarray(x) >= 0) & (np.asarray(x) <= 1), 1.0, 0.0),
        lambda u: np.asarray(u, dtype=np.float64),
        lambda g, n: g.random(n),
    ),
    "lognormal": (
        lambda s, x: np.where(np.asarray(x) > 0, special.ndtr(np.log(np.where(np.asarray(x) > 0, x, 1.0)) / s), 0.0),
        lambda s, x: _where_positive(x, lambda y: np.exp(-((np.log(y) / s) ** 2) / 2) / (ROOT_TAU * s * y)),
        lambda s, u: np.exp(s * special.ndtri(u)),
        lambda s, g, n: np.exp(s * g.standard_normal(n)),
    ),
    "exponential": (
        lambda x: -np.expm1(-_positive(x)),
        lambda x: np.where(np.asarray(x) >= 0, np.exp(-_positive(x)), 0.0),
        lambda u: -np.log1p(-np.asarray(u)),
        lambda g, n: g.standard_exponential(n),
    ),
    "gamma": (
        lambda a, x: special.gammainc(a, _positive(x)),
        lambda a, x: _where_positive(x, lambda y: np.exp((a - 1) * np.log(y) - y - special.gammaln(a))),
        lambda a, u: special.gammaincinv(a, u),
        lambda a, g, n: g.standard_gamma(a, n),
    ),
    "student": (
        lambda df, x: special.stdtr(df, x),
        _t_density,
        lambda df, u: special.stdtrit(df, u),
        lambda df, g, n: g.standard_t(df, n),
    ),
    "laplace": (
        lambda x: np.where(np.asarray(x) < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2),
        lambda x: np.exp(-np.abs(x)) / 2,
        lambda u: np.sign(np.asarray(u) - 0.5) * -np.log(2 * np.minimum(u, 1 - np.asarray(u))),
        lambda g, n: g.laplace(size=n),
    ),
    "weibull": (
        lambda a, x: -np.expm1(-(_positive(x) ** a)),
        lambda a, x: _where_positive(x, lambda y: a * y ** (a - 1) * np.exp(-(y**a))),
        lambda a, u: (-np.log1p(-np.asarray(u))) ** (1 / a),
        lambda a, g, n: g.weibull(a, n),
    ),
    "gumbel": (
        lambda x: np.exp(-np.exp(-np.maximum(x, -700.0))),
        lambda x: np.exp(-np.maximum(x, -700.0) - np.exp(-np.maximum(x, -700.0))),
        lambda u: -np.log(-np.log(u)),
        lambda g, n: g.gumbel(size=n),
    ),
    "logistic": (
        special.expit,
        lambda x: special.expit(x) * special.expit(-np.asarray(x)),
        special.logit,
        lambda g, n: g.logistic(size=n),
    ),
    "lomax": (
        lambda a, x: 1 - (1 + _positive(x)) ** -a,
        lambda a, x: np.where(np.asarray(x) >= 0, a * (1 + _positive(x)) ** (-a - 1), 0.0),
        lambda a, u: (1 - np.asarray(u)) ** (-1 / a) - 1,
        lambda a, g, n: g.pareto(a, n),
    ),
    "rayleigh": (
        lambda x: -np.expm1(-(_positive(x) ** 2) / 2),
        lambda x: _positive(x) * np.exp(-(_positive(x) ** 2) / 2),
        lambda u: np.sqrt(-2 * np.log1p(-np.asarray(u))),
        lambda g, n: g.rayleigh(size=n),
    ),
}
"""Families by name; shapes: lognormal (sd of the log), gamma, student (df), weibull, lomax (tail index)."""
