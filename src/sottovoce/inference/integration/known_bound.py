"""The interval under bounds on the sources' shifts: of fixed length, with the best weights (after Donoho, 1994).

If `|theta_k - theta_0| <= B_k` for every source, the interval covers at its level; ``bound_path`` finds the weights
that make it shortest, which depend on errors and bounds, never on estimates.

Sites measured by one private design share a small bias of one sign, up to about ``ALLOWANCE`` of each site's own
standard error, and pooling many sites does not average it out: the bound of such a source grows by that much. (Under
pooling that is `.25 sum(1/e_k) / sum(1/v_k)` in all.) A source with order statistics, or a summary, has no part in it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration.bound_path import crowd, shortest, walk

Array = NDArray[np.float64]

ALLOWANCE = 0.25
ENDLESS = 1e12  # errors of the target: such a bound gains less than a float can tell


class Combined(NamedTuple):
    """An interval under bounds; ``weights`` have the target's first, ``bias`` is the largest that the bounds allow."""

    estimate: float
    low: float
    high: float
    weights: tuple[float, ...]
    bias: float
    error: float
    df: float


def combine(
    target: SiteEstimate,
    sources: Sequence[SiteEstimate],
    bounds: Sequence[float],
    level: float,
    common: Sequence[bool] | bool = True,
) -> Combined:
    """Combine a target with sources whose shifts are bounded.

    Parameters
    ----------
    target
        The site whose quantile is wanted.
    sources
        Sites that may help.
    bounds
        Largest shift of each source, chosen before any estimate was seen; an infinite one leaves a source out.
    level
        Confidence level, strictly between 0 and 1.
    common
        Which sources were measured by the target's private design, and so share its bias.

    Returns
    -------
    Estimate, interval, weights, and the largest bias.

    Examples
    --------
    >>> target, sources = SiteEstimate(10.0, 1.0), [SiteEstimate(10.5, 0.2), SiteEstimate(10.1, 0.3)]
    >>> found = combine(target, sources, [0.5, 0.5], 0.95, common=False)
    >>> round(found.low, 2), round(found.high, 2), round(found.bias, 2)
    (9.6, 11.09, 0.46)
    >>> combine(target, sources, [math.inf, math.inf], 0.95).weights
    (1.0, 0.0, 0.0)
    """
    limits = allowed(target, sources, checked(bounds, len(sources))[None, :], common)
    sites = crowd(target, sources, level)
    place = float(shortest(sites, limits)[1][0])
    if math.isinf(place):
        low, high = target.interval(level)
        alone = (1.0, *[0.0] * len(sources))
        return Combined(target.estimate, low, high, alone, 0.0, target.error, target.df)
    found = walk(sites, limits, np.array([[place]]))
    weights = found.sources[0, 0]
    # From the target's estimate, so that digits are kept wherever the sites lie.
    centre = target.estimate + float(weights @ [site.estimate - target.estimate for site in sources])
    bias, error, half = (float(each[0, 0]) * target.error for each in (found.bias, found.error, found.half))
    doubt = float(found.doubt[0, 0])
    return Combined(
        estimate=centre,
        low=centre - half,
        high=centre + half,
        weights=(float(found.target[0, 0]), *weights.tolist()),
        bias=bias,
        error=error,
        df=1 / doubt if doubt > 0 else math.inf,
    )


def checked(bounds: Sequence[float], sources: int) -> Array:
    """Return bounds as an array, or say which of them is wrong."""
    limits = np.array([float(bound) for bound in bounds], dtype=np.float64)
    if len(limits) != sources:
        raise BadInput(f"there are {sources} sources but {len(limits)} bounds; give one bound a source.")
    for source, limit in enumerate(limits, 1):
        if not limit >= 0:
            raise BadInput(f"the bound of source {source} is {limit}; give the largest shift you allow, 0 or more.")
    return limits


def allowed(
    target: SiteEstimate, sources: Sequence[SiteEstimate], limits: Array, common: Sequence[bool] | bool
) -> Array:
    """Return bounds in standard errors of the target, with the allowance for a bias that sites share."""
    errors = np.array([site.error for site in sources])
    with np.errstate(over="ignore"):
        relative = (limits + ALLOWANCE * errors * np.asarray(common, dtype=np.float64)) / target.error
    return np.where(relative > ENDLESS, math.inf, relative)
