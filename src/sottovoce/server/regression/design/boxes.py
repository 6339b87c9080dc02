"""Every box channel worth a thought at once: how much it tells of the intercept and of a slope, as arrays.

The information of a block about a coordinate is P(spoken of) / E D^2; public mixtures of blocks add theirs. Boxes of
width 1 are the paper's quantised blocks, so one table serves CQ and BOX.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Bools, Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.regression.box_channel import FINEST, LETTERS, BoxChannel, box_channel
from sottovoce.protocol.regression.covariates import rounded
from sottovoce.server.regression.design.covariates import Covariates
from sottovoce.server.regression.design.omega import side_chances, side_scores

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


def boxes(taus: tuple[float, ...], epsilon: float, known: Covariates, letters: int = LETTERS) -> Boxes:
    """Return all box shapes that fit an alphabet and the die, with what they tell."""
    kinds, slopes, cells, width = _shapes(len(taus), known.p)
    growth = math.exp(epsilon) if epsilon < 700 else math.inf
    count, inside = kinds * cells.astype(float) ** slopes, width.astype(float) ** slopes
    outcomes = count if math.isinf(growth) else count + (growth - 1) * inside
    fits = (count <= letters) & (outcomes * _ROOM <= OUTCOMES / FINEST)
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
