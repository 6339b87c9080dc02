"""The target's estimate, moved towards its sources but never far: limited translation (after Efron and Morris, 1971).

Every source pulls in proportion to its precision, as in a pooled estimate, but counts as at most ``REACH`` of its own
standard errors away, so that one stray source among many is outvoted: `theta` solves
`theta = y_0 + v_0 sum_k clip(y_k - theta, +-REACH e_k) / v_k`. Then the estimate goes there, by at most `M e_0`.

**Guarantee.** Let `y_0` be normal and unbiased with known variance `v_0 = e_0^2`, and independent of the sources. Then
its mean squared error is at most `(1 + M^2) v_0`, whatever the sources are: shifted, dependent, with wrong errors.
*Proof.* Fix the sources. The right side above rises with `y_0` and falls with `theta`, so `theta` rises with `y_0`, by
at most as much; the pull `p = theta - y_0` is therefore non-increasing in `y_0`, limited or not. Hence
`E[(y_0 - theta_0) p] <= 0` (Chebyshev's association inequality), and
`E(y_0 + p - theta_0)^2 = v_0 + 2 E[(y_0 - theta_0) p] + E p^2 <= v_0 + M^2 v_0`. Normality is not used.
A target with a bias of `beta` standard errors adds `2 M beta v_0` at most.

One exact source without a shift multiplies the mean squared error by .66 if `M` = .25, and by 1.0625 at worst. The best
of all rules with this worst case reaches .61, by moving less for a source two errors away than for one at three.
"""

import math
from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.measured import SiteEstimate

# Huber's constant: a mean of sources that agree loses 5 % of its precision.
REACH = 1.345
# From a simulation with 1, 3 and 10 normal sources (docs/decisions/0028). Mean squared error over the target's, without
# a shift (median) and at worst: .75 and 1.04 with .2, .69 and 1.06 with .25, .64 and 1.09 with .3.
MOST = 0.25


def move(target: SiteEstimate, sources: Sequence[SiteEstimate], most: float = MOST) -> tuple[float, tuple[float, ...]]:
    """Return the move of the estimate, and the weights of all sites, the target first, whose sum it is.

    ``most`` is the longest move, in standard errors of the target: `M` of the guarantee.

    >>> by, weights = move(SiteEstimate(10.0, 1.0), [SiteEstimate(10.2, 0.5)])
    >>> round(by, 3), [round(weight, 3) for weight in weights]
    (0.16, [0.2, 0.8])
    """
    if not sources or most == 0:
        return 0.0, (1.0, *[0.0] * len(sources))
    # In the target's errors and from its estimate, so that digits are kept wherever the sites lie.
    apart = np.array([(site.estimate - target.estimate) / target.std_error for site in sources])
    errors = np.array([site.std_error / target.std_error for site in sources])
    precision, reach = errors**-2.0, REACH * errors
    by = _root(apart, precision, reach, most)
    # a source beyond its reach counts as much as one that stands there
    counted = precision * np.minimum(1.0, reach / np.maximum(np.abs(apart - by), 1e-300))
    if abs(by) >= most:  # less than all of it where the move was limited
        counted *= by / float(counted @ (apart - by))
    whole = 1 + float(counted.sum())
    return target.std_error * by, (1 / whole, *(counted / whole).tolist())


def _root(apart: Floats, precision: Floats, reach: Floats, most: float) -> float:
    """Solve for the place where all pulls balance, within the limit."""

    def excess(place: float) -> float:
        return place - float(precision @ np.clip(apart - place, -reach, reach))

    if excess(most) <= 0:
        return most
    if excess(-most) >= 0:
        return -most
    # The excess rises and is straight between kinks: find the piece that holds its zero.
    kinks = np.concatenate([apart - reach, apart + reach, [-most, most]])
    kinks = np.sort(kinks[np.abs(kinks) <= most])
    first, last = 0, len(kinks) - 1
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if excess(kinks[middle]) < 0 else (first, middle)
    centre = float(kinks[first] + kinks[last]) / 2
    slope = 1.0 + float(precision[np.abs(apart - centre) < reach].sum())
    place = centre - excess(centre) / slope
    return math.copysign(min(abs(place), most), place)
