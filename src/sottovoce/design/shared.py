"""Several quantile levels from one report: a face that tells between which fitted quantiles the response lies.

The alternative is to ask each person for one level, drawn at random; it costs each level a factor "number of levels"
in variance. Sharing costs less at large budgets and more at small ones (notes, section 4).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sottovoce.design.boxes import boxes
from sottovoce.design.covariates import Covariates
from sottovoce.design.mixing import Part, mixture
from sottovoce.design.omega import covariance
from sottovoce.protocol.blocks import RegressionChannel

Floats = npt.NDArray[np.float64]

_GRID = np.linspace(0.0, 0.6, 31)  # how often the face alone may be asked


def shared_box(taus: tuple[float, ...], epsilon: float, known: Covariates, alone: Sequence[float]) -> RegressionChannel:
    """Return the box that serves all levels with the smallest mean of trace / trace of a level ``alone``."""
    table = boxes(taus, epsilon, known)
    face, slope = table.face[:, :, None], table.slope[:, :, None]
    lone = int(np.flatnonzero(table.slopes == 0)[0])
    mixed = face * (1 - _GRID) + table.face[:, lone, None, None] * _GRID, slope * (1 - _GRID)
    costs = known.costs
    with np.errstate(divide="ignore"):
        traces = costs[0] / mixed[0] + (costs[1:].sum() / mixed[1] if known.p else 0.0)
    value = (traces / np.asarray(alone)[:, None, None]).mean(axis=0)
    light = np.where(value <= value.min() * (1 + 5e-4), table.letters[:, None], np.inf)
    index, share = np.unravel_index(int(np.argmin(light)), light.shape)
    channel = table.channel(int(index), epsilon)
    size = channel.slopes
    parts = [Part(channel, None if 0 < size < known.p else tuple(range(1, size + 1)))]
    shares = [1 - float(_GRID[share])]
    if _GRID[share] > 0:
        parts.append(Part(table.channel(lone, epsilon), ()))
        shares.append(float(_GRID[share]))
    return mixture("shared box", taus, known, parts, shares, 1 / np.asarray(alone))


def factors(shared: RegressionChannel, known: Covariates, alone: Sequence[float]) -> Floats:
    """Return, for each level, the trace of the shared channel over that of a channel for this level alone."""
    traces = [np.trace(covariance(shared, known, level)) for level in range(len(shared.taus))]
    return np.asarray(np.array(traces, dtype=float) / np.array(alone, dtype=float))
