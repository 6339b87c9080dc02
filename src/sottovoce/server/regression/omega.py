"""Omega: the covariance of the decoded gradient at the truth, for any regression channel, in closed form.

Omega_jk = sum over blocks of probability x P(j and k spoken of) x gain_j gain_k x E D_j D_k. The averaged recursion
then has asymptotic covariance H^-1 Omega H^-1 / n with H = f E x x'.

At the truth of a correct model the side does not depend on the covariates: ``P(side)`` follows from the levels, and E D
= 0. A box letter is the record's own with probability theta, uniform with probability ``letters x low / outcomes of the
die``, and letter 0 for the spare outcomes; so E D_j D_k is a sum of three products.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.regression.blocks import Block, Open, RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.regression.lp import UNIFORM, chances, rounded


@dataclass(frozen=True, eq=False)
class Covariates:
    """Means (p,) and second moments E z z' (p, p) of covariates in [-1, 1]."""

    means: Floats
    cross: Floats

    @property
    def p(self) -> int:
        """Return the number of slopes."""
        return len(self.means)

    @property
    def second(self) -> Floats:
        """Return E z_j^2 for each slope."""
        return np.diagonal(self.cross).copy()

    @property
    def alike(self) -> bool:
        """Tell whether every slope has the same moments."""
        return self.p == 0 or bool(np.ptp(self.second) <= 1e-12 and np.ptp(self.means) <= 1e-12)

    @property
    def information(self) -> Floats:
        """Return E x x' (p + 1, p + 1) of x = (1, z): the Hessian for density 1."""
        whole = np.ones((self.p + 1, self.p + 1))
        whole[0, 1:] = whole[1:, 0] = self.means
        whole[1:, 1:] = self.cross
        return whole

    @property
    def costs(self) -> Floats:
        """Return what a unit of variance of each score coordinate adds to the trace of H^-1 Omega H^-1 (density 1)."""
        return np.asarray((np.linalg.inv(self.information) ** 2).sum(axis=0))


def covariates(
    p: int,
    second_moments: float | Sequence[float] | Floats | None = None,
    means: Sequence[float] | Floats | None = None,
) -> Covariates:
    """Return the public moments, checked.

    ``second_moments`` are E z_j^2 for each slope, one number for all, or the matrix E z z'; None: 1/3, that of the
    uniform distribution. ``means`` are E z_j, by default 0. Without a matrix, different covariates count as
    independent.

    >>> covariates(2).costs
    array([1., 9., 9.])
    """
    centre = np.zeros(p) if means is None else np.asarray(means, dtype=float)
    given = np.asarray(UNIFORM if second_moments is None else second_moments, dtype=float)
    if centre.shape != (p,) or given.shape not in ((), (p,), (p, p)):
        raise BadInput(f"the public moments are not those of {p} slopes; give one number, or one for each slope.")
    cross = given.copy() if given.ndim == 2 else np.outer(centre, centre)
    if given.ndim < 2:
        np.fill_diagonal(cross, given)
    second = np.diagonal(cross)
    if p and not (np.all(second <= 1 + 1e-12) and np.all(second - centre**2 > 1e-8) and np.isfinite(cross).all()):
        raise BadInput(
            "a second moment of a covariate in [-1, 1] lies above its squared mean and at most at 1; "
            "give E z^2 after scaling to [-1, 1], and leave constant columns out."
        )
    found = Covariates(centre, cross)
    if p and np.linalg.eigvalsh(found.information)[0] < 1e-10:
        raise BadInput("the public second moments are those of collinear columns; leave one of them out.")
    return found


def omega(
    channel: RegressionChannel, second_moments: float | Sequence[float] | Floats | None = None,
    means: Sequence[float] | Floats | None = None, level: int = 0,
) -> Floats:  # fmt: skip
    """Return Omega (p + 1, p + 1), intercept first, for one of the channel's levels.

    ``second_moments`` and ``means`` are those of `covariates`.

    >>> from sottovoce.protocol.regression.blocks import open_channel
    >>> omega(open_channel(0.5, 1)).round(4).tolist()
    [[0.25, 0.0], [0.0, 0.0833]]
    """
    return omega_at(channel, covariates(channel.p, second_moments, means), level)


def omega_at(channel: RegressionChannel, known: Covariates, level: int = 0) -> Floats:
    """Return Omega for public moments that have been checked."""
    total = np.zeros((channel.p + 1, channel.p + 1))
    for block in channel.blocks:
        gains = block.gains[level]
        seen = _together(block, channel.p)
        moments = block_moments(block.channel, block.slopes, channel.taus, level, known)
        total += block.probability * seen * np.outer(gains, gains) * moments
    return total


def covariance(channel: RegressionChannel, known: Covariates, level: int = 0) -> Floats:
    """Return H^-1 Omega H^-1 for density 1: n x the asymptotic covariance of the estimate, in units of 1 / f^2."""
    inverse = np.linalg.inv(known.information)
    return np.asarray(inverse @ omega_at(channel, known, level) @ inverse)


def _together(block: Block, p: int) -> Floats:
    """Return the probability that the block, when asked, speaks of each pair of coordinates."""
    alone = block.inclusion(p)
    pairs = np.outer(alone, alone)
    if block.slopes is None and p > 1:
        pairs[1:, 1:] = block.count * (block.count - 1) / (p * (p - 1))
    pairs[np.diag_indices(p + 1)] = alone
    return pairs


