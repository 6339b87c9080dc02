"""Where may the quantile be, and how steep is the distribution function? No interval rests on these guides.

While little is known, `CurveBelief` weighs logistic curves by the answers, on a linear axis and on one that grows with
the magnitude, each with its place and width. Once the answers around the quantile tell a slope, `LocalLine` is a
straight line through the nearest of them. Both say of any point how far below the level the function may be there.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr

from sottovoce.core.arrays import Floats, Ints

TINY, HUGE = 1e-6, 1e12  # the finest unit and the farthest place that are looked for without public knowledge
PLACES, WIDTHS, CURVES = 100, 12, 48  # grid of places and widths, and how many curves speak for all
WIDEST, NARROWEST = 30.0, 0.006  # widths, in brackets
MISFIT = 0.15  # of the tail: no curve is exact, and no answer counts as known better
REACH = 3.0  # tails around the level beyond which values count as equal
STEEP = 6.0  # standard errors of a slope from which on it is believed
BENT = 0.6  # error of a straight line at a mass offset d: BENT d^2 / tail
MIDDLE = 0.8  # of a side: an answer beyond it tells little about the slope
SURE = 4.2  # standard errors of pooled answers that bracket the quantile
NODES, _weights = np.polynomial.hermite_e.hermegauss(7)
PARTS = _weights / _weights.sum()


class Answers(NamedTuple):
    """Estimates of the distribution function at ascending points, and their precisions."""

    points: Floats
    values: Floats
    precisions: Floats


def pooled(points: list[float], values: list[float], precisions: list[float]) -> Answers:
    """Sort answers, and pool those at one point."""
    at, where = np.unique(np.array(points), return_inverse=True)
    total = np.bincount(where, weights=np.array(precisions)).astype(np.float64)
    mean = np.bincount(where, weights=np.array(precisions) * np.array(values)) / total
    return Answers(at, mean, total)


def isotonic(answers: Answers) -> Floats:
    """Return the increasing values closest to the answers."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(answers.values.tolist(), answers.precisions.tolist(), strict=True):
        level, heavy, number = value, weight, 1
        while blocks and blocks[-1][0] >= level:
            before, other, more = blocks.pop()
            level = (before * other + level * heavy) / (other + heavy)
            heavy, number = heavy + other, number + more
        blocks.append((level, heavy, number))
    return np.repeat([block[0] for block in blocks], [block[2] for block in blocks])


def bracket(answers: Answers, tau: float, errors: float = SURE) -> tuple[int, int]:
    """Return the last point clearly below the quantile and the first clearly above it; -1 and the number if none.

    A run of points counts together: the first of a run whose mean is clearly below the level is below the quantile.
    """
    deviations = np.concatenate(([0.0], np.cumsum(answers.precisions * (answers.values - tau))))
    weights = np.concatenate(([0.0], np.cumsum(answers.precisions)))
    runs = np.sqrt(np.maximum(weights[None, 1:] - weights[:-1, None], 1e-300))
    scores = (deviations[None, 1:] - deviations[:-1, None]) / runs
    ahead = np.triu(np.ones_like(scores, dtype=bool))
    low = np.where(ahead, -scores, -np.inf).max(axis=1)
    high = np.where(ahead, scores, -np.inf).max(axis=0)
    below, above = np.flatnonzero(low >= errors), np.flatnonzero(high >= errors)
    first = int(below[-1]) if len(below) else -1
    last = int(above[0]) if len(above) else len(low)
    if first >= last:  # a contradiction: the stronger evidence counts
        if low[first] >= high[last]:
            last = int(next(iter(above[above > first]), len(low)))
        else:
            below = below[below < last]
            first = int(below[-1]) if len(below) else -1
    return first, last


class Axis(NamedTuple):
    """A coordinate: linear, or growing with the magnitude where a unit is given."""

    unit: float | None

    def of(self, values: Floats | float) -> Floats:
        """Return the coordinates of values."""
        return np.asarray(values if self.unit is None else np.arcsinh(np.asarray(values) / self.unit), dtype=np.float64)

    def back(self, places: Floats) -> Floats:
        """Return the values at coordinates; beyond all that is looked for they stay finite."""
        if self.unit is None:
            return np.asarray(places, dtype=np.float64)
        return np.asarray(self.unit * np.sinh(np.clip(places, -300.0, 300.0)), dtype=np.float64)


class Window(NamedTuple):
    """Where the quantile is looked for: a bracket, within the widest one, and the finest unit."""

    low: float
    high: float
    lowest: float
    highest: float
    unit: float


