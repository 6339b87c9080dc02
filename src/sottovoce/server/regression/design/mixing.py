"""Public mixtures of channels: information adds, so the best mixture of two coordinates needs at most two kinds.

With block t asked with probability pi_t and informations I_t (a vector), the asymptotic error is
``sum_j cost_j / sum_t pi_t I_tj``, and gains proportional to ``1 / E D_tj^2`` attain it (notes, section 4).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.blocks import Block, RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.server.regression.design.covariates import Covariates
from sottovoce.server.regression.design.omega import block_moments

_ROUNDS = 4000  # of the multiplicative algorithm at most; it stops when no share moves by 1e-12
_SELDOM = 1e-4  # a block asked less often than this is left out where the others tell as much
_LOSS = 1e-4  # as much: the trace grows by no more than this, relatively


class Part(NamedTuple):
    """A channel and the slopes that it speaks of; None: a random choice."""

    channel: BoxChannel | Channel
    slopes: tuple[int, ...] | None


class ChannelPair(NamedTuple):
    """Two kinds of channels, how often the first is asked, and the trace that they reach."""

    first: int
    second: int
    share: float
    trace: float


def best_pair(side: Floats, slope: Floats, cost_side: float, cost_slope: float) -> ChannelPair:
    """Return the two kinds, of those with these informations, whose mixture has the smallest trace.

    Examples
    --------
    >>> pair = best_pair(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 1.0, 9.0)
    >>> round(pair.share, 3), round(pair.trace, 3)
    (0.25, 16.0)
    """
    front = _front(side, slope)
    i, j = (index.ravel() for index in np.meshgrid(front, front, indexing="ij"))
    rise, fall = side[i] - side[j], slope[i] - slope[j]
    # the derivative along the edge vanishes where sqrt(cost_0 |rise|) I_1 = sqrt(cost_1 |fall|) I_0
    left, right = np.sqrt(cost_side * np.abs(rise)), np.sqrt(cost_slope * np.abs(fall))
    bottom = left * fall - right * rise
    inner = np.divide(right * side[j] - left * slope[j], bottom, out=np.ones(len(i)), where=np.abs(bottom) > 1e-300)
    share = np.clip(inner, 0.0, 1.0)
    first, second = side[j] + share * rise, slope[j] + share * fall
    with np.errstate(divide="ignore", invalid="ignore"):
        trace = cost_side / first + (cost_slope / second if cost_slope > 0 else 0.0)
    best = int(np.nanargmin(trace))
    return ChannelPair(int(i[best]), int(j[best]), float(share[best]), float(trace[best]))


def _front(side: Floats, slope: Floats) -> npt.NDArray[np.intp]:
    """Return the kinds that no other kind beats in both informations."""
    order = np.lexsort((-slope, -side))
    best = np.maximum.accumulate(slope[order])
    fresh = np.concatenate([[True], best[1:] > best[:-1] * (1 + 1e-9)])
    front = order[fresh]
    return np.asarray(front[np.linspace(0, len(front) - 1, min(len(front), 400)).astype(np.intp)])


def mixture(
    name: str, taus: tuple[float, ...], known: Covariates, parts: Sequence[Part], shares: Sequence[float] | None = None,
    importance: Floats | None = None,
) -> RegressionChannel:  # fmt: skip
    """Return the channel that asks the parts with the best probabilities and gains, starting from ``shares``.

    Parameters
    ----------
    name
        What to call it.
    taus
        Ascending quantile levels.
    known
        The public moments of the covariates.
    parts
        What may be asked.
    shares
        Probabilities to start from; None: equal ones.
    importance
        How much the trace of each level counts; None: equally.
    """
    p, levels = known.p, len(taus)
    count = np.ones(levels) if importance is None else importance
    seconds = np.array([_seconds(part, taus, known) for part in parts])
    included = np.array([_asked(part, 1.0, np.zeros((levels, p + 1))).inclusion(p) for part in parts])
    spoken = np.repeat(included[:, None, :], levels, axis=1)
    told = np.divide(spoken, seconds, out=np.zeros_like(seconds), where=(spoken > 0) & (seconds > 0))
    costs = np.outer(count, known.costs).ravel()
    start = np.ones(len(parts)) if shares is None else np.array(shares, dtype=float)
    asked = _shares(told.reshape(len(parts), -1), costs, start)
    kept = np.flatnonzero(asked > 0)
    total = np.tensordot(asked, told, axes=1)
    blocks = []
    for t in kept.tolist():
        seen = told[t] > 0
        gains = np.divide(1.0, seconds[t] * total, out=np.zeros((levels, p + 1)), where=seen)
        blocks.append(_asked(parts[t], float(asked[t]), gains))
    return RegressionChannel(name, taus, p, tuple(blocks))


def _asked(part: Part, probability: float, gains: Floats) -> Block:
    return Block(probability, part.channel, part.slopes, gains)


def _seconds(part: Part, taus: tuple[float, ...], known: Covariates) -> Floats:
    """Return E D_j^2 of a part's decoded values, for each level."""
    levels = range(len(taus))
    return np.array([np.diagonal(block_moments(*part, taus, level, known)) for level in levels])


def _shares(told: Floats, costs: Floats, start: Floats) -> Floats:
    """Return the probabilities that make sum_j cost_j / information_j least (multiplicative algorithm)."""
    shares = start / start.sum()
    used = (told > 0).any(axis=0)
    told, costs = told[:, used], costs[used]
    for _ in range(_ROUNDS):
        total = shares @ told
        slope = told @ (costs / total**2)
        value = float((costs / total).sum())
        fresh = shares * np.sqrt(slope / value)
        fresh /= fresh.sum()
        if np.abs(fresh - shares).max() < 1e-12:
            break
        shares = fresh
    return _without_seldom(shares, told, costs)


def _without_seldom(shares: Floats, told: Floats, costs: Floats) -> Floats:
    """Return the probabilities without rare blocks, save those that alone speak of a coordinate or tell most of it."""
    for t in np.argsort(shares):
        fewer = np.where(np.arange(len(shares)) == t, 0.0, shares)
        total = fewer @ told
        if shares[t] >= _SELDOM or not (total > 0).all():
            continue
        fewer, total = fewer / fewer.sum(), total / fewer.sum()
        if (costs / total).sum() <= (costs / (shares @ told)).sum() * (1 + _LOSS):
            shares = fewer
    return np.asarray(shares / shares.sum())
