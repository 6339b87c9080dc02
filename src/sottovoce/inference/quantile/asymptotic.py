"""The asymptotic variance of the federated quantile under randomised response (Theorem 3.1).

A decoded report of site `k` has variance `(r_k^-2 - (2 F_k - 1)^2) / 4`, where `r_k` is the rate of truthful answers
and `F_k` the probability that a record of the site lies below the estimate; the slope of the mean score is `sum_k p_k
f_k`.
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.calling import public
from sottovoce.core.checks import LARGEST, moderate, number
from sottovoce.core.errors import BadInput
from sottovoce.inference.self_normalised.clock import checked

SMALLEST_RATE = 1e-100  # its square is still a number

Values = Sequence[float] | Floats


@public
def asymptotic_variance(
    tau_at_sites: Values, densities: Values, rates: Values, shares: Values, nu: float = 1.0
) -> float:
    """Return the variance of sqrt(t_T) (estimate - truth) in Theorem 3.1.

    Parameters
    ----------
    tau_at_sites
        Probability that a record of each site lies below the true quantile.
    densities
        Density of each site at the true quantile.
    rates
        Rate of truthful answers of each site, in (0, 1].
    shares
        Share of each site; they sum to one.
    nu
        The schedule's factor, at least 1: see `schedule_factor`.

    Returns
    -------
    The variance, for `t_T` records at every site.

    Examples
    --------
    >>> asymptotic_variance([0.5, 0.5], [0.5, 0.5], [1.0, 1.0], [0.5, 0.5])
    0.5
    """
    nu = number(nu, "nu")
    if not 1.0 <= nu < LARGEST:
        raise BadInput(f"nu is {nu}, but the schedule's factor is at least 1.")
    probability, density, rate, share = _sites(tau_at_sites, densities, rates, shares)
    slope = _slope(density, share)
    return float(nu * np.sum(share**2 * _report_variance(probability, rate)) / slope**2)


def standard_error(probabilities: Values, densities: Values, rates: Values, shares: Values, records: Values) -> float:
    """Return the standard error of the estimate when sites hold unequal numbers of records.

    ``probabilities`` are those that a record of each site lies below the estimate, ``densities`` those of each site
    there, ``rates`` the rates of truthful answers; ``records`` have answered.

    >>> round(standard_error([0.5, 0.5], [0.4, 0.4], [0.5, 0.9], [0.5, 0.5], [10_000, 10_000]), 5)
    0.0143
    """
    probability, density, rate, share, count = _sites(probabilities, densities, rates, shares, records)
    if (count <= 0.0).any():
        raise BadInput(f"site {int(np.argmax(count <= 0.0)) + 1} has no records, so it has no standard error.")
    return float(np.sqrt(np.sum(share**2 * _report_variance(probability, rate) / count)) / _slope(density, share))


def schedule_factor(elapsed: Values) -> float:
    """Return nu, the factor by which unequal rounds raise the variance: (1/T^2) (sum E) (sum 1/E).

    It is 1 for rounds of equal length, more otherwise; ``elapsed`` has the local steps of each round.

    >>> schedule_factor([4, 4, 4])
    1.0
    >>> round(schedule_factor([1] * 500 + [5] * 1900), 4)
    1.5278
    """
    steps = checked(elapsed)
    return float(np.mean(steps) * np.mean(1.0 / steps))


def _report_variance(probability: Floats, rate: Floats) -> Floats:
    variance: Floats = (rate**-2.0 - (2.0 * probability - 1.0) ** 2) / 4.0
    return variance


def _slope(density: Floats, share: Floats) -> float:
    slope = float(np.sum(share * density))
    if not moderate(slope):
        raise BadInput("no site with a share has a positive density at the quantile, so the variance is not finite.")
    return slope


def _sites(probabilities: Values, densities: Values, rates: Values, shares: Values, *more: Values) -> list[Floats]:
    """Return one array a column, all of one length, or refuse them."""
    names = ("probabilities", "densities", "rates", "shares", "records")
    columns: list[Floats] = []
    for name, values in zip(names, (probabilities, densities, rates, shares, *more), strict=False):
        try:
            column = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise BadInput(f"{name} must hold one number per site.") from None
        if column.ndim != 1 or column.size == 0 or not np.isfinite(column).all():
            raise BadInput(f"{name} must be a non-empty sequence with one finite number per site.")
        if columns and column.size != columns[0].size:
            raise BadInput(f"{name} has {column.size} sites, but probabilities has {columns[0].size}.")
        columns.append(column)
    probability, density, rate, share = columns[:4]
    if (probability < 0.0).any() or (probability > 1.0).any():
        raise BadInput("probabilities must lie between 0 and 1 at every site.")
    if (density < 0.0).any():
        raise BadInput("densities must not be negative at any site.")
    if (rate < SMALLEST_RATE).any() or (rate > 1.0).any():
        raise BadInput("rates of truthful answers must lie in (0, 1] at every site.")
    if (share < 0.0).any() or abs(float(share.sum()) - 1.0) > 1e-9:
        raise BadInput("shares must not be negative and must sum to one.")
    return columns
