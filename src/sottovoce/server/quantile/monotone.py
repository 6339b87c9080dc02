"""A distribution function through noisy answers, without a model: isotonic regression, read between its steps."""

from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.asking import Decoded


def read_quantiles(heard: Sequence[Decoded], taus: Floats) -> Floats:
    """Return where the pooled answers cross some levels: pool adjacent violators, then interpolate.

    Levels beyond the outermost steps are put at the outermost points.
    """
    points = np.concatenate([answer.points for answer in heard])
    below = np.concatenate([answer.below for answer in heard])
    weights = 1 / np.concatenate([answer.variances for answer in heard])
    order = np.argsort(points, kind="stable")
    blocks: list[tuple[float, float, float]] = []  # of one level: place, level, weight
    for i in order:
        place, level, weight = float(points[i]), float(below[i]), float(weights[i])
        while blocks and blocks[-1][1] >= level:
            earlier, old, heavy = blocks.pop()
            total = heavy + weight
            place = (earlier * heavy + place * weight) / total
            level, weight = (old * heavy + level * weight) / total, total
        blocks.append((place, level, weight))
    places, levels = np.array([block[0] for block in blocks]), np.array([block[1] for block in blocks])
    quantiles: Floats = np.interp(taus, levels, places)
    return quantiles
