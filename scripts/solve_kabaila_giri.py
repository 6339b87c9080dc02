r"""Solve the table behind the Kabaila-Giri interval (2009, Journal of Statistical Planning and Inference 139, 3419).

A target `y0 ~ N(theta, 1)` and a source `yS ~ N(theta + b, ratio)`, independent, `b` unknown and unrestricted. With
`D = 1 + ratio`, `w = (yS - y0) / sqrt(D)` and the normal quantile `z` of the level, the interval is

    y0 + sign(w) move(|w|) / sqrt(D)  +-  z inflation(|w|),

both functions linear between knots, `move = 0` and `inflation = 1` from the last knot on, where it is the target's own.
They minimise the mean length at `b = 0` among all whose coverage is at least the level, and whose mean length is at
most `LONGEST` times the target's own, whatever `b`. Lengths are linear in `inflation`. Given `w` the error of `y0` is
normal, so that the coverage at `b = m sqrt(D)` is a smooth integral over `w`,

    int phi(w - m) P(|m - w + sign(w) move + sqrt(ratio) xi| <= sqrt(D) z inflation) dw,

and a sequence of linear programmes within a trust region finds the optimum from the target's own interval; a small
price on curvature keeps it smooth. At ratio 0, where it holds for any source whatever, the variance of `xi` goes down
to `FAINTEST`. What is stored is verified by the other conditioning, at the ratios of the table and between them; a row
is solved again, with more coverage asked for, where that falls short. There, with the target's variance as unit, given
the source, which errs by `t`, the target errs by `t - sqrt(D) w`, and both edges of the interval are linear in `w`
between knots: the errors that are covered form intervals between exact crossings. Their normal probability is then
averaged over the source's own distribution.

Run `python scripts/solve_kabaila_giri.py` (two minutes on one core) to write the table anew; `--check` verifies it.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d
from scipy.optimize import linprog
from scipy.special import ndtr

from sottovoce.inference.common.normal import two_sided
from sottovoce.inference.integration import kabaila_giri
from sottovoce.inference.integration.kabaila_giri import LAST, PIECES, RATIOS, ShapeRow, blend, table

Array = NDArray[np.float64]

TABLE = Path(kabaila_giri.__file__).with_name(kabaila_giri.TABLE)
LONGEST, SLACK, TURNS = 1.03, 2e-5, 12
# The price of curvature, and the variance that stands for none.
CURVATURE, FAINTEST = 1e-3, 3e-4
FURTHEST = 14.0
SHIFTS = np.arange(0.0, FURTHEST + 1e-9, 0.02)
KNOTS = PIECES + 1
# No difference of estimates that matters lies beyond, in its own standard errors.
BEYOND = 60.0


class Problem:
    """One level and one ratio: integrals over the distance, linear in a curve, which is moves and then inflations."""

    def __init__(self, level: float, ratio: float, noise: float) -> None:
        self.root, self.noise, knots = math.sqrt(1.0 + ratio), math.sqrt(noise), knots_to(LAST[level])
        self.half = self.root * two_sided(level)
        # An exact penalty: more than the length that a unit of coverage costs.
        self.fine = 3.0 / float(density(np.array(two_sided(level))))
        self.shifts = np.arange(0.0, FURTHEST + 1e-9, 0.1 if noise > 0.05 else 0.05 if noise > 0.003 else 0.025)
        points, weights = np.polynomial.legendre.leggauss(max(4, math.ceil(3.0 * knots[1] / self.noise)))
        self.x = (knots[:-1, None] + knots[1] * (points + 1.0) / 2.0).ravel()
        self.hats = np.maximum(0.0, 1.0 - np.abs(self.x[:, None] - knots) / knots[1])
        weights = np.tile(weights * knots[1] / 2.0, PIECES)
        self.mass = {side: density(side * self.x - self.shifts[:, None]) * weights for side in (1, -1)}
        self.mean = np.hstack([np.zeros((self.shifts.size, KNOTS)), hat_means(self.shifts, LAST[level])])
        curvature = CURVATURE * np.diff(np.eye(KNOTS), 2, axis=0)
        self.curvature = np.block([[curvature / self.root, 0.0 * curvature], [0.0 * curvature, curvature]])
        self.highest = np.concatenate([knots, np.full(KNOTS, 2.0)])
        self.far = level - self.near(OWN)[0]

    def near(self, curve: Array) -> tuple[Array, Array]:
        """Return the coverage before the last knot at each shift, and its derivatives."""
        centre, half = self.x - self.hats @ curve[:KNOTS], self.half * (self.hats @ curve[KNOTS:])
        chance, by_move, by_inflation = np.zeros(self.shifts.size), np.zeros((1, 1)), np.zeros((1, 1))
        for side, mass in self.mass.items():
            away = side * centre - self.shifts[:, None]
            low, high = (away - half) / self.noise, (away + half) / self.noise
            chance += (mass * (ndtr(high) - ndtr(low))).sum(1)
            at_low, at_high = mass * density(low) / self.noise, mass * density(high) / self.noise
            by_move, by_inflation = by_move + side * (at_low - at_high), by_inflation + at_low + at_high
        return chance, np.hstack([by_move @ self.hats, self.half * (by_inflation @ self.hats)])

    def price(self, curve: Array, aim: Array) -> tuple[float, Array, Array]:
        """Return the length at shift 0 with curvature and failures paid for, the room to the aim, its derivatives."""
        covered, slope = self.near(curve)
        room, excess = covered + self.far - aim, self.mean @ (curve - OWN) - (LONGEST - 1.0 - SLACK)
        failures = max(0.0, -room.min()) + max(0.0, excess.max())
        curvature = np.abs(self.curvature @ curve).sum()
        return float(1.0 + self.mean[0] @ (curve - OWN) + curvature + self.fine * failures), room, slope


OWN = np.concatenate([np.zeros(KNOTS), np.ones(KNOTS)])


def programme(problem: Problem, curve: Array, room: Array, slope: Array, trust: float) -> tuple[Array, float]:
    """Return the best curve within the trust region as the tangent sees it, and the price it expects."""
    tight, pieces = room < 0.01, problem.curvature.shape[0]
    one, excess = np.eye(pieces), problem.mean @ (curve - OWN) - (LONGEST - 1.0 - SLACK)

    def columns(count: int, *values: float) -> Array:
        return np.tile(np.array(values), (count, 1))

    rows = np.block(
        [
            [-slope[tight], np.zeros((tight.sum(), pieces)), columns(tight.sum(), -1.0, 0.0)],
            [problem.mean, np.zeros((excess.size, pieces)), columns(excess.size, 0.0, -1.0)],
            [problem.curvature, -one, columns(pieces, 0.0, 0.0)],
            [-problem.curvature, -one, columns(pieces, 0.0, 0.0)],
        ]
    )
    limits = np.concatenate([room[tight], -excess, -problem.curvature @ curve, problem.curvature @ curve])
    reach = trust * np.repeat([2.0 * problem.root, 1.0], KNOTS)
    low, high = np.maximum(-reach, -curve), np.minimum(reach, problem.highest - curve)
    low[[PIECES, -1]] = high[[PIECES, -1]] = 0.0
    bounds = [*zip(low, high, strict=True), *[(0.0, None)] * (pieces + 2)]
    costs = np.concatenate([problem.mean[0], np.ones(pieces), [problem.fine] * 2])
    answer = linprog(costs, rows, limits, bounds=bounds, method="highs")
    if answer.status != 0:
        return curve, math.inf
    return curve + answer.x[: curve.size], float(answer.fun + 1.0 + problem.mean[0] @ (curve - OWN))


def improve(problem: Problem, curve: Array, aim: Array, trust: float) -> Array:
    """Return the optimum that a sequence of linear programmes reaches from the curve."""
    price, room, slope = problem.price(curve, aim)
    for _ in range(150):
        trial, expected = programme(problem, curve, room, slope, trust)
        if price - expected < 1e-7 or trust < 1e-6:
            break
        tried = problem.price(trial, aim)
        kept = (price - tried[0]) / (price - expected)
        if kept > 0.0:
            curve, (price, room, slope) = trial, tried
        trust = trust / 3.0 if kept < 0.25 else min(2.0 * trust, 0.3) if kept > 0.75 else trust
    return curve


def solve(level: float, ratio: float, more: Array) -> ShapeRow:
    """Return the row of a ratio (0: of a source of any distribution) with so much more coverage at each of `SHIFTS`."""
    curve, trust = OWN, 0.05
    for noise in (0.02, 0.005, 0.001, FAINTEST) if ratio == 0.0 else (ratio,):
        problem = Problem(level, ratio, noise)
        curve, trust = improve(problem, curve, level + np.interp(problem.shifts, SHIFTS, more), trust), 0.02
    values = [round(abs(float(value)), 4) for value in curve]
    return ShapeRow(tuple(values[:KNOTS]), tuple(values[KNOTS:]), LAST[level])


def places() -> list[tuple[int, float]]:
    """Return the ratios to verify, each with the number of the row below it."""
    small = [(0, share * RATIOS[0]) for share in (0.0, 0.1, 0.3, 0.6)]
    steps = [
        (k, below * (above / below) ** (quarter / 4.0))
        for k, (below, above) in enumerate(pairwise(RATIOS))
        for quarter in range(4)
    ]
    return small + steps


def solve_level(level: float) -> list[ShapeRow]:
    """Return the rows of a level; ask for more where the coverage falls short, at the ratios or between them."""
    ratios, own = [0.0, *RATIOS[1:-1]], ShapeRow((0.0,) * KNOTS, (1.0,) * KNOTS, LAST[level])
    more = np.zeros((len(RATIOS), SHIFTS.size))
    rows = [*(solve(level, ratio, each) for ratio, each in zip(ratios, more, strict=False)), own]
    for turn in range(TURNS):
        lack = np.zeros(more.shape)
        for k, ratio in places():
            missing = level - coverage(blend(rows, ratio), level, ratio, SHIFTS)
            touched = [k] if ratio <= RATIOS[0] or ratio == RATIOS[k] else [k, k + 1]
            lack[touched] = np.maximum(lack[touched], missing)
        report(f"{level:g}, turn {turn}: short by {lack.max():.6f}")
        if lack.max() < SLACK:
            break
        more += 1.5 * maximum_filter1d(lack, 11, axis=1)
        for k, ratio in enumerate(ratios):
            if lack[k].max() > SLACK / 2.0:
                rows[k] = solve(level, ratio, more[k])
    return rows


def verify(level: float, rows: Sequence[ShapeRow]) -> bool:
    """Say how the rows do at their ratios and between them, and whether all is well."""
    least = longest = 0.0
    for k, ratio in places():
        row = blend(rows, ratio)
        covered, lengths = coverage(row, level, ratio, SHIFTS), mean_length(row, SHIFTS)
        report(
            f"{level:g} ratio {ratio:8.4f}{' ' if ratio in (0.0, RATIOS[k]) else '*'} "
            f"coverage {covered.min():.5f} at {SHIFTS[covered.argmin()]:5.2f}, "
            f"length {lengths[0]:.4f} at 0, {lengths.max():.5f} at most"
        )
        least, longest = max(least, level - float(covered.min())), max(longest, float(lengths.max()))
    report(f"{level:g}: least coverage {level - least:.6f}, greatest mean length {longest:.5f}")
    return least < SLACK and longest < LONGEST + SLACK


def coverage(row: ShapeRow, level: float, ratio: float, shifts: Array) -> Array:
    """Return the coverage at each shift of the source, in standard errors of the difference."""
    root, error = math.sqrt(1.0 + ratio), math.sqrt(ratio)
    if ratio == 0.0:
        return given_source(row, level, ratio, shifts)
    step = min(0.02, error / 12.0)
    half = np.arange(0.0, root * shifts.max() + 7.0 * error, step)
    values = given_source(row, level, ratio, half)
    source, values = np.concatenate([-half[:0:-1], half]), np.concatenate([values[:0:-1], values])
    weights = density((source - root * shifts[:, None]) / error)
    averages: Array = weights @ values / weights.sum(1)
    return averages


def given_source(row: ShapeRow, level: float, ratio: float, source: Array) -> Array:
    """Return the probability of covering when the source errs by the given numbers."""
    root = math.sqrt(1.0 + ratio)
    knots, move, inflation = knots_to(row.last), np.array(row.move), np.array(row.inflation)
    w = np.concatenate([[-BEYOND], -knots[:0:-1], knots, [BEYOND]])
    move = np.concatenate([[0.0], -move[:0:-1], move, [0.0]]) / root
    half = two_sided(level) * np.concatenate([[1.0], inflation[:0:-1], inflation, [1.0]])
    error = source[:, None] - root * w
    first, last = np.zeros((source.size, w.size - 1)), np.ones((source.size, w.size - 1))
    for room in (half - error - move, half + error + move):
        left, right = room[:, :-1], room[:, 1:]
        crossing = left / np.where(left == right, 1.0, left - right)
        np.maximum(first, crossing, out=first, where=(left < 0) & (right >= 0))
        np.minimum(last, crossing, out=last, where=(left >= 0) & (right < 0))
        last[(left < 0) & (right < 0)] = 0.0
    start, widths = error[:, :-1], root * np.diff(w)
    parts = ndtr(start - widths * first) - ndtr(start - widths * np.maximum(first, last))
    chances: Array = parts.sum(1)
    return chances


def mean_length(row: ShapeRow, shifts: Array) -> Array:
    """Return the mean length over the target's own at each shift, in standard errors of the difference."""
    return 1.0 + hat_means(shifts, row.last) @ (np.array(row.inflation) - 1.0)


