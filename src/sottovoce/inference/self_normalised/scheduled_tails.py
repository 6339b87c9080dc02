"""The tails of `|B(1)| / N(B - g B(1))` for a schedule's own clock `g`, in the L2, sup and L1 norms (Corollary 3.1).

Write `B(r) - g(r) Z = b(r) + h(r) Z` with `Z = B(1)` independent of the bridge `b`, and `h(r) = r - g(r)`. Nothing is
sampled.

* *L2*, exact. `E exp(t {Z^2 - v^2 int (b + h Z)^2}) = sqrt(a / sinh a) / sqrt(1 - 2 t + k(a))`, with `a = v sqrt(2 t)`
  and `k(a) = a^2 <h, (1 + a^2 K)^-1 h>`, `K` the covariance of the bridge. For piecewise linear `h` this is a finite
  sum: `k(a) = int int h'(x) h'(y) a cosh(a min) cosh(a (1 - max)) / sinh(a)`, which rises from 0 to `nu - 1`. The
  quadratic form has a single positive eigenvalue, so the transform has a single branch point `t0` to the right of zero,
  and folding the contour around the cut gives an integral of a *positive* function. With `t = t0 cosh(x)^2`, `tail =
  (2/pi) int_0^inf sqrt(a / sinh a) tanh(x) / sqrt(2 t - 1 - k(a)) dx`: no oscillation, no eigenvalues, no grid in time.

* *sup*, by walking a density between two walls. Given `Z = z > 0` the event is that `y(r) = b(r) + h(r) z` stays within
  `x = z/v` of zero. Over each of `STEPS` equal steps, on which `h` is taken linear, the density of `y` moves by the
  exact kernel of a Brownian motion with drift between two absorbing walls: the images of the Gaussian kernel, tilted by
  the drift. Gauss-Legendre points span the walls, and the average over `z` is a trapezoidal sum of a function that is
  flat at both ends. For equal rounds the tail is exact to 3e-6, relative. Corners of `g` between two steps move the
  critical value by about 1e-4 of itself (local steps that vary tenfold), and a near-jump of `g` (local steps that vary
  a thousandfold) by 5e-3.

* *L1*, from a double transform: the contour integral `(1/(pi i)) int E[exp(s Z / v) F(Z, s)] ds / s`, `F(z, s) = E
  exp(-s int |b + h z|)`, on a vertical line. `F` does not depend on `v`, so one table of it serves a whole
  neighbourhood of `v`. It is a Feynman-Kac expectation: a density of `b` walks `STEPS` Gaussian steps, damped by
  `exp(-s |b + h z| / STEPS)` at each. What the steps cost is known exactly for `h = 0` (Johnson and Killeen), and
  dividing by it removes nearly all of the error. For equal rounds the tail is exact to 1e-9. Corners of `g` move the
  critical value by about 5e-5 of itself.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.roots import root
from sottovoce.inference.self_normalised.clock import Clock, detour, smoothed_detour
from sottovoce.inference.self_normalised.pivots import area_transform, normal, root_sinhc, saddle

STEPS = 128  # of time; the errors stated above are for this number
# Spacings of z and of z/v; the second is finer because the chance to stay is flat, not analytic, at zero.
SUP_SPACING, SUP_FINE = 0.25, 0.1
# The bridge leaves [-3.4, 3.4] with probability 2 exp(-2 * 3.4^2) < 2e-10.
SUP_REACH = 3.4
# Within 0.08 of zero the bridge stays with probability exp(-pi^2 / (8 * 0.08^2)) < 1e-83.
NARROW = 0.08
# Steeper steps tilt the kernel by more than a double can hold: each of them gets a kernel of its own.
STEEP = 6.0
# Of z; how far up the line of s goes and in what steps, in units of the anchor; how far the bridge may stray.
AREA_SPACING, AREA_HEIGHT, AREA_RISE = 0.4, 6.25, 0.25
AREA_REACH = 3.2
# Grid points in units of the deviation of a step: the Gaussian sum is then exact to exp(-2 pi^2 / 1.1^2).
AREA_MESH = 1.1


def scheduled_square_tail(v: float, dial: Clock) -> float:
    """Return P(|B(1)| > v sqrt(int {B - g B(1)}^2)); good to about 1e-10, relative, for the pieces of the clock."""
    start = branch_point(v, dial)
    step = min(0.25, 0.9 / math.sqrt(v))
    last = math.acosh(max(1500.0 / (v * math.sqrt(2.0 * start)), 1.0)) + 1.0
    x = np.arange(0.5 * step, min(last, 45.0), step)
    t = start * np.cosh(x) ** 2
    a = v * np.sqrt(2.0 * t)
    # Taken from the branch point, where the root vanishes, so that nothing is lost next to it.
    below = 2.0 * start * np.sinh(x) ** 2 - (
        curvature(a, dial) - curvature(np.array([v * math.sqrt(2.0 * start)]), dial)
    )
    return float(np.sum(2.0 / math.pi * step * root_sinhc(a) * np.tanh(x) / np.sqrt(below)))


def branch_point(v: float, dial: Clock) -> float:
    """Return the root t of 1 - 2 t + k(v sqrt(2 t)): it lies in [1/2, nu/2]."""

    def excess(t: float) -> float:
        return 1.0 - 2.0 * t + float(curvature(np.array([v * math.sqrt(2.0 * t)]), dial)[0])

    noise, rounds = np.array(dial.noise), np.array(dial.rounds)
    nu = float(np.sum(np.diff(rounds) ** 2 / np.diff(noise)))
    return root(excess, (0.49, 0.51 * nu + 0.01), 1e-14)


def curvature(a: Floats, dial: Clock) -> Floats:
    """Return k(a): what leaving the straight line adds to the quadratic form."""
    if len(dial.noise) == 2:
        return np.zeros_like(a)
    left, right = np.array(dial.noise[:-1])[:, None], np.array(dial.noise[1:])[:, None]
    width = right - left
    slope = 1.0 - np.diff(dial.rounds)[:, None] / width
    full = -np.expm1(-2.0 * a)

    def green(x: Floats, y: Floats) -> Floats:
        product: Floats = np.exp(-a * (y - x)) * np.expm1(-2.0 * a * x) * np.expm1(-2.0 * a * (1.0 - y))
        return product / (2.0 * a * full)

    within = slope**2 * (width - green(left, left) + 2.0 * green(left, right) - green(right, right))
    rise = -slope * np.expm1(-a * width) / (2.0 * a)
    ahead = rise * (1.0 + np.exp(-a * (left + right)))
    behind = rise * (1.0 + np.exp(-a * (2.0 - left - right)))
    fade = np.exp(-a * width)
    carried, across = np.zeros_like(a), np.zeros_like(a)
    for piece in range(width.size):
        across += carried * behind[piece]
        carried = carried * fade[piece] + ahead[piece]
    total: Floats = within.sum(0) + 4.0 * a / full * across
    return total


def scheduled_sup_tail(v: float, dial: Clock) -> float:
    """Return P(|B(1)| > v sup |B - g B(1)|)."""
    excess = detour(dial, STEPS)
    spacing = min(SUP_SPACING, SUP_FINE * v)
    slack = 1.0 - v * float(np.abs(excess).max())
    # A normal leaves [-6.5, 6.5] with probability 8e-11; tails below 0.01 are asked for finer.
    far = 6.5 if v < 4.0 else 8.4
    last = min(far, v * SUP_REACH / slack) if slack > 0.0 else far
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


def stays(z: Floats, wall: Floats, excess: Floats) -> Floats:
    """Return P(sup |b + h z| < wall) for each pair of z and wall."""
    step = 1.0 / STEPS
    points, weights = sup_grid(z, wall, excess)
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


def clear(start: Floats, end: Floats, room: Floats, step: float) -> Floats:
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


def sup_grid(z: Floats, wall: Floats, excess: Floats) -> tuple[Floats, Floats]:
    """Return Gauss-Legendre points and weights over what the density can reach between the walls."""
    low = np.maximum(-wall, z * excess.min() - SUP_REACH)
    high = np.minimum(wall, z * excess.max() + SUP_REACH)
    half = (high - low) / 2.0
    # Points one standard deviation of a step apart leave an error of exp(-2 pi^2).
    needed = math.pi * float(half.max()) * math.sqrt(STEPS) / 1.05
    nodes, weights = legendre(max(40, 8 * math.ceil(needed / 8.0)))
    return (high + low)[:, None] / 2.0 + half[:, None] * nodes, half[:, None] * weights


@lru_cache(maxsize=32)
def legendre(count: int) -> tuple[Floats, Floats]:
    """Return the rule of Gauss and Legendre on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