def side_chances(taus: tuple[float, ...]) -> Floats:
    """Return the probability of each side at the truth: side k lies below k of the fitted quantiles.

    >>> side_chances((0.25, 0.75)).tolist()
    [0.25, 0.5, 0.25]
    """
    return np.diff(np.array([0.0, *taus, 1.0]))[::-1].copy()


def side_scores(taus: tuple[float, ...], level: int) -> Floats:
    """Return the score at each side for a level, as `RegressionChannel.side_scores` does.

    >>> side_scores((0.25, 0.75), 0).tolist()
    [-0.25, -0.25, 0.75]
    """
    return (np.arange(len(taus) + 1) >= len(taus) - level).astype(float) - taus[level]


def block_moments(
    channel: BoxChannel | Channel | Open, slopes: tuple[int, ...] | None, taus: tuple[float, ...], level: int,
    known: Covariates,
) -> Floats:  # fmt: skip
    """Return E D D' (p + 1, p + 1) of a block's decoded values before gains, as if it spoke of every coordinate.

    The side of a matrix channel is heard together with a slope: with the fixed one, or averaged over all.
    """
    sides, odds = side_scores(taus, level), side_chances(taus)
    if isinstance(channel, Open):
        return float(odds @ sides**2) * known.information
    if isinstance(channel, Channel):
        return _dense(channel, range(1, known.p + 1) if slopes is None else slopes, odds, known)
    if channel.kinds == 1:
        radius = max(max(tau, 1 - tau) for tau in taus)
        return _slopes_alone(channel, sides, odds, radius, known)
    return _with_side(channel, sides, odds, known)


def _with_side(channel: BoxChannel, sides: Floats, odds: Floats, known: Covariates) -> Floats:
    square, even = float(odds @ sides**2), float(np.mean(sides**2))
    truth, blind, spare = float(channel.truth), channel.letters * channel.low / OUTCOMES, channel.spare / OUTCOMES
    inverse, first = channel.decoder(sides), float(channel.value(0))
    shift, slide = float(inverse.shift_side), float(inverse.shift_slope)
    found = np.zeros((known.p + 1, known.p + 1))
    head = truth * square + blind * even + spare * sides[0] ** 2 - shift**2
    found[0, 0] = head * float(inverse.side) ** 2
    if channel.slopes == 0:
        return found
    reach = 1 - channel.width / channel.cells
    inside = np.array([_inside(channel, rounded(channel.positions, *m)) for m in _moments(known)])
    body = truth * square * reach**2 * known.cross + spare * (sides[0] * first) ** 2 - slide**2
    np.fill_diagonal(body, truth * square * inside + blind * even * _even(channel) + spare * (sides[0] * first) ** 2)
    body[np.diag_indices(known.p)] -= slide**2
    side = truth * square * reach * known.means + spare * sides[0] ** 2 * first - shift * slide
    found[1:, 1:] = body * float(inverse.slope) ** 2
    found[0, 1:] = found[1:, 0] = side * float(inverse.slope) * float(inverse.side)
    return found


def _slopes_alone(channel: BoxChannel, sides: Floats, odds: Floats, radius: float, known: Covariates) -> Floats:
    truth, blind, spare = float(channel.truth), channel.letters * channel.low / OUTCOMES, channel.spare / OUTCOMES
    inverse, first = channel.decoder(np.array([radius])), float(channel.value(0))
    slide, reach = float(inverse.shift_slope), 1 - channel.width / channel.cells
    square = float(odds @ sides**2)
    rest = [
        sum(o * rounded(channel.positions, *m, f / radius) for o, f in zip(odds, sides, strict=True))
        for m in _moments(known)
    ]
    inside = np.array([_inside(channel, r) for r in rest])
    body = truth * square * reach**2 * known.cross + spare * (radius * first) ** 2 - slide**2
    own = truth * inside + blind * _even(channel) + spare * first**2
    np.fill_diagonal(body, radius**2 * own - slide**2)
    found = np.zeros((known.p + 1, known.p + 1))
    found[1:, 1:] = body * float(inverse.slope) ** 2
    return found


def _dense(channel: Channel, slopes: Iterable[int], odds: Floats, known: Covariates) -> Floats:
    places, heard = len(channel.vertices) // 2, list(slopes)
    distribution, table = channel.distribution, channel.table
    moments = _moments(known)
    found = np.zeros((known.p + 1, known.p + 1))
    for j in heard:
        letters = np.outer(odds, chances(places, *moments[j - 1])).ravel() @ distribution
        found[j, j] = letters @ table[:, 1] ** 2
        found[0, j] = found[j, 0] = letters @ (table[:, 0] * table[:, 1])
        found[0, 0] += float(letters @ table[:, 0] ** 2) / len(heard)
    return found


def _moments(known: Covariates) -> list[tuple[float, float]]:
    return list(zip(known.second.tolist(), known.means.tolist(), strict=True))


def _inside(channel: BoxChannel, second: float) -> float:
    """Return the second moment of a cell of the record's own box."""
    reach = 1 - channel.width / channel.cells
    return reach**2 * second + (channel.width**2 - 1) / (3 * channel.cells**2)


def _even(channel: BoxChannel) -> float:
    """Return the second moment of a uniform cell."""
    return (channel.cells**2 - 1) / (3 * channel.cells**2)
