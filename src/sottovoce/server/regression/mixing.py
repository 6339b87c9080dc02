"""Public mixtures of channels: information adds, so the best mixture of two coordinates needs at most two kinds.

With block t asked with probability pi_t and informations I_t (a vector), the asymptotic error is
``sum_j cost_j / sum_t pi_t I_tj``, and gains proportional to ``1 / E D_tj^2`` attain it (notes, section 4).

The information of a block about a coordinate is P(spoken of) / E D^2. `boxes` tells how much every box channel worth a
thought tells of the intercept and of a slope, as arrays; boxes of width 1 are the paper's quantised blocks, so one
table serves CQ and BOX.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Bools, Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.regression.blocks import Block, RegressionChannel
from sottovoce.protocol.regression.box_channel import FINEST, LETTERS, BoxChannel, box_channel
from sottovoce.protocol.regression.lp import rounded
from sottovoce.server.regression.omega import Covariates, block_moments, side_chances, side_scores

CELLS = (*range(2, 25), 28, 32, 40, 48, 64)  # finer ones gain nothing that could be measured
_ROOM = 1.5  # a margin, so that whole weights certainly fit


@dataclass(frozen=True, eq=False)
class Boxes:
    """Shapes (T,) and, for each level, what they tell of the side and of a slope (levels, T)."""

    kinds: Ints
    slopes: Ints
    cells: Ints
    width: Ints
    side: Floats
    slope: Floats

    def take(self, kept: Bools | npt.NDArray[np.intp]) -> "Boxes":
        """Return some of them."""
        shapes = (self.kinds[kept], self.slopes[kept], self.cells[kept], self.width[kept])
        return Boxes(*shapes, self.side[:, kept], self.slope[:, kept])

    @property
    def letters(self) -> Floats:
        """Return the sizes of the alphabets."""
        return np.asarray(self.kinds * self.cells.astype(float) ** self.slopes)

    def channel(self, index: int, epsilon: float) -> BoxChannel:
        """Return one of them as a channel."""
        kinds, slopes, cells, width = (int(a[index]) for a in (self.kinds, self.slopes, self.cells, self.width))
        name = "side" if slopes == 0 else "slopes" if kinds == 1 else "box"
        return box_channel(name, epsilon, kinds, slopes, cells, width)


def boxes(taus: tuple[float, ...], epsilon: float, known: Covariates) -> Boxes:
    """Return all box shapes that fit a report and the die, with what they tell."""
    kinds, slopes, cells, width = _shapes(len(taus), known.p)
    growth = math.exp(epsilon) if epsilon < 700 else math.inf
    count, inside = kinds * cells.astype(float) ** slopes, width.astype(float) ** slopes
    outcomes = count if math.isinf(growth) else count + (growth - 1) * inside
    fits = (count <= LETTERS) & (outcomes * _ROOM <= OUTCOMES / FINEST)
    if not math.isinf(growth):  # rounding the low weight up takes an outcome from every letter, all from the box's own
        fits &= count / inside * outcomes * _ROOM <= 1e-8 * math.expm1(epsilon) * OUTCOMES
    if not fits[0]:  # the side alone, which every design needs
        raise BadInput(
            f"epsilon {epsilon!r} is too small to tell {len(taus) + 1} sides of the fitted quantiles apart on a die of "
            "2^62 outcomes; give a larger budget, or fewer levels."
        )
    kinds, slopes, cells, width = (shape[fits] for shape in (kinds, slopes, cells, width))
    count, inside = count[fits], inside[fits]
    truth = np.ones(len(kinds)) if math.isinf(growth) else (growth - 1) * inside / (count + (growth - 1) * inside)
    side, slope = [], []
    for level in range(len(taus)):
        first, second = _information(taus, level, known, kinds, slopes, cells, width, truth)
        side.append(first)
        slope.append(second)
    return Boxes(kinds, slopes, cells, width, np.array(side), np.array(slope))


def _shapes(levels: int, p: int) -> tuple[Ints, Ints, Ints, Ints]:
    shapes = [(levels + 1, 0, 1, 1)]
    for kinds in (levels + 1, 1) if levels == 1 else (levels + 1,):
        for slopes in range(1, min(p, 31) + 1):
            for cells in CELLS:
                if kinds * cells**slopes > LETTERS:
                    break
                shapes += [(kinds, slopes, cells, width) for width in range(1, cells)]
    found = np.array(shapes, dtype=np.int64).T
    return found[0], found[1], found[2], found[3]


def _information(
    taus: tuple[float, ...], level: int, known: Covariates, kinds: Ints, slopes: Ints, cells: Ints, width: Ints,
    truth: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    tau, odds = taus[level], side_chances(taus)
    values = side_scores(taus, level)
    square, even, mean, radius = odds @ values**2, np.mean(values**2), values.mean(), max(tau, 1 - tau)
    blind = 1 - truth
    first = (truth * square + blind * even - (blind * mean) ** 2) / truth**2
    side = np.where(kinds > 1, 1 / first, 0.0)
    if known.p == 0:
        return side, np.zeros_like(side)
    spread, uniform = (width**2 - 1) / (3 * cells**2), (cells**2 - 1) / (3 * cells**2)
    reach, at = 1 - width / cells, cells - width + 1
    whole, parts = _rounded(known, [(1.0, 1.0)], at), _rounded(known, list(zip(odds, values / radius, strict=True)), at)
    with_side = truth * square * (reach**2 * whole + spread) + blind * even * uniform
    without = radius**2 * (truth * (reach**2 * parts + spread) + blind * uniform)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = slopes / known.p * (truth * reach) ** 2 / np.where(kinds > 1, with_side, without)
    return side, np.where(slopes > 0, slope, 0.0)


def _rounded(known: Covariates, scales: list[tuple[float, float]], places: Ints) -> Floats:
    """Return the rounded second moment for each number of places, averaged over slopes by their cost."""
    costs = known.costs[1:] / known.costs[1:].sum()
    moments, back = np.unique(np.stack([known.second, known.means]), axis=1, return_inverse=True)
    shares = np.bincount(back.ravel(), weights=costs)
    table = np.zeros(int(places.max()) + 1)
    for count in np.unique(places).tolist():
        table[count] = sum(
            share * odd * rounded(count, second, mean, scale)
            for share, (second, mean) in zip(shares.tolist(), moments.T.tolist(), strict=True)
            for odd, scale in scales
        )
    return table[places]


_ROUNDS = 4000  # of the multiplicative algorithm at most; it stops when no share moves by 1e-12
_SELDOM = 1e-4  # a block asked less often than this is left out where the others tell as much
_LOSS = 1e-4  # as much: the trace grows by no more than this, relatively


class MixedPart(NamedTuple):
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
    name: str, taus: tuple[float, ...], epsilon: float, known: Covariates, parts: Sequence[MixedPart],
    shares: Sequence[float] | None = None,
) -> RegressionChannel:  # fmt: skip
    """Return the channel that asks the parts with the best probabilities and gains, starting from ``shares``.

    Without ``shares`` they start equal. A part that would cost more than ``epsilon`` is refused.
    """
    p, levels = known.p, len(taus)
    seconds = np.array([_seconds(part, taus, known) for part in parts])
    included = np.array([_asked(part, 1.0, np.zeros((levels, p + 1))).inclusion(p) for part in parts])
    spoken = np.repeat(included[:, None, :], levels, axis=1)
    told = np.divide(spoken, seconds, out=np.zeros_like(seconds), where=(spoken > 0) & (seconds > 0))
    costs = np.tile(known.costs, levels)
    start = np.ones(len(parts)) if shares is None else np.array(shares, dtype=float)
    asked = _shares(told.reshape(len(parts), -1), costs, start)
    kept = np.flatnonzero(asked > 0)
    total = np.tensordot(asked, told, axes=1)
    blocks = []
    for t in kept.tolist():
        seen = told[t] > 0
        gains = np.divide(1.0, seconds[t] * total, out=np.zeros((levels, p + 1)), where=seen)
        blocks.append(_asked(parts[t], float(asked[t]), gains))
    return RegressionChannel(name, taus, p, tuple(blocks), budget=epsilon)


def _asked(part: MixedPart, probability: float, gains: Floats) -> Block:
    return Block(probability, part.channel, part.slopes, gains)


def _seconds(part: MixedPart, taus: tuple[float, ...], known: Covariates) -> Floats:
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
