"""How the interval depends on the bound that is assumed on the sources' shifts: the price of each assumption.

With `|theta_k - theta_0| <= B s_k` the interval of ``known_bound`` is the pooled one at `B` = 0 (or a shorter one, with
more degrees of freedom) and grows to the target's own, but the gain never ends: for one bound and `B >= 2 e_0` the
length is about `1 - 1 / (2 (1 + ratio + B^2 / v_0))` of the target's, so a gain `g` is lost near
`e_0 sqrt(1 / (2 g) - 1 - ratio)`, 5 % at about three errors of the target.
A bound is refuted if a Bonferroni test of the same level contradicts it for some source:
`|y_k - y_0| > B s_k + t sqrt(v_0 + v_k)`, and further off where private sites share a bias.

Each interval covers if its bound was chosen before any estimate was seen. Whoever reads a bound off the curve, or off
``refuted``, has no confidence left.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate, t_value, welch
from sottovoce.inference.common.roots import root
from sottovoce.inference.integration.known_bound import (
    ALLOWANCE,
    Combined,
    allowed,
    combine,
    precisions_of,
    shortest,
    walk,
)

BEFOREHAND = "Each interval holds for a bound chosen before the data were seen; a bound read off this curve voids it."

# Gains below the first are not worth an assumption, by our judgement; the default curve ends below the second.
WORTH, VISIBLE = 0.05, 0.01
POINTS = 61


@dataclass(frozen=True, eq=False)
class SensitivityCurve:
    """Intervals by assumed bound; below ``refuted`` the data contradict it, from ``lost`` on it gains under 5 %."""

    bound: Floats
    estimate: Floats
    low: Floats
    high: Floats
    length_ratio: Floats
    refuted: float
    lost: float
    target: SiteEstimate
    sources: tuple[SiteEstimate, ...]
    scales: tuple[float, ...]
    level: float
    common: tuple[bool, ...]

    def at(self, bound: float) -> Combined:
        """Return the interval under one bound, with its weights."""
        limits = _limits(_checked("bound", [bound]), np.array(self.scales))[0].tolist()
        return combine(self.target, self.sources, limits, self.level, self.common)


def curve(
    target: SiteEstimate,
    sources: Sequence[SiteEstimate],
    level: float,
    bounds: ArrayLike | None = None,
    scales: Sequence[float] | None = None,
    common: Sequence[bool] | bool = True,
) -> SensitivityCurve:
    """Compute the interval for each bound.

    By default the bounds `B` go from 0 to where less than 1 % is gained, `refuted` and `lost` among them. ``scales``
    are the `s_k` by which a source may shift more or less than others, one for all by default; ``common`` tells which
    sources were measured by the target's private design, and so share its bias.

    >>> found = curve(SiteEstimate(10.0, 1.0), [SiteEstimate(14.0, 0.3)], 0.95, common=False)
    >>> round(found.refuted, 2), round(found.lost, 2)
    (1.95, 3.06)
    >>> [round(found.at(bound).high - found.at(bound).low, 2) for bound in (0.0, 1.0, 1000.0)]
    [1.13, 2.6, 3.92]
    """
    factors = np.ones(len(sources)) if scales is None else _checked("scale", scales, finite=True)
    if len(factors) != len(sources):
        raise BadInput(f"there are {len(sources)} sources but {len(factors)} scales; give one scale per source.")
    shared = tuple(bool(each) for each in np.broadcast_to(np.asarray(common), len(sources)))
    sites = precisions_of(target, sources, level)
    whole = t_value(level, target.df)

    def relative(values: Floats) -> Floats:
        return allowed(target, sources, _limits(values, factors), shared)

    def gain(bound: float) -> float:
        return 1.0 - float(shortest(sites, relative(np.array([bound])))[0][0]) / whole

    # The unit in which bounds matter: the target's error, for the source that may shift most.
    unit = target.std_error / (float(factors.max(initial=0.0)) or 1.0)
    lost = _falls_below(gain, WORTH, unit, 1e-8)
    refuted = _refuted(target, sources, factors, level, shared)
    values = _checked("bound", bounds) if bounds is not None else _grid(gain, unit, lost, refuted)
    halves, places = shortest(sites, relative(values))
    found = walk(sites, relative(values), np.where(np.isinf(places), 0.0, places)[:, None]).sources[:, 0]
    moves = found @ np.array([site.estimate - target.estimate for site in sources])
    centres = target.estimate + np.where(np.isinf(places), 0.0, moves)
    reach = halves * target.std_error
    return SensitivityCurve(
        bound=values,
        estimate=centres,
        low=centres - reach,
        high=centres + reach,
        length_ratio=halves / whole,
        refuted=refuted,
        lost=lost,
        target=target,
        sources=tuple(sources),
        scales=tuple(factors.tolist()),
        level=level,
        common=shared,
    )


def _limits(bounds: Floats, scales: Floats) -> Floats:
    """Return the bound of each source, one assumed bound per row; a source of scale 0 has none to fear."""
    with np.errstate(invalid="ignore"):
        return np.where(scales == 0, 0.0, bounds[:, None] * scales)


def _falls_below(gain: Callable[[float], float], worth: float, unit: float, accuracy: float) -> float:
    """Return the bound at which the gain falls below a worth; infinity where it never does."""
    if gain(0.0) <= worth:
        return 0.0
    near, far = 0.0, 4.0 * unit
    while gain(far) > worth:
        near, far = far, 4.0 * far
        if far > 1e12 * unit:
            return math.inf
    return root(lambda bound: gain(bound) - worth, (near, far), accuracy * far)


def _grid(gain: Callable[[float], float], unit: float, lost: float, refuted: float) -> Floats:
    end = _falls_below(gain, VISIBLE, unit, 1e-3)
    end = end if math.isfinite(end) and end > 0 else 8.0 * unit
    marks = [mark for mark in (lost, refuted) if math.isfinite(mark)]
    return np.unique(np.concatenate([np.linspace(0.0, end, POINTS), marks]))


def least_bounds(
    target: SiteEstimate, sources: Sequence[SiteEstimate], level: float, common: Sequence[bool]
) -> list[float]:
    """Return for each source the smallest bound that it does not contradict, all of them together at the level."""
    found = []
    for site, shares in zip(sources, common, strict=True):
        chance = t_value(1 - (1 - level) / len(sources), welch([1.0, 1.0], [target, site]))
        margin = chance * math.hypot(target.std_error, site.std_error) + ALLOWANCE * site.std_error * shares
        found.append(max(0.0, abs(site.estimate - target.estimate) - margin))
    return found


def _refuted(
    target: SiteEstimate, sources: Sequence[SiteEstimate], scales: Floats, level: float, common: Sequence[bool]
) -> float:
    """Return the largest bound that some source contradicts."""
    worst = 0.0
    for least, scale in zip(least_bounds(target, sources, level, common), scales, strict=True):
        if least > 0:
            worst = max(worst, least / scale if scale > 0 else math.inf)
    return float(worst)


def _checked(what: str, values: ArrayLike, finite: bool = False) -> Floats:
    found = np.atleast_1d(np.asarray(values, dtype=np.float64))
    for value in found:
        if not (value >= 0 and (math.isfinite(value) or not finite)):
            raise BadInput(f"a {what} is {value}; give a {'finite ' if finite else ''}number of 0 or more.")
    return found
