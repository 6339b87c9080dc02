"""Coordinate quantisation CQ_X(q, s): the paper's channel for online quantile regression.

A public block of ``s`` of the coordinates 0..p is drawn uniformly. With coordinate 0 in it, the person says on which
face the score lies and, for the other coordinates of the block, the covariate rounded at random to ``q`` steps of
[-1, 1]; without it, each slope's score rounded to ``q`` steps of plus or minus the radius. K-ary randomised response
hides the answer; the server inverts it and divides by the inclusion probability ``s / (p + 1)``.
"""

import functools
import math

from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.box import box_block, fitting_box

FINEST_GRID = 1 << 16  # steps; a finer one gains nothing and its moments would fill the memory


def cq(tau: float, p: int, epsilon: float, q: int, s: int) -> RegressionChannel:
    """Return the paper's CQ_X(q, s).

    Parameters
    ----------
    tau
        The quantile level.
    p
        The number of slopes.
    epsilon
        The budget of one report; ``math.inf`` sends the rounded truth.
    q
        To how many steps a slope is rounded, at least 2.
    s
        Of how many of the p + 1 coordinates a person speaks.

    Examples
    --------
    >>> channel = cq(0.5, 2, 2.0, q=2, s=1)
    >>> [(round(block.probability, 4), block.channel.letters) for block in channel.blocks]
    [(0.3333, 2), (0.6667, 2)]
    """
    if q < 2:
        raise BadInput(f"cq needs at least 2 steps to round to, not q = {q}; give q of 2 or more.")
    if q > FINEST_GRID:
        raise BadInput(f"cq rounds to at most {FINEST_GRID:,} steps, not q = {q}; give a smaller q.")
    if not 1 <= s <= p + 1:
        raise BadInput(f"cq can ask for 1 to {p + 1} of the {p + 1} coordinates, not s = {s}; give such an s.")
    share, gain = s / (p + 1), (p + 1) / s
    cells = q if s > 1 else 1
    with_face = fitting_box("face", epsilon, 2, s - 1, cells)
    blocks = [box_block(share, with_face, p, [[gain] + [gain if s > 1 else 0.0] * p])]
    if s <= p:
        blocks.append(box_block(1 - share, fitting_box("slopes", epsilon, 1, s, q), p, [[0.0] + [gain] * p]))
    return RegressionChannel(f"cq:{q},{s}", (tau,), p, tuple(blocks))


def _example(epsilon: float, tau: float, p: int, q: int, s: int) -> RegressionChannel:
    return cq(tau, p, epsilon, q, s)


EXAMPLES = (
    (0.05, functools.partial(_example, tau=0.5, p=0, q=2, s=1)),
    (0.5, functools.partial(_example, tau=0.75, p=1, q=4, s=1)),
    (1.0, functools.partial(_example, tau=0.75, p=2, q=2, s=2)),
    (2.0, functools.partial(_example, tau=0.25, p=2, q=3, s=1)),
    (4.0, functools.partial(_example, tau=0.5, p=2, q=4, s=3)),
    (8.0, functools.partial(_example, tau=0.9, p=1, q=16, s=2)),
    (16.0, functools.partial(_example, tau=0.5, p=8, q=4, s=9)),
    (math.inf, functools.partial(_example, tau=0.5, p=2, q=3, s=2)),
)
"""Budgets on which the universal channel checks run."""
