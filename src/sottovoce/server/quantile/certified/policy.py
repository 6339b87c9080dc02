"""Where to ask next, so that the certified interval becomes short; what it covers never depends on this.

Among candidates, the point is taken at which asking all reports that are left on a side would promise the best bound: a
class up to the point is rejected with the chance that the guide gives it, and the bound passes a class only if it
passes all classes outside of it. Lengths count as they are up to ``far`` units of noise, and by their logarithm beyond.
"""

import math

import numpy as np
from scipy.special import ndtr, ndtri

from sottovoce.core.arrays import Floats
from sottovoce.inference.quantile.error_budgets import DONE, LEAST, Classes
from sottovoce.server.quantile.certified.curves import Answers, Guide, isotonic

FAR = 30.0
RESCUE, OUTSIDE = 5.25, 0.6  # of a point that is asked when an end has no certificate yet: standard errors beyond the
# level, or, where so many cannot be had, this part of all that lies beyond it


def best_point(
    classes: Classes,
    guide: Guide,
    power: float,
    whole: float,
    side: int,
    limits: tuple[float, float],
    far: float = FAR,
) -> float:
    """Return the most promising point of a side.

    ``power`` turns mass into standard errors for the reports left on the side, ``whole`` for one half of all.
    """
    budgets = classes.budgets[0]
    scores = np.where(budgets >= DONE, -np.inf, -ndtri(np.clip(budgets, LEAST, 1.0)))
    return promising(classes.edges, scores, guide, power, whole, side, limits, far)


def promising(
    edges: Floats,
    scores: Floats,
    guide: Guide,
    power: float,
    whole: float,
    side: int,
    limits: tuple[float, float],
    far: float = FAR,
) -> float:
    """Return the most promising point where each class needs so many standard errors to be rejected."""
    unit = guide.unit(1 / whole)
    centre, outermost, candidates = guide.centre, limits[0], guide.candidates(side, 1 / power)
    if side > 0:  # mirrored, so that the bound is always a lower one
        edges, scores, candidates = -edges[::-1], scores[::-1], -candidates
        centre, outermost = -centre, -limits[1]
    candidates = np.concatenate((candidates, edges[edges > centre - 200 * unit]))
    candidates = np.unique(candidates[(candidates < centre + 20 * unit) & (candidates > outermost)])
    if len(candidates) == 0:
        candidates = np.array([max(centre - unit, np.nextafter(outermost, math.inf))])
    masses = guide.masses(candidates) if side < 0 else -guide.masses(-candidates)
    levels, which = np.unique(scores, return_inverse=True)
    chance = np.einsum("ijk,j->ik", ndtr(power * masses[:, :, None] - levels), guide.weights)
    chances = np.where(np.isneginf(levels), 1.0, chance)[:, which]  # of every class, were it to hear the point
    return float(
        -side * candidates[np.argmax(_promise(candidates, edges, scores, chances, centre, unit, outermost, far))]
    )


def _promise(
    candidates: Floats,
    edges: Floats,
    scores: Floats,
    chances: Floats,
    centre: float,
    unit: float,
    outermost: float,
    far: float,
) -> Floats:
    """Return the expected length that each candidate takes away from outside."""
    rows, number = np.arange(len(candidates)), len(edges)
    far *= unit

    def length(at: Floats | float) -> Floats:
        return far * np.arcsinh((np.asarray(at) - centre) / far)

    start = float(length(outermost if math.isfinite(outermost) else centre - 1e13 * far))
    inner = length(np.minimum(edges, centre + 60 * unit))
    rejected = np.isneginf(scores)
    hears = edges <= candidates[:, None]
    passed = np.minimum.accumulate(
        np.column_stack((np.ones(len(rows)), np.where(hears, chances[:, :number], rejected[:number]))), axis=1
    )
    widths = np.maximum(np.diff(inner, prepend=start), 0.0)
    promise = passed[:, 1:] @ widths
    # the class that the candidate divides: its outer part is heard
    place = np.searchsorted(edges, candidates)
    begin = np.where(place > 0, np.append(inner, start)[place - 1], start)
    divided = ~np.isin(candidates, edges) & ~rejected[place]
    part = np.maximum(length(candidates) - np.maximum(begin, start), 0.0)
    return np.asarray(promise + np.where(divided, np.minimum(passed[rows, place], chances[rows, place]) * part, 0.0))


def rescue_point(answers: Answers, tau: float, power: float, side: int) -> float | None:
    """Return the nearest asked point far enough from the level for a certificate, by the increasing fit alone."""
    off, beyond = side * (isotonic(answers) - tau), tau if side < 0 else 1 - tau
    sure = answers.points[off > min(RESCUE / power, OUTSIDE * beyond)]
    if len(sure) == 0:
        return None
    return float(sure[-1] if side < 0 else sure[0])
