"""The families of channels, each at its best for a public setting: CQ, CQ with a free draw of blocks, BOX, LP.

*Which slopes to ask together when some matter more*: fixed subsets with chosen inclusion probabilities, by systematic
sampling with unequal probabilities (Madow 1949, doi:10.1214/aoms/1177729988). Lay the inclusion probabilities end to
end on a line, and take the slopes that a comb with teeth one apart touches. As the comb moves through [0, 1), at most p
+ 1 subsets occur.

*Several quantile levels from one report*: the side tells between which fitted quantiles the response lies. The
alternative is to ask each person for one level, drawn at random; it costs each level a factor "number of levels" in
variance. Sharing costs less at large budgets and more at small ones.
"""

import itertools
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.box_channel import LETTERS, BoxChannel
from sottovoce.protocol.regression.lp import lp_pair
from sottovoce.server.regression.mixing import Boxes, ChannelPair, MixedPart, best_pair, boxes, mixture
from sottovoce.server.regression.omega import Covariates, block_moments

_SMALLER = 5e-4  # a smaller alphabet is worth this much of the information
_SOLVES = 3  # of the linear program, each for the weight that the last mixture asks for
_NEVER = 1e-6  # of the most important slope: every slope is asked for now and then, however clear it is
_SETTLED = 0.1  # a weight that moves less than this (in its logarithm) is not solved for again

_GRID = np.linspace(0.0, 0.6, 31)  # how often the side alone may be asked


class Setting(NamedTuple):
    """One level, one budget, and the public moments."""

    tau: float
    epsilon: float
    known: Covariates

    @property
    def costs(self) -> tuple[float, float]:
        """Return what information about the intercept and about a slope is worth, slopes asked by importance."""
        costs = self.known.costs
        return float(costs[0]), float(np.sqrt(costs[1:]).sum() ** 2) / max(self.known.p, 1)


def best_cq(setting: Setting, table: Boxes) -> RegressionChannel:
    """Return the paper's CQ_X(q, s) with the smallest trace over all q and s."""
    tau, epsilon, known = setting
    p, costs = known.p, known.costs
    if p == 0:
        return cq(tau, 0, epsilon, 2, 1)
    thin = table.take(table.width == 1)
    second = {
        (int(k), int(n), int(q)): (1 / f if f > 0 else 0.0, n / p / s if s > 0 else 0.0)
        for k, n, q, f, s in zip(thin.kinds, thin.slopes, thin.cells, thin.side[0], thin.slope[0], strict=True)
    }
    best = (np.inf, 2, 1)
    for q in sorted({key[2] for key in second if key[1] > 0}):
        for s in range(1, p + 2):
            inner, outer = (2, s - 1, q if s > 1 else 1), (1, s, q)
            if inner not in second or (s <= p and outer not in second):
                continue
            share = s / (p + 1)
            slope = share * (s - 1) / p * second[inner][1]
            slope += (1 - share) * s / p * second[outer][1] if s <= p else 0.0
            best = min(best, (costs[0] * second[inner][0] / share + costs[1:].sum() * slope / share**2, q, s))
    return cq(tau, p, epsilon, best[1], best[2])


def box_mixture(setting: Setting, table: Boxes, name: str = "box") -> RegressionChannel:
    """Return the best public mixture of two kinds of boxes (of width 1: the paper's blocks, drawn freely)."""
    pair = best_pair(table.side[0], table.slope[0], *setting.costs)
    chosen = [_lighter(table, index) for index in (pair.first, pair.second)]
    return _mixed(name, setting, [table.channel(index, setting.epsilon) for index in chosen], pair)


def lp_mixture(setting: Setting, table: Boxes, *, alone: bool = False) -> RegressionChannel:
    """Return the best public mixture of a pair channel with one kind of box, or with the side alone."""
    rest = table.take(table.slopes == 0) if alone else table
    size, cost = len(rest.kinds), setting.costs
    pairs: list[Channel] = []
    side, slope = rest.side[0], rest.slope[0]
    weight = cost[1] * setting.known.p / cost[0]
    for _ in range(_SOLVES):
        pairs.append(lp_pair(setting.tau, setting.epsilon, float(f"{weight:.2g}"), _typical(setting.known)))
        first, second = _told(setting, pairs[-1])
        side, slope = np.append(side, first), np.append(slope, second / setting.known.p)
        best = best_pair(side, slope, *cost)
        total = [x[best.second] + best.share * (x[best.first] - x[best.second]) for x in (side, slope)]
        # what the program should minimise: the mixture's trace, linearised in the pair's two second moments
        fresh = cost[1] / setting.known.p * (second / total[1]) ** 2 / (cost[0] * (first / total[0]) ** 2)
        if abs(np.log(fresh / weight)) < _SETTLED:
            break
        weight = fresh
    found: list[BoxChannel | Channel] = [
        rest.channel(_lighter(rest, index), setting.epsilon) if index < size else pairs[index - size]
        for index in (best.first, best.second)
    ]
    return _mixed("lp", setting, found, best)