class AreaTable(NamedTuple):
    """The transform `F(z, s)` on a line of `s` and a grid of `z`, with the place it was made for."""

    anchor: float
    z: Floats
    s: NDArray[np.complex128]
    values: NDArray[np.complex128]


def scheduled_area_tail(v: float, table: AreaTable) -> float:
    """Return P(|B(1)| > v int |B - g B(1)|), for v within 20 % of the table's anchor."""
    z, s = table.z, table.s
    weights = AREA_SPACING / math.sqrt(2.0 * math.pi) * np.where(z == 0.0, 0.5, 1.0)[:, None]
    # F is even in z, so exp(z s / v) counts for both signs; the normal density goes in before it overflows.
    shape, tilt = z[:, None] ** 2 / 2.0, z[:, None] * s / v
    values = np.sum(weights * (np.exp(tilt - shape) + np.exp(-tilt - shape)) * table.values, axis=0) / s
    values[0] /= 2.0
    return float(2.0 / math.pi * (s[1] - s[0]).imag * np.sum(values.real))


@lru_cache(maxsize=16)
def area_table(dial: Clock, anchor: float) -> AreaTable:
    """Tabulate F(z, s) around s = anchor."""
    height = max(1.0, saddle(anchor))
    s = (anchor * (height + 1j * np.arange(0.0, AREA_HEIGHT, AREA_RISE))).astype(np.complex128)
    z = np.arange(0.0, height + 6.0, AREA_SPACING)
    bare = damped(np.zeros(1), s, np.zeros(STEPS + 1))[0]
    return AreaTable(anchor, z, s, damped(z, s, smoothed_detour(dial, STEPS)) * (area_transform(s) / bare))


