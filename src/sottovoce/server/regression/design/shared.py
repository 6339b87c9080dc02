"""Several quantile levels from one report: a face that tells between which fitted quantiles the response lies.

The alternative is to ask each person for one level, drawn at random; it costs each level a factor "number of levels"
in variance. Sharing costs less at large budgets and more at small ones (notes, section 4).
"""

import numpy as np

from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.server.regression.design.boxes import boxes
from sottovoce.server.regression.design.covariates import Covariates
from sottovoce.server.regression.design.mixing import Part, mixture

_GRID = np.linspace(0.0, 0.6, 31)  # how often the face alone may be asked


def shared_box(taus: tuple[float, ...], epsilon: float, known: Covariates) -> RegressionChannel:
    """Return the box that serves all levels with the smallest sum of their traces."""
    table = boxes(taus, epsilon, known)
    face, slope = table.face[:, :, None], table.slope[:, :, None]
    lone = int(np.flatnonzero(table.slopes == 0)[0])
    mixed = face * (1 - _GRID) + table.face[:, lone, None, None] * _GRID, slope * (1 - _GRID)
    costs = known.costs
    with np.errstate(divide="ignore"):
        traces = costs[0] / mixed[0] + (costs[1:].sum() / mixed[1] if known.p else 0.0)
    value = traces.sum(axis=0)
    light = np.where(value <= value.min() * (1 + 5e-4), table.letters[:, None], np.inf)
    index, share = np.unravel_index(int(np.argmin(light)), light.shape)
    channel = table.channel(int(index), epsilon)
    size = channel.slopes
    parts = [Part(channel, None if 0 < size < known.p else tuple(range(1, size + 1)))]
    shares = [1 - float(_GRID[share])]
    if _GRID[share] > 0:
        parts.append(Part(table.channel(lone, epsilon), ()))
        shares.append(float(_GRID[share]))
    return mixture("shared box", taus, known, parts, shares)