def hat_means(shifts: Array, last: float) -> Array:
    """Return the mean of each knot's hat function of |w|, for w normal around each shift."""
    knots = knots_to(last)
    means = np.zeros((shifts.size, knots.size))
    for centre in (shifts, -shifts):
        z = knots - centre[:, None]
        mass = np.diff(ndtr(z))
        above = (-np.diff(density(z)) - z[:, :-1] * mass) / knots[1]
        means[:, 1:] += above
        means[:, :-1] += mass - above
    return means


def knots_to(last: float) -> Array:
    """Return the distances between which the interval's shape is linear."""
    return np.linspace(0.0, last, PIECES + 1)


def density(x: Array) -> Array:
    """Return the standard normal density."""
    values: Array = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return values


def report(line: str) -> None:
    """Say how far it has come."""
    sys.stderr.write(line + "\n")


def main() -> None:
    """Write the table, or verify what is stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="verify the stored table; nothing solved, nothing written")
    check = parser.parse_args().check
    rows = {level: table(level) if check else solve_level(level) for level in LAST}
    well = [verify(level, each) for level, each in rows.items()]
    if not all(well):
        sys.exit("the coverage or the length falls short at a ratio above.")
    if not check:
        TABLE.write_text(written(rows))


def written(rows: Mapping[float, Sequence[ShapeRow]]) -> str:
    """Return the table: a line for each level and ratio, moves at knots 1 to 19 and inflations at knots 0 to 19."""
    head = ["level", "ratio", *(f"move_{k}" for k in range(1, PIECES)), *(f"inflation_{k}" for k in range(PIECES))]
    lines = [
        [f"{level:g}", f"{ratio:g}", *(f"{value:.4f}" for value in (*row.move[1:-1], *row.inflation[:-1]))]
        for level, each in rows.items()
        for ratio, row in zip(RATIOS, each, strict=True)
    ]
    return "".join(",".join(line) + "\n" for line in [head, *lines])


if __name__ == "__main__":
    main()
