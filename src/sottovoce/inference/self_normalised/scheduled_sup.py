r"""The tail of `|B(1)| / sup |B(r) - g(r) B(1)|` for a schedule's own `g`, by walking a density between two walls.

Given `Z = B(1) = z > 0` the event is that `y(r) = b(r) + h(r) z`, `h(r) = r - g(r)`, stays within `x = z/v` of zero.
Over each of `STEPS` equal steps, on which `h` is taken linear, the density of `y` moves by the exact kernel of a
Brownian motion with drift between two absorbing walls: the images of the Gaussian kernel, tilted by the drift.
Gauss-Legendre points span the walls, and the average over `z` is a trapezoidal sum of a function that is flat at both
ends. Nothing is sampled.

For equal rounds the tail is exact to 3e-6, relative. Corners of `g` between two steps move the critical value by
about 1e-4 of itself (local steps that vary tenfold), and a near-jump of `g` (local steps that vary a thousandfold) by
5e-3.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sottovoce.inference.self_normalised.clock import Clock, detour
from sottovoce.inference.self_normalised.pivots import normal

Array = NDArray[np.float64]

STEPS = 128
# Spacings of z and of z/v; the second is finer because the chance to stay is flat, not analytic, at zero.
SPACING, FINE = 0.25, 0.1
# The bridge leaves [-3.4, 3.4] with probability 2 exp(-2 * 3.4^2) < 2e-10.
REACH = 3.4
# Within 0.08 of zero the bridge stays with probability exp(-pi^2 / (8 * 0.08^2)) < 1e-83.
NARROW = 0.08
# Steeper steps tilt the kernel by more than a double can hold: each of them gets a kernel of its own.
STEEP = 6.0


def scheduled_sup_tail(v: float, dial: Clock) -> float:
    """Return P(|B(1)| > v sup |B - g B(1)|)."""
    excess = detour(dial, STEPS)
    spacing = min(SPACING, FINE * v)
    slack = 1.0 - v * float(np.abs(excess).max())
    # A normal leaves [-6.5, 6.5] with probability 8e-11; tails below 0.01 are asked for finer.
    far = 6.5 if v < 4.0 else 8.4
    last = min(far, v * REACH / slack) if slack > 0.0 else far
    z = np.arange(1, math.ceil(last / spacing) + 1) * spacing
    inside = np.zeros_like(z)
    open_ = z / v > NARROW
    # Narrow rooms need fewer points, so they are walked apart from the wide ones.
    parts = [stays(part, part / v, excess) for part in np.array_split(z[open_], 4) if part.size]
    inside[open_] = np.concatenate(parts) if parts else 0.0
    density = spacing * np.exp(-(z**2) / 2.0) * math.sqrt(2.0 / math.pi)
    if last < far:
        # Beyond `last` the walls are out of reach, so the complement is summed: z = 0 itself has half a weight.
        return float(1.0 - spacing / math.sqrt(2.0 * math.pi) - np.sum(density * (1.0 - inside)))
    return float(np.sum(density * inside))


def stays(z: Array, wall: Array, excess: Array) -> Array:
    """Return P(sup |b + h z| < wall) for each pair of z and wall."""
    step = 1.0 / STEPS
    points, weights = grid(z, wall, excess)
    z, wall = z[:, None], wall[:, None]
    height, room = points + wall, 2.0 * wall
    rise = np.diff(excess)
    # The bridge starts and ends at zero, half way between the walls.
    edge = clear(wall, height, room, step)
    mass = edge * normal(points - z * rise[0], step)
    apart = points[:, :, None] - points[:, None, :]
    between = weights[:, None, :] * clear(height[:, :, None], height[:, None, :], room[:, :, None], step)
    kernel = between * normal(apart, step)
    for i in range(1, STEPS - 1):
        if abs(rise[i]) > STEEP * step:
            own = between * normal(apart - (z * rise[i])[:, :, None], step)
            mass = np.einsum("zij,zj->zi", own, mass)
            continue
        # The drift tilts the kernel; taken about h z, where the mass is, the exponents stay small.
        slope = z * (rise[i] / step)
        tilted = mass * np.exp(-slope * (points - z * excess[i]))
        moved = np.einsum("zij,zj->zi", kernel, tilted)
        mass = moved * np.exp(slope * (points - z * excess[i + 1]) + slope**2 * step / 2.0)
    last = edge * normal(points + z * rise[-1], step)
    return np.asarray(np.sum(mass * last * weights, axis=1) * math.sqrt(2.0 * math.pi))


def clear(start: Array, end: Array, room: Array, step: float) -> Array:
    """Return the chance that a bridge between two heights over the floor misses the floor and the ceiling."""
    chance = 1.0 - np.exp(-2.0 / step * start * end) - np.exp(-2.0 / step * (room - start) * (room - end))
    # Paths that meet both walls matter only if the room is a few standard deviations wide.
    tight = np.flatnonzero(room.ravel() < 10.0 * math.sqrt(step))
    if tight.size:
        u, w, width = start[tight], end[tight], room[tight]
        for k in (1, 2, 3):
            turn = k * width
            chance[tight] += np.exp(-2.0 / step * turn * (turn + w - u)) + np.exp(-2.0 / step * turn * (turn - w + u))
            chance[tight] -= np.exp(-2.0 / step * (turn + u) * (turn + w))
            chance[tight] -= np.exp(-2.0 / step * (turn + width - u) * (turn + width - w))
    return np.maximum(chance, 0.0)


def grid(z: Array, wall: Array, excess: Array) -> tuple[Array, Array]:
    """Return Gauss-Legendre points and weights over what the density can reach between the walls."""
    low = np.maximum(-wall, z * excess.min() - REACH)
    high = np.minimum(wall, z * excess.max() + REACH)
    half = (high - low) / 2.0
    # Points one standard deviation of a step apart leave an error of exp(-2 pi^2).
    needed = math.pi * float(half.max()) * math.sqrt(STEPS) / 1.05
    nodes, weights = legendre(max(40, 8 * math.ceil(needed / 8.0)))
    return (high + low)[:, None] / 2.0 + half[:, None] * nodes, half[:, None] * weights


@lru_cache(maxsize=32)
def legendre(count: int) -> tuple[Array, Array]:
    """Return the rule of Gauss and Legendre on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights
