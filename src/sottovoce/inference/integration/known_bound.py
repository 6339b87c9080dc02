"""The interval under bounds on the sources' shifts: of fixed length, with the best weights (after Donoho 1994).

doi:10.1214/aos/1176325367. If `|theta_k - theta_0| <= B_k` for every source, the interval covers at its level. The
weights `w` leave a bias of at most `b = sum w_k B_k` and an error `e`, and half the interval is `e cv(b/e) t_df/z`,
where `cv(t)` is the quantile of `|N(t, 1)|`. Among weights of one bias the least error has `w_0` like `1/v_0` and `w_k`
like `(1 - t B_k)_+ / v_k`, for some `t >= 0` (Lagrange): a path from pooling at `t` = 0 to the target alone, which is
always tried, so that the interval is never longer than the target's own. Half the interval is a convex function of bias
and error, so it has one valley along the path, but for the slow change of the degrees of freedom (Welch's and
Satterthwaite's). Everything depends on errors and bounds, never on estimates.

A place is the logarithm of what has been walked over what is left to walk, `t B / (1 - t B)` for the least bound `B`: a
precise source counts until hardly anything is left, a far one leaves when hardly anything has been walked. Everything
is in standard errors of the target.

Weights that follow estimated errors favour whoever looks precise by chance, so that many sites together seem more
precise than they are (Graybill and Deal 1959, doi:10.2307/2527652), by about `1 + 4/df` in the variance: ``caution_of``
lengthens each source's variance by as much.

Sites measured by one private design share a small bias of one sign, up to about ``ALLOWANCE`` of each site's own
standard error, and pooling many sites does not average it out: the bound of such a source grows by that much. (Under
pooling that is `.25 sum(1/e_k) / sum(1/v_k)` in all.) A source with order statistics, or a summary, has no part in it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr, stdtrit

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate, t_value
from sottovoce.inference.common.normal import two_sided

# From simulations of private sites (docs/decisions/0030): sites of one design had the same bias, up to .28 of their
# standard errors. With ten scarce sources a larger one, twice this for 10 degrees of freedom, covered .925 to .93
# instead of .92 to .93, at 8 % more length.
ALLOWANCE = 0.25
ENDLESS = 1e12  # errors of the target: such a bound gains less than a float can tell
# Places looked at first, by distance and by weight; then places in each zoom, zooms, and a gain that ends them.
COARSE, SHARES, FINE, ZOOMS, FLAT = 48, 24, 9, 24, 1e-9
# The place of pooling; how little walked a source does not notice, and how little left is as good as nothing.
START, EARLY, LATE = -800.0, 1e-3, 1e-6
# A bound so small is none; such a source leaves this much later than the next.
NOTHING, LAST = 1e-30, 1e-5


class Combined(NamedTuple):
    """An interval under bounds; ``weights`` have the target's first, ``bias`` is the largest that the bounds allow."""

    estimate: float
    low: float
    high: float
    weights: tuple[float, ...]
    bias: float
    std_error: float
    df: float


def combine(
    target: SiteEstimate,
    sources: Sequence[SiteEstimate],
    bounds: Sequence[float],
    level: float,
    common: Sequence[bool] | bool = True,
) -> Combined:
    """Combine a target with sources whose shifts are bounded.

    ``bounds`` are the largest shifts, chosen before any estimate was seen; an infinite one leaves a source out.
    ``common`` tells which sources were measured by the target's private design, and so share its bias.

    >>> target, sources = SiteEstimate(10.0, 1.0), [SiteEstimate(10.5, 0.2), SiteEstimate(10.1, 0.3)]
    >>> found = combine(target, sources, [0.5, 0.5], 0.95, common=False)
    >>> round(found.low, 2), round(found.high, 2), round(found.bias, 2)
    (9.6, 11.09, 0.46)
    >>> combine(target, sources, [math.inf, math.inf], 0.95).weights
    (1.0, 0.0, 0.0)
    """
    limits = allowed(target, sources, checked(bounds, len(sources))[None, :], common)
    sites = precisions_of(target, sources, level)
    place = float(shortest(sites, limits)[1][0])
    if math.isinf(place):
        low, high = target.interval(level)
        alone = (1.0, *[0.0] * len(sources))
        return Combined(target.estimate, low, high, alone, 0.0, target.std_error, target.df)
    found = walk(sites, limits, np.array([[place]]))
    weights = found.sources[0, 0]
    # From the target's estimate, so that digits are kept wherever the sites lie.
    centre = target.estimate + float(weights @ [site.estimate - target.estimate for site in sources])
    bias, error, half = (float(each[0, 0]) * target.std_error for each in (found.bias, found.std_error, found.half))
    inverse_df = float(found.inverse_df[0, 0])
    return Combined(
        estimate=centre,
        low=centre - half,
        high=centre + half,
        weights=(float(found.target[0, 0]), *weights.tolist()),
        bias=bias,
        std_error=error,
        df=1 / inverse_df if inverse_df > 0 else math.inf,
    )


def checked(bounds: Sequence[float], sources: int) -> Floats:
    """Return bounds as an array, or say which of them is wrong."""
    limits = np.array([float(bound) for bound in bounds], dtype=np.float64)
    if len(limits) != sources:
        raise BadInput(f"there are {sources} sources but {len(limits)} bounds; give one bound per source.")
    for source, limit in enumerate(limits, 1):
        if not limit >= 0:
            raise BadInput(f"the bound of source {source} is {limit}; give the largest shift you allow, 0 or more.")
    return limits


def allowed(
    target: SiteEstimate, sources: Sequence[SiteEstimate], limits: Floats, common: Sequence[bool] | bool
) -> Floats:
    """Return bounds in standard errors of the target, with the allowance for a bias that sites share."""
    errors = np.array([site.std_error for site in sources])
    with np.errstate(over="ignore"):
        relative = (limits + ALLOWANCE * errors * np.asarray(common, dtype=np.float64)) / target.std_error
    return np.where(relative > ENDLESS, math.inf, relative)


class Precisions(NamedTuple):
    """What the path needs of a target and its sources: precisions, and 1 over the degrees of freedom."""

    inverse_df: float
    precisions: Floats
    inverse_dfs: Floats
    level: float


class PathPoints(NamedTuple):
    """Places on the path: weights of target and sources (last axis), worst bias, error, 1/df and half-length."""

    target: Floats
    sources: Floats
    bias: Floats
    std_error: Floats
    inverse_df: Floats
    half: Floats


def caution_of(df: float) -> float:
    """Return the factor of a source's variance that pays for weights which follow its estimated error.

    `6 / (df - 2)` instead of 4 covered no better in simulations of private sites, and was longer (docs/decisions/0030).

    >>> caution_of(math.inf), round(caution_of(30.0), 3), round(caution_of(10.0), 3)
    (1.0, 1.143, 1.5)
    """
    return 1 + 4 / max(df - 2, 1.0)


def precisions_of(target: SiteEstimate, sources: Sequence[SiteEstimate], level: float) -> Precisions:
    """Measure the sources in standard errors of the target, their own errors with caution."""
    errors = np.array([math.sqrt(caution_of(site.df)) * site.std_error / target.std_error for site in sources])
    return Precisions(1 / target.df, errors**-2.0, np.array([1 / site.df for site in sources]), level)


def walk(sites: Precisions, bounds: Floats, places: Floats) -> PathPoints:
    """Visit places on the paths of several problems.

    Bounds, (problems, sources), are in standard errors of the target; ``places`` has one problem per row, and what is
    found there has its shape.
    """
    finite = np.isfinite(bounds)
    limits = np.where(finite, bounds, 0.0)[:, None, :]
    pace = _pace(bounds)[:, None, :]
    walked, left = expit(places)[:, :, None], expit(-places)[:, :, None]
    # Both are 1 - walked * pace; each keeps its digits where it is used.
    kept = np.where(walked < 0.5, 1.0 - walked * pace, left * pace - (pace - 1.0))
    # An infinite bound keeps a source off the path from its start.
    kept = np.maximum(kept, 0.0) * finite[:, None, :]
    squares = kept * kept
    total = 1.0 + kept @ sites.precisions
    square = 1.0 + squares @ sites.precisions
    bias = (kept * limits) @ sites.precisions / total
    error = np.sqrt(square) / total
    inverse_df = (sites.inverse_df + (squares * squares) @ (sites.precisions**2 * sites.inverse_dfs)) / square**2
    half = error * folded_value(bias / error, sites.level) * _student(inverse_df, sites.level)
    return PathPoints(1.0 / total, kept * sites.precisions / total[:, :, None], bias, error, inverse_df, half)


def shortest(sites: Precisions, bounds: Floats) -> tuple[Floats, Floats]:
    """Find the shortest interval of each problem.

    Bounds, (problems, sources), and half-lengths are in standard errors of the target. With them come the places on the
    path; an infinite place is the target alone.
    """
    every = np.arange(len(bounds))
    best = np.full(len(bounds), t_value(sites.level, 1 / sites.inverse_df if sites.inverse_df > 0 else math.inf))
    place = np.full(len(bounds), math.inf)
    if bounds.shape[1] == 0:
        return best, place
    ends = np.log(EARLY / _pace(bounds).max(1)), np.full(len(bounds), math.log((1 + sites.precisions.sum()) / LATE))
    first = np.full((len(bounds), 1), START)
    places = np.sort(np.concatenate([first, np.linspace(*ends, COARSE, axis=1), _departures(sites, bounds)], 1), 1)
    live = np.ones(len(bounds), dtype=bool)
    for zoom in range(ZOOMS + 1):
        halves = walk(sites, bounds, places).half
        at = np.argmin(halves, 1)
        better = live & (halves[every, at] < best)
        best, place = np.where(better, halves[every, at], best), np.where(better, places[every, at], place)
        # a precise source may leave within a billionth of the way: look closer until there is nothing to be gained
        live &= np.ptp(halves, 1) >= FLAT
        if not live.any():
            break
        if zoom < ZOOMS:
            near, far = places[every, np.maximum(at - 1, 0)], places[every, np.minimum(at + 1, places.shape[1] - 1)]
            places = np.linspace(near, far, FINE, axis=1)
    return best, place


def _departures(sites: Precisions, bounds: Floats) -> Floats:
    """Return places spread evenly over the target's weight and over its logarithm, however suddenly sources leave.

    A precise source may leave between two places that lie as close as you like, and few degrees of freedom of the
    target make a second valley there. What weighs beside the target is straight in what is left to walk between the
    places where sources leave, so it can be inverted.
    """
    pace = _pace(bounds)
    weighed = sites.precisions * np.isfinite(bounds)
    shares = np.arange(1, SHARES + 1) / (SHARES + 1)
    places = np.empty((len(bounds), 2 * SHARES))
    for row, (paces, precisions) in enumerate(zip(pace, weighed, strict=True)):
        order = np.argsort(paces)  # the slowest first: the last to leave
        paces, precisions = paces[order], precisions[order]
        left = np.append((paces - 1.0) / paces, 1.0)  # where each leaves, then the start of the path
        # kept is left * pace - (pace - 1) for those who are still there
        beside = np.append(left[:-1] * _before(precisions * paces) - _before(precisions * (paces - 1.0)), 0.0)
        beside[-1] = precisions.sum()
        weight = 1.0 / (1.0 + beside[-1])
        wanted = 1.0 / np.concatenate([weight ** (1.0 - shares), weight + (1.0 - weight) * shares]) - 1.0
        over = np.clip(np.interp(wanted, np.maximum.accumulate(beside), left), 1e-300, 1.0 - 1e-15)
        places[row] = np.log1p(-over) - np.log(over)
    return places


def _before(values: Floats) -> Floats:
    """Return the sum up to each value, without itself: who leaves at a place weighs nothing there."""
    return np.asarray(np.cumsum(values) - values)


def _pace(bounds: Floats) -> Floats:
    """Return how fast each source leaves, in paces of the slowest.

    A source of bound 0 leaves too, after all others, for the target's degrees of freedom may be worth its precision.
    """
    none = bounds <= NOTHING
    useful = np.isfinite(bounds) & ~none
    least = np.min(np.where(useful, bounds, math.inf), 1, keepdims=True, initial=math.inf)
    least = np.where(np.isfinite(least), least, 1.0)
    pace = np.where(useful, bounds, np.where(none, LAST * least, least))
    return np.asarray(pace / pace.min(1, keepdims=True, initial=math.inf))


def _student(inverse_df: Floats, level: float) -> Floats:
    """Return Student's quantile over the normal one."""
    normal = two_sided(level)
    known = inverse_df < 1e-7
    student = stdtrit(1.0 / np.where(known, 1.0, inverse_df), (1 + level) / 2)
    return np.asarray(np.where(known, 1.0, student / normal))


def folded_value(bias: ArrayLike, level: float) -> Floats:
    """Solve P(|N(bias, 1)| <= c) = level for c.

    Biases, 0 or more, are in standard errors.

    >>> [round(float(c), 4) for c in folded_value([0.0, 1.0, 100.0], 0.95)]
    [1.96, 2.6461, 101.6449]
    """
    size = np.asarray(bias, dtype=np.float64)
    two, one = two_sided(level), two_sided(2 * level - 1) if level > 0.5 else -two_sided(1 - 2 * level)
    # With no bias it is the first, with a large one the second; both are too short, the sum with the first too long.
    low, high = np.maximum(two, size + one), size + two
    value = low
    state = before = low, high, value
    for turn in range(60):
        tails = ndtr(size - value) + ndtr(-size - value) - (1 - level)
        low, high = np.where(tails > 0, value, low), np.where(tails > 0, high, value)
        slope = (np.exp(-((value - size) ** 2) / 2) + np.exp(-((value + size) ** 2) / 2)) / np.sqrt(2 * np.pi)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = value + tails / slope
        inside = (newton >= low) & (newton <= high)
        step = np.where(inside, newton, (low + high) / 2)
        # Newton's next step would be the square of this one.
        done = bool((inside & (np.abs(step - value) <= 1e-9)).all())
        value = step
        before, state, earlier = state, (low, high, value), before
        # Without a bias Newton leaves the ends by a rounding error, for ever: what was so two turns ago comes again.
        if done or (turn % 2 and all(map(np.array_equal, state, earlier))):
            break
    return np.asarray(value)
