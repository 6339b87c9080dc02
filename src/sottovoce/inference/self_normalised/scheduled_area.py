r"""The tail of `|B(1)| / int |B(r) - g(r) B(1)| dr` for a schedule's own `g`, from a double transform.

With `Z = B(1)` independent of the bridge `b`, and `h(r) = r - g(r)`, the tail is the contour integral `(1/(pi i)) int
E[exp(s Z / v) F(Z, s)] ds / s`, `F(z, s) = E exp(-s int |b + h z|)`, on a vertical line. `F` does not depend on `v`,
so one table of it serves a whole neighbourhood of `v`. It is a Feynman-Kac expectation: a density of `b` walks
`STEPS` Gaussian steps, damped by `exp(-s |b + h z| / STEPS)` at each. What the steps cost is known exactly for `h =
0` (Johnson and Killeen's law), and dividing by it removes nearly all of the error.

For equal rounds the tail is exact to 1e-9. Corners of `g` move the critical value by about 5e-5 of itself.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.inference.self_normalised.clock import Clock, smoothed_detour
from sottovoce.inference.self_normalised.pivots import area_transform, normal, saddle

Array = NDArray[np.float64]

STEPS = 128
SPACING, HEIGHT, RISE = 0.4, 6.25, 0.25
REACH = 3.2
# Grid points in units of the deviation of a step: the Gaussian sum is then exact to exp(-2 pi^2 / 1.1^2).
MESH = 1.1


class Table(NamedTuple):
    """The transform `F(z, s)` on a line of `s` and a grid of `z`, with the place it was made for."""

    anchor: float
    z: Array
    s: NDArray[np.complex128]
    values: NDArray[np.complex128]


def scheduled_area_tail(v: float, table: Table) -> float:
    """Return P(|B(1)| > v int |B - g B(1)|), for v within 20 % of the table's anchor."""
    z, s = table.z, table.s
    weights = SPACING / math.sqrt(2.0 * math.pi) * np.where(z == 0.0, 0.5, 1.0)[:, None]
    # F is even in z, so exp(z s / v) counts for both signs; the normal density goes in before it overflows.
    shape, tilt = z[:, None] ** 2 / 2.0, z[:, None] * s / v
    values = np.sum(weights * (np.exp(tilt - shape) + np.exp(-tilt - shape)) * table.values, axis=0) / s
    values[0] /= 2.0
    return float(2.0 / math.pi * (s[1] - s[0]).imag * np.sum(values.real))


@lru_cache(maxsize=16)
def area_table(dial: Clock, anchor: float) -> Table:
    """Tabulate F(z, s) around s = anchor."""
    height = max(1.0, saddle(anchor))
    s = (anchor * (height + 1j * np.arange(0.0, HEIGHT, RISE))).astype(np.complex128)
    z = np.arange(0.0, height + 6.0, SPACING)
    bare = damped(np.zeros(1), s, np.zeros(STEPS + 1))[0]
    return Table(anchor, z, s, damped(z, s, smoothed_detour(dial, STEPS)) * (area_transform(s) / bare))


def damped(z: Array, s: NDArray[np.complex128], excess: Array) -> NDArray[np.complex128]:
    """Return E exp(-s sum |b + h z| / STEPS) for each z (rows) and s (columns, equally spaced)."""
    step = 1.0 / STEPS
    half = math.ceil(REACH * math.sqrt(STEPS) / MESH)
    mesh = MESH * math.sqrt(step)
    points: Array = np.arange(-half, half + 1, dtype=np.float64) * mesh
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


def rounded(x: Array, mesh: float) -> Array:
    """Return |x| with its corner rounded so that sums over the mesh see it where it is, to fourth order."""
    return (4.0 * blurred(x, mesh) - blurred(x, 2.0 * mesh)) / 3.0


def blurred(x: Array, width: float) -> Array:
    """Return |x| averaged with a triangular weight."""
    near = np.minimum(np.abs(x) / width, 1.0)
    return np.maximum(np.abs(x), width * (1.0 / 3.0 + near**2 - near**3 / 3.0))