def box_parts(setting: Setting, channel: BoxChannel | Channel) -> list[MixedPart]:
    """Return a channel's parts: random slopes where all slopes are alike, else subsets by importance."""
    p, size = setting.known.p, channel.slopes if isinstance(channel, BoxChannel) else 1
    if size in (0, p):
        return [MixedPart(channel, tuple(range(1, size + 1)))]
    if setting.known.alike:
        return [MixedPart(channel, None)]
    important = np.sqrt(setting.known.costs[1:])
    important = np.maximum(important, _NEVER * important.max())
    return [MixedPart(channel, subset) for subset, _ in systematic(inclusions(important, size))]


def _mixed(name: str, setting: Setting, chosen: list[BoxChannel | Channel], pair: ChannelPair) -> RegressionChannel:
    if pair.share in (0.0, 1.0):
        chosen = [chosen[0] if pair.share > 0.5 else chosen[1]]
    parts = [part for channel in chosen for part in box_parts(setting, channel)]
    return mixture(name, (setting.tau,), setting.epsilon, setting.known, parts)


def _told(setting: Setting, channel: Channel) -> tuple[float, float]:
    """Return the information of a pair channel about the intercept and about its slope, averaged over slopes."""
    seconds = np.diagonal(block_moments(channel, None, (setting.tau,), 0, setting.known))
    costs = setting.known.costs[1:]
    return float(1 / seconds[0]), float(costs.sum() / (costs @ seconds[1:]))


def _typical(known: Covariates) -> float:
    """Return one second moment for the pair channel of all slopes: the average by cost, to two digits."""
    costs = known.costs[1:]
    return known.second[0] if known.alike else min(1.0, float(f"{costs @ known.second / costs.sum():.2g}"))


def _lighter(table: Boxes, index: int) -> int:
    """Return a box of the same kind that tells hardly less with as few letters as possible."""
    same = (table.kinds == table.kinds[index]) & (table.slopes == table.slopes[index])
    tells = (table.side[0] >= table.side[0, index] * (1 - _SMALLER)) & (
        table.slope[0] >= table.slope[0, index] * (1 - _SMALLER)
    )
    return int(np.argmin(np.where(same & tells, table.letters, float(LETTERS) + 1)))


def shared_box(taus: tuple[float, ...], epsilon: float, known: Covariates) -> RegressionChannel:
    """Return the box that serves all levels with the smallest sum of their traces."""
    table = boxes(taus, epsilon, known)
    side, slope = table.side[:, :, None], table.slope[:, :, None]
    lone = int(np.flatnonzero(table.slopes == 0)[0])
    mixed = side * (1 - _GRID) + table.side[:, lone, None, None] * _GRID, slope * (1 - _GRID)
    costs = known.costs
    with np.errstate(divide="ignore"):
        traces = costs[0] / mixed[0] + (costs[1:].sum() / mixed[1] if known.p else 0.0)
    value = traces.sum(axis=0)
    light = np.where(value <= value.min() * (1 + 5e-4), table.letters[:, None], np.inf)
    index, share = np.unravel_index(int(np.argmin(light)), light.shape)
    channel = table.channel(int(index), epsilon)
    size = channel.slopes
    parts = [MixedPart(channel, None if 0 < size < known.p else tuple(range(1, size + 1)))]
    shares = [1 - float(_GRID[share])]
    if _GRID[share] > 0:
        parts.append(MixedPart(table.channel(lone, epsilon), ()))
        shares.append(float(_GRID[share]))
    return mixture("shared box", taus, epsilon, known, parts, shares)


def inclusions(importance: Floats, size: int) -> Floats:
    """Return inclusion probabilities proportional to ``importance`` that add up to ``size``, none above one.

    >>> inclusions(np.array([6.0, 1.0, 1.0]), 2).tolist()
    [1.0, 0.5, 0.5]
    """
    found = np.zeros(len(importance))
    sure = np.zeros(len(importance), dtype=bool)
    while True:
        rest = importance * ~sure
        found = np.where(sure, 1.0, rest * (size - sure.sum()) / max(rest.sum(), 1e-300))
        over = (found > 1 - 1e-12) & ~sure
        if not over.any():
            return found
        sure |= over


def systematic(probabilities: Floats) -> list[tuple[tuple[int, ...], float]]:
    """Return subsets of the slopes 1..p and how often each is asked, with these inclusion probabilities.

    >>> systematic(np.array([1.0, 0.5, 0.5]))
    [((1, 2), 0.5), ((1, 3), 0.5)]
    """
    ends = np.concatenate([[0.0], np.cumsum(probabilities)])
    size = round(float(ends[-1]))
    cuts = np.unique(np.round(np.append(ends % 1.0, [0.0, 1.0]), 12))
    found = []
    for left, right in itertools.pairwise(cuts):
        teeth = (left + right) / 2 + np.arange(size)
        hit = np.searchsorted(ends, teeth, side="right")
        found.append((tuple(sorted({int(j) for j in hit})), float(right - left)))
    return [(subset, share) for subset, share in found if len(subset) == size and share > 1e-9]
