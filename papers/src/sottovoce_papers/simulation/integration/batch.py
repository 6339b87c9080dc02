"""The default and the cautious combination of many replications at once, equal to `inference.integration`."""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.integration import kabaila_giri, weighted
from sottovoce.inference.integration.limited_translation import MOST, REACH

HALVINGS = 60


class Sites(NamedTuple):
    """Estimates and errors of the sources, (replications, sources); a source that cannot be used has infinite error."""

    estimates: Floats
    errors: Floats


def valid_intervals(estimate: Floats, error: Floats, low: Floats, high: Floats, sources: Sites, level: float) -> Floats:
    """Return the lower and upper edges of the default interval, (replications, 2)."""
    precision = sources.errors**-2.0
    total = precision.sum(axis=1)
    pooled = np.sum(precision * (sources.estimates - estimate[:, None]), axis=1) / np.maximum(total, 1e-300)
    ratio = 1 / np.maximum(total, 1e-300) / error**2
    distance = np.abs(pooled) / np.hypot(error, np.sqrt(ratio) * error)
    pull, stretch = _shapes(level, ratio, distance)
    by = pull * pooled / (1 + ratio)
    return np.stack([estimate + by - stretch * (estimate - low), estimate + by + stretch * (high - estimate)], axis=1)


def _shapes(level: float, ratio: Floats, distance: Floats) -> tuple[Floats, Floats]:
    """Look up pull and stretch, bilinearly as `kabaila_giri.shape` does."""
    rows = kabaila_giri.table(level)
    moves, stretches = np.array([row.move for row in rows]), np.array([row.inflation for row in rows])
    knots, last = np.log(kabaila_giri.RATIOS), rows[0].last
    place = np.interp(np.log(np.maximum(ratio, 1e-300)), knots, np.arange(len(knots), dtype=np.float64))
    row = np.minimum(place.astype(np.int64), len(knots) - 2)
    across = (place - row)[:, None]
    move = (1 - across) * moves[row] + across * moves[row + 1]
    stretch = (1 - across) * stretches[row] + across * stretches[row + 1]
    steps = np.minimum(distance * kabaila_giri.PIECES / last, kabaila_giri.PIECES - 1e-9)
    knot = steps.astype(np.int64)
    along, every = steps - knot, np.arange(len(distance))
    moved = (1 - along) * move[every, knot] + along * move[every, knot + 1]
    stretched = (1 - along) * stretch[every, knot] + along * stretch[every, knot + 1]
    pull = np.where(knot > 0, moved / np.maximum(distance, 1e-300), move[:, 1] * kabaila_giri.PIECES / last)
    far = distance >= last
    return np.where(far, 0.0, pull), np.where(far, 1.0, stretched)


def limited_moves(estimate: Floats, error: Floats, sources: Sites, most: float = MOST) -> Floats:
    """Return the point estimates of limited translation, by bisection."""
    apart = (sources.estimates - estimate[:, None]) / error[:, None]
    errors = sources.errors / error[:, None]
    precision = errors**-2.0
    reach = np.where(np.isfinite(errors), REACH * errors, 0.0)
    low, high = np.full(len(estimate), -most), np.full(len(estimate), most)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        excess = middle - np.sum(precision * np.clip(apart - middle[:, None], -reach, reach), axis=1)
        low, high = np.where(excess < 0, middle, low), np.where(excess < 0, high, middle)
    return np.asarray(estimate + error * (low + high) / 2)


def cautious_intervals(estimate: Floats, error: Floats, low: Floats, high: Floats, sources: Sites) -> Floats:
    """Return the edges of the cautious interval, (replications, 2): the target's own, shortened and moved."""
    precision = sources.errors**-2.0
    total = np.maximum(precision.sum(axis=1), 1e-300)
    pooled = np.sum(precision * (sources.estimates - estimate[:, None]), axis=1) / total
    variance, own = 1 / total, error**2
    shift = np.abs(pooled) + weighted.CAUTION * np.sqrt(own + variance)
    share = np.where(variance > own, 0.0, 1 / (1 + (variance + shift**2) / own))
    part = np.sqrt((1 - share) * own + share * np.where(variance > own, 0.0, variance)) / error
    centre = estimate + share * pooled
    return np.stack([centre - part * (estimate - low), centre + part * (high - estimate)], axis=1)
