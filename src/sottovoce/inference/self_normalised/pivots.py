r"""Exact tails of `|B(1)| / N(bridge)` for rounds of equal length (Abadir and Paruolo 1997; Johnson and Killeen 1983).

With `g(r) = r` the bridge `b(r) = B(r) - r B(1)` is independent of `B(1)`, and each tail is a one-dimensional
formula.

* L2: `E exp(-s int b^2) = sqrt(a / sinh a)`, `a = sqrt(2 s)`, in Craig's form of the normal tail gives `(2/pi)
  int_0^inf sqrt(a / sinh a) / cosh x dx` with `a = v cosh x`.
* sup: Kolmogorov's series averaged over `B(1)` is `sum_k (-1)^k (1 + 4 k^2/v^2)^(-1/2)`; Poisson summation turns it
  into `2 v sum_{n>=0} K_0((n + 1/2) pi v)`.
* L1: `E exp(-s int |b|) = 2^(-1/6) sqrt(pi) s^(1/3) sum_j exp(-2^(-1/3) a_j s^(2/3)) / a_j` over the zeros `-a_j` of
  Ai', and the tail is `(1/(pi i)) int exp(s^2/2) E exp(-s v int |b|) ds/s` on a vertical line.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sottovoce.core.arrays import Floats

TERMS = 40  # of each series: more change nothing in double precision


def square_tail(v: float) -> float:
    """Return P(|B(1)| > v sqrt(int b^2))."""
    # The integrand is even and analytic with a peak of width 2/sqrt(v): the midpoint rule converges geometrically.
    step = min(0.25, 0.9 / math.sqrt(v))
    last = math.acosh(max(1500.0 / v, 1.0)) + 1.0
    x = np.arange(0.5 * step, min(last, 45.0), step)
    a = v * np.cosh(x)
    return float(np.sum(2.0 / math.pi * step * root_sinhc(a) / np.cosh(x)))


def root_sinhc(a: Floats) -> Floats:
    """Return sqrt(a / sinh a) without overflow."""
    roots: Floats = np.sqrt(2.0 * a / -np.expm1(-2.0 * a)) * np.exp(-0.5 * a)
    return roots


def sup_tail(v: float) -> float:
    """Return P(|B(1)| > v sup |b|)."""
    from scipy.special import binom, k0, zeta

    if v > 0.8:
        return float(2.0 * v * np.sum(k0((np.arange(TERMS) + 0.5) * math.pi * v)))
    # Below, (k^2 + v^2/4)^(-1/2) is expanded in v and summed over k as Dirichlet's eta at odd integers.
    powers = np.arange(1, TERMS)
    eta = np.append(math.log(2.0), (1.0 - 4.0**-powers) * zeta(2.0 * powers + 1.0))
    return float(1.0 - v * np.sum(binom(-0.5, np.arange(TERMS)) * (v / 2.0) ** (2 * np.arange(TERMS)) * eta))


def area_tail(v: float) -> float:
    """Return P(|B(1)| > v int |b|)."""
    if v < 1.0:
        # E erf(v A / sqrt 2) from the odd moments of A; terms fall like (v^2/12)^k.
        moments = area_moments()
        odd = range(1, 2 * TERMS, 2)
        terms = (
            (-1.0) ** (k // 2) * (v / math.sqrt(2.0)) ** k * moments[k] / (math.factorial(k // 2) * k) for k in odd
        )
        return 1.0 - 2.0 / math.sqrt(math.pi) * math.fsum(terms)
    if v > 1500.0:
        return 0.0
    height = saddle(v)
    step = 0.1
    line = (height + 1j * np.arange(0.0, 9.0, step)).astype(np.complex128)
    values = np.exp(line**2 / 2.0) * area_transform(v * line) / line
    values[0] /= 2.0
    return float(2.0 / math.pi * step * np.sum(values.real))


def saddle(v: float) -> float:
    """Return where the line of integration crosses the axis: near the saddle of exp(s^2/2 - 0.809 (v s)^(2/3))."""
    return max(0.63 * math.sqrt(v), 0.63)


@lru_cache(maxsize=1)
def area_moments() -> tuple[float, ...]:
    """Return the moments of int |b|, from the Riccati equation of -Ai/Ai' (Takacs 1993)."""
    d = [1.0]
    for k in range(1, 2 * TERMS + 1):
        d.append(((1.5 * k - 1.0) * d[k - 1] - math.fsum(d[i] * d[k - i] for i in range(1, k))) / 2.0)
    log_scale = (
        math.lgamma(k + 1.0) - math.lgamma((3.0 * k + 1.0) / 2.0) - k / 2.0 * math.log(2.0) for k in range(len(d))
    )
    return tuple(math.sqrt(math.pi) * d[k] * math.exp(scale) for k, scale in enumerate(log_scale))


@lru_cache(maxsize=1)
def airy_zeros() -> Floats:
    """Return the first 250 zeros of Ai', with the opposite sign."""
    from scipy.special import ai_zeros

    return -np.asarray(ai_zeros(250)[1], dtype=np.float64)


def area_transform(s: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return E exp(-s int |b|) for complex s in the right half plane."""
    near = np.abs(s) < 0.8
    zeros = airy_zeros()
    far_s = np.where(near, 1.0, s)[..., None]
    far = 2.0 ** (-1 / 6) * math.sqrt(math.pi) * far_s ** (1 / 3) * np.exp(-zeros * (far_s**2 / 2.0) ** (1 / 3)) / zeros
    near_s = np.where(near, s, 0.0)[..., None]
    orders = range(TERMS)
    taylor = np.array([(-1.0) ** k * area_moments()[k] / math.factorial(k) for k in orders])
    result: NDArray[np.complex128] = np.where(near, (taylor * near_s ** np.arange(TERMS)).sum(-1), far.sum(-1))
    return result


def normal(x: Floats, variance: float) -> Floats:
    """Return the centred normal density."""
    density: Floats = np.exp(-(x**2) / (2.0 * variance)) / math.sqrt(2.0 * math.pi * variance)
    return density