class CurveBelief:
    """Curves that could be the distribution function, drawn by their likelihood."""

    weights = np.full(CURVES, 1 / CURVES)

    def __init__(self, answers: Answers, tau: float, window: Window) -> None:
        big, small = max(abs(window.low), abs(window.high)), min(abs(window.low), abs(window.high))
        alike = window.low * window.high > 0 and small >= big / 3
        self._axes = [Axis(None)] if alike else [Axis(None), Axis(max(window.unit, 1e-6 * big))]
        self._tau, self._logit = tau, math.log(tau / (1 - tau))
        # how far below the level the function lies far from it, at an atom say, tells nothing of the shape near it
        near = tau - REACH * min(tau, 1 - tau), tau + REACH * min(tau, 1 - tau)
        values = np.clip(answers.values, *near)
        precisions = 1 / (1 / answers.precisions + (MISFIT * min(tau, 1 - tau)) ** 2)
        grids, logs = [], []
        for axis in self._axes:
            places, widths = _grid(axis, window)
            at = axis.of(answers.points)
            curves = expit(self._logit + (at[:, None, None] - places[None, None, :]) / widths[None, :, None])
            squares = (np.clip(curves, *near) - values[:, None, None]) ** 2 * precisions[:, None, None]
            grids.append((places, widths))
            logs.append(-0.5 * squares.sum(axis=0))
        top = max(float(log.max()) for log in logs)
        chances = [np.exp(log - top) for log in logs]
        self._places = np.concatenate([axis.back(grid[0]) for axis, grid in zip(self._axes, grids, strict=True)])
        belief = np.concatenate([chance.sum(axis=0) for chance in chances])
        order = np.argsort(self._places)
        self._places, belief = self._places[order], belief[order] / belief.sum()
        self._cumulated = np.cumsum(belief) - belief / 2
        self._draw(chances, grids)
        self.centre = float(self.quantile(0.5))
        self.doubt = math.sqrt(float(np.mean(self.masses(np.array([self.centre])) ** 2)))
        self.spread = max(float(self.quantile(0.9) - self.quantile(0.1)) / 2.563, 1e-300)
        self.edges = float(belief[:4].sum()), float(belief[-4:].sum())

    def _draw(self, chances: list[Floats], grids: list[tuple[Floats, Floats]]) -> None:
        """Draw curves evenly from all, by their weight."""
        cumulated = np.cumsum(np.concatenate([chance.T.ravel() for chance in chances]))
        picked = np.searchsorted(cumulated, (np.arange(CURVES) + 0.5) / CURVES * cumulated[-1])
        first = chances[0].size
        self._kind = (picked >= first).astype(np.int64)
        index = picked - first * self._kind
        self._place, self._width = np.empty(CURVES), np.empty(CURVES)
        for kind, (places, widths) in enumerate(grids):
            chosen = self._kind == kind
            self._place[chosen] = places[index[chosen] // WIDTHS]
            self._width[chosen] = widths[index[chosen] % WIDTHS]

    def quantile(self, part: Floats | float) -> Floats:
        """Return the place up to which a part of the belief lies."""
        return np.asarray(np.interp(part, self._cumulated, self._places))

    def masses(self, points: Floats) -> Floats:
        """Return how far each curve lies below the level at some points, (points, curves)."""
        at = np.stack([axis.of(points) for axis in self._axes])[self._kind].T
        return np.asarray(self._tau - expit(self._logit + (at - self._place) / self._width))

    def unit(self, noise: float) -> float:
        """Return the distance over which a distribution function moves by a noise."""
        return self.spread * noise / max(self.doubt, 1e-12)

    def candidates(self, _side: int, _noise: float) -> Floats:
        """Return points worth asking: over the belief, and along the middle curve of each axis."""
        found = [self.quantile(np.linspace(0.01, 0.99, 25))]
        for kind, axis in enumerate(self._axes):
            chosen = self._kind == kind
            if np.any(chosen):
                width = math.exp(float(np.mean(np.log(self._width[chosen]))))
                found.append(axis.back(float(np.median(self._place[chosen])) + np.linspace(-5, 5, 21) * width))
        return np.unique(np.concatenate(found))


def _grid(axis: Axis, window: Window) -> tuple[Floats, Floats]:
    """Return places and widths of curves over a window."""
    low, high, lowest, highest = (float(axis.of(end)) for end in window[:4])
    edges = np.linspace(low, high, PLACES + 1)
    widest = min(WIDEST * (high - low), (highest - lowest) / 3)
    widths = np.exp(np.linspace(math.log(widest), math.log(NARROWEST * (high - low)), WIDTHS))
    return (edges[1:] + edges[:-1]) / 2, widths


def narrowed(answers: Answers, tau: float, window: Window) -> tuple[Window, CurveBelief]:
    """Shrink a window to where the belief lies, or widen it where the belief presses against an end."""
    belief = CurveBelief(answers, tau, window)
    for _ in range(4):
        width = window.high - window.low
        low, high = window.low, window.high
        if belief.edges[0] > 0.01 and low > window.lowest:
            low = max(window.lowest, low - width / 2)
        elif belief.edges[1] > 0.01 and high < window.highest:
            high = min(window.highest, high + width / 2)
        else:
            ends = belief.quantile(np.array([0.001, 0.999]))
            room = 0.45 * float(ends[1] - ends[0])
            low, high = max(low, float(ends[0]) - room), min(high, float(ends[1]) + room)
            if not high - low < 0.6 * width:
                break
            high = max(high, low + 1e-12 * max(abs(low), abs(high), window.unit))
        window = window._replace(low=low, high=high)
        belief = CurveBelief(answers, tau, window)
    return window, belief


class LocalLine:
    """A straight line around the quantile, whose root is uncertain."""

    weights = PARTS

    def __init__(self, answers: Answers, tau: float, limits: tuple[float, float]) -> None:
        self._tau, tail = tau, min(tau, 1 - tau)
        points, values, precisions = answers
        fit = isotonic(answers)
        first, last = bracket(answers, tau)
        ends = (points[first] if first >= 0 else limits[0], points[last] if last < len(points) else limits[1])
        place = int(np.searchsorted(fit, tau))
        if 0 < place < len(points):
            step = (tau - fit[place - 1]) / max(fit[place] - fit[place - 1], 1e-12)
            root = float(points[place - 1] + (points[place] - points[place - 1]) * step)
        else:
            root = float(points[min(place, len(points) - 1)])
        offset = np.maximum(np.abs(values - tau) - 1 / np.sqrt(precisions), 0.0)
        discounted = 1 / (1 / precisions + (BENT * offset**2 / tail) ** 2)
        for _ in range(2):
            root = float(np.clip(root, *ends))
            slope, variance, root, used = _line(points, values - tau, precisions, discounted, root)
            if slope == 0:
                slope = max(float(fit[-1] - fit[0]), 0.1 * tail) / max(float(points[-1] - points[0]), 1e-300)
                variance = (0.5 * tail / slope) ** 2
        self.centre, self._slope = float(np.clip(root, *ends)), slope
        spread = min(math.sqrt(variance), (ends[1] - ends[0]) / 2)
        self._roots = self.centre + spread * NODES
        self.doubt = self._slope * spread
        self.settled = self._tells(points[used], fit[used], precisions[used])

    def _tells(self, points: Floats, fit: Floats, precisions: Floats) -> bool:
        """Tell whether the best answer on each side is neither none nor all of it: only such tell a slope."""
        for side, most in ((-1, self._tau), (1, 1 - self._tau)):
            there = side * (points - self.centre) > 0
            if not np.any(there):
                return False
            best = np.argmax(np.where(there, precisions, 0.0))
            if side * (fit[best] - self._tau) > MIDDLE * most:
                return False
        return True

    def masses(self, points: Floats) -> Floats:
        """Return how far the line lies below the level at some points, for several roots, (points, roots)."""
        return np.clip(self._slope * (self._roots - points[:, None]), self._tau - 1, self._tau)

    def unit(self, noise: float) -> float:
        """Return the distance over which the line moves by a noise."""
        return noise / self._slope

    def candidates(self, side: int, noise: float) -> Floats:
        """Return points worth asking on one side."""
        return np.asarray(self.centre + side * np.exp(np.linspace(-1.6, 4.0, 40)) * self.unit(noise))


def _line(
    points: Floats, values: Floats, precisions: Floats, discounted: Floats, near: float
) -> tuple[float, float, float, Ints]:
    """Fit a line in the smallest window around a place in which its slope is clear.

    Returns slope (zero if none is seen), variance of the root, the root, and the points used.
    """
    order = np.argsort(np.abs(points - near), kind="stable")
    x = (points - near)[order]
    unit = max(float(np.median(np.abs(x))), 1e-60)  # squares of raw distances may not exist
    x, y = x / unit, values[order]
    weight, centre, mean, squares, products = _sums(x, y, precisions[order])
    with np.errstate(divide="ignore", invalid="ignore"):
        clear = products / np.sqrt(np.maximum(squares, 1e-300)) > STEEP
    both = (np.cumsum(x < 0) > 0) & (np.cumsum(x > 0) > 0)
    enough = np.flatnonzero(clear & both)
    chosen = int(enough[0]) if len(enough) else len(x) - 1
    weight, centre, mean, squares, products = (part[chosen] for part in _sums(x, y, discounted[order]))
    if not (squares > 0 and products > 0):
        return 0.0, 0.0, near, order
    slope = products / squares
    root = centre - mean / slope
    distance = root - centre
    variance = (1 / weight + min(distance**2 / squares, (slope * distance) ** 2)) / slope**2
    return float(slope / unit), float(variance * unit**2), float(near + root * unit), order[: chosen + 1]


def _sums(x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return running weight, means, squares and products of weighted points."""
    total = np.cumsum(weights)
    centre, mean = np.cumsum(weights * x) / total, np.cumsum(weights * y) / total
    squares = np.cumsum(weights * x * x) - total * centre**2
    return total, centre, mean, squares, np.cumsum(weights * x * y) - total * centre * mean


Guide = CurveBelief | LocalLine


def nearest_sure(guide: Guide, side: int, power: float, errors: float) -> float:
    """Return the nearest point on a side at which a test of this power alone would very probably reject."""
    if isinstance(guide, LocalLine):
        return guide.centre + side * guide.unit(errors / power)
    points = guide.candidates(side, 1 / power)
    points = points[side * (points - guide.centre) > 0]
    if len(points) == 0:
        return guide.centre
    chance = np.mean(ndtr(-side * power * guide.masses(points) - 2.6), axis=1)
    good = points[chance >= min(0.9, 0.98 * float(chance.max()))]
    return float(good[-1] if side < 0 else good[0])
