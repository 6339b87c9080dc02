"""Finite boxes, and coordinate quantisation CQ_X(q, s), the paper's channel for online quantile regression.

*Boxes*: the truth moved by a uniform step inside a box of cells, or else a uniform letter. A box of ``width`` out of
``cells`` cells per slope is the piecewise-constant channel in several dimensions. With the side, the letter is (side,
cell, ..., cell); without it, (cell, ..., cell) of the slopes' scores divided by their radius. With ``width`` 1 it is
the randomised response of the paper's coordinate quantisation.

*CQ*: a public block of ``s`` of the coordinates 0..p is drawn uniformly. With coordinate 0 in it, the person says on
which side the score lies and, for the other coordinates of the block, the covariate rounded at random to ``q`` steps of
[-1, 1]; without it, each slope's score rounded to ``q`` steps of plus or minus the radius. K-ary randomised response
hides the answer; the server inverts it and divides by the inclusion probability ``s / (p + 1)``.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import partial

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import Block, RegressionChannel
from sottovoce.protocol.regression.box_channel import LETTERS, BoxChannel, box_channel

FINEST_GRID = 1 << 16  # steps; a finer one gains nothing and its moments would fill the memory


def box_block(probability: float, channel: BoxChannel, p: int, gains: Sequence[Sequence[float]]) -> Block:
    """Return a block that speaks of as many slopes as its channel, chosen at random unless it speaks of all."""
    slopes = tuple(range(1, p + 1)) if channel.slopes == p else () if channel.slopes == 0 else None
    return Block(probability, channel, slopes, np.array(gains, dtype=float))


def fitting_box(
    name: str, epsilon: float, kinds: int, slopes: int = 0, cells: int = 1, width: int = 1
) -> BoxChannel:  # fmt: skip
    """Return a box channel; refuse boxes that leave no choice, and alphabets that no report can carry."""
    if slopes > 0 and not 1 <= width < cells:
        raise BadInput(
            f"a box of {width} out of {cells} cells tells nothing of a slope; give a width from 1 to less than cells."
        )
    letters = kinds * cells**slopes
    if letters > LETTERS:
        raise BadInput(
            f"{slopes} slopes of {cells} cells make {Decimal(letters):.1e} letters, more than the 2^32 a report can "
            "carry; give fewer slopes per block, or fewer cells."
        )
    return box_channel(name, epsilon, kinds, slopes, cells, width)


def box(
    taus: Sequence[float], p: int, epsilon: float, slopes: int, cells: int, width: int, *, side: bool = True,
    alone: float = 0.0,
) -> RegressionChannel:  # fmt: skip
    """Return boxes of ``slopes`` random slopes, mixed in public with the side alone, with Horvitz-Thompson gains.

    The side tells between which of the ascending ``taus`` the response lies. A slope's range is cut into ``cells``, of
    which a box covers ``width``. ``side`` says whether a box speaks of the side too, ``alone`` how often the side alone
    is asked for.

    >>> channel = box((0.5,), 2, 4.0, slopes=2, cells=10, width=4)
    >>> channel.letters, channel.epsilon <= 4.0 < channel.epsilon + 1e-8
    (200, True)
    """
    if not side and (alone <= 0 or len(taus) > 1):
        raise BadInput("boxes without the side need one level and the side alone now and then; give alone > 0.")
    if not min(p, 1) <= slopes <= p or not 0 <= alone < 1:
        raise BadInput(
            f"boxes of {slopes} of {p} slopes, with the side alone {alone!r} of the time, cannot tell every slope; "
            f"give slopes from {min(p, 1)} to {p}, and alone from 0 to less than 1."
        )
    kinds = len(taus) + 1
    main = fitting_box("box", epsilon, kinds if side else 1, slopes, cells, width)
    share = 1 - alone
    whole = [[1.0 if side else 0.0] + [p / (slopes * share) if slopes else 0.0] * p] * len(taus)
    blocks = [box_block(share, main, p, whole)]
    if alone > 0:
        lone = [[1.0 if side else 1 / alone] + [0.0] * p] * len(taus)
        blocks.append(box_block(alone, box_channel("side", epsilon, kinds), p, lone))
    return RegressionChannel(f"box:{slopes},{cells},{width}", tuple(taus), p, tuple(blocks), budget=epsilon)


def cq(tau: float, p: int, epsilon: float, q: int, s: int) -> RegressionChannel:
    """Return the paper's CQ_X(q, s).

    A slope is rounded to ``q`` steps, at least 2, and a person speaks of ``s`` of the p + 1 coordinates; ``math.inf``
    sends the rounded truth.

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
    with_side = fitting_box("side", epsilon, 2, s - 1, cells)
    blocks = [box_block(share, with_side, p, [[gain] + [gain if s > 1 else 0.0] * p])]
    if s <= p:
        blocks.append(box_block(1 - share, fitting_box("slopes", epsilon, 1, s, q), p, [[0.0] + [gain] * p]))
    return RegressionChannel(f"cq:{q},{s}", (tau,), p, tuple(blocks), budget=epsilon)


EXAMPLES = (
    *((epsilon, partial(box, (0.75,), 3, slopes=1, cells=7, width=3, alone=0.2)) for epsilon in (0.05, 1.0, 4.0, 16.0)),
    (2.0, partial(box, (0.75,), 3, slopes=2, cells=5, width=2, alone=0.3, side=False)),
    (8.0, partial(box, (0.75,), 3, slopes=2, cells=6, width=2)),
    (8.0, partial(box, (0.75,), 5, slopes=5, cells=20, width=6)),
    (12.0, partial(box, (0.75,), 20, slopes=20, cells=2, width=1)),
    (0.05, partial(cq, 0.5, 0, q=2, s=1)),
    (0.5, partial(cq, 0.75, 1, q=4, s=1)),
    (1.0, partial(cq, 0.75, 2, q=2, s=2)),
    (2.0, partial(cq, 0.25, 2, q=3, s=1)),
    (4.0, partial(cq, 0.5, 2, q=4, s=3)),
    (8.0, partial(cq, 0.9, 1, q=16, s=2)),
    (16.0, partial(cq, 0.5, 8, q=4, s=9)),
    (math.inf, partial(cq, 0.5, 2, q=3, s=2)),
)
"""Budgets on which the universal channel checks run; two of the boxes have alphabets too large for a matrix."""