def damped(z: Floats, s: NDArray[np.complex128], excess: Floats) -> NDArray[np.complex128]:
    """Return E exp(-s sum |b + h z| / STEPS) for each z (rows) and s (columns, equally spaced)."""
    step = 1.0 / STEPS
    half = math.ceil(AREA_REACH * math.sqrt(STEPS) / AREA_MESH)
    mesh = AREA_MESH * math.sqrt(step)
    points: Floats = np.arange(-half, half + 1, dtype=np.float64) * mesh
    # Products of far tails would sink into subnormal numbers, a hundred times slower; below 1e-40 they are nothing.
    kernel = np.maximum(mesh * normal(points[:, None] - points[None, :], step) - 1e-40, 0.0)
    start = np.maximum(normal(points, step) - 1e-40, 0.0)
    mass = np.empty((z.size, points.size, s.size), dtype=np.complex128)
    mass[:] = start[:, None]
    turn = np.empty_like(mass)
    for i in range(1, STEPS):
        if i > 1:
            # One small real product for each z: large ones would be split over threads that wait for each other.
            mass = np.matmul(kernel, mass.view(np.float64)).view(np.complex128)
        distance = rounded(excess[i] * z[:, None] + points[None, :], mesh)
        # s runs along a line, so its exponentials are a geometric progression.
        turn[:, :, 0] = np.exp(-step * s[0].real * distance)
        turn[:, :, 1:] = np.exp(-1j * step * (s[1] - s[0]).imag * distance)[:, :, None]
        np.multiply(mass, np.cumprod(turn, axis=2), out=mass)
    # The two half steps next to the ends, where b is small: exact for h = 0 by the division in `area_table`.
    idle = math.sqrt(step / 3.0)
    ends = np.hypot(idle, excess[0] * z) + np.hypot(idle, excess[-1] * z) - 2.0 * idle
    reached: NDArray[np.complex128] = np.einsum("p,zps->zs", start, mass) * np.exp(-step / 2.0 * ends[:, None] * s)
    return mesh * math.sqrt(2.0 * math.pi) * reached


def rounded(x: Floats, mesh: float) -> Floats:
    """Return |x| with its corner rounded so that sums over the mesh see it where it is, to fourth order."""
    return (4.0 * blurred(x, mesh) - blurred(x, 2.0 * mesh)) / 3.0


def blurred(x: Floats, width: float) -> Floats:
    """Return |x| averaged with a triangular weight."""
    near = np.minimum(np.abs(x) / width, 1.0)
    return np.maximum(np.abs(x), width * (1.0 / 3.0 + near**2 - near**3 / 3.0))
