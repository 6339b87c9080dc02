r"""The distribution of the paper's recursion to second order, at any horizon, without simulating a step of it.

The distance from the truth is taken as Gaussian with mean ``m_t`` and covariance ``P_t``, which follow from the mean
score ``g`` and its slope ``J`` over that very Gaussian (`mean_field`), the covariance Omega of a decoded score at the
truth, and the steps ``eta_t = scale / (t^.65 + 300)``:

    dm = -eta g dt,        dP = -eta (J P + P J) dt + eta^2 Omega dt,

from ``m_0`` = start - truth and ``P_0 = 0``. Deviations from the mean obey the same linear equation with noise, so that
point and sum of points over any span of time are jointly Gaussian. Time runs in blocks of a few per cent of what has
passed; within one the slope is constant and everything is exact in its eigenbasis, however many relaxation times it
lasts. So 3e8 steps cost as much as a thousand.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.protocol.regression.box import cq
from sottovoce.server.regression.omega import omega
from sottovoce_papers.simulation.regression.cell import Cell
from sottovoce_papers.simulation.regression.mean_field import covariate_points, field
from sottovoce_papers.simulation.regression.walk import EXPONENT, OFFSET

GROWTH = 0.03  # of time, a block


class Span(NamedTuple):
    """From one stop to the next: how a deviation at its start goes on, and what is added on the way.

    With ``deviation`` that of the point from its mean, the pair (deviation at the end, sum of the deviations) is
    ``carry @ deviation`` plus Gaussian noise with covariance ``noise``; the points' means sum up to ``total``.
    """

    steps: int
    carry: Floats  # (2 d, d)
    noise: Floats  # (2 d, 2 d)
    total: Floats  # (d,)


def noise_of(cell: Cell) -> Floats:
    """Return Omega, the covariance of the cell's decoded score at the truth.

    Examples
    --------
    >>> noise_of(Cell(0.5, 2, 2.0)).diagonal().round(3).tolist()
    [1.293, 1.293, 1.293]
    """
    channel = cq(cell.tau, cell.p, cell.epsilon, q=cell.q, s=cell.s) if cell.private else open_channel(cell.tau, cell.p)
    return omega(channel)


def spans(cell: Cell, stops: Sequence[int]) -> list[Span]:
    """Follow a cell's recursion from its start through a list of stops.

    Parameters
    ----------
    cell
        What is run.
    stops
        Numbers of steps, ascending.

    Returns
    -------
    One span for every stop, from the stop before it, the first from the start.

    Examples
    --------
    >>> first, second = spans(Cell(0.75, 2, 2.0), [10**6, 3 * 10**8])
    >>> bool(abs(first.total[1] / first.steps) > 100 * abs(second.total[1] / second.steps))
    True
    """
    d, x, spread = cell.p + 1, covariate_points(cell.p), noise_of(cell)
    start = np.zeros(d) if cell.start is None else np.array(cell.start)
    mean, swing = start - cell.beta, np.zeros((d, d))
    found, now = [], 0.0
    for stop in stops:
        begun, total = now, np.zeros(d)
        carry = np.concatenate([np.eye(d), np.zeros((d, d))])
        noise = np.zeros((2 * d, 2 * d))
        while now < stop:
            length = min(max(1.0, GROWTH * now), stop - now)
            if now + 1.5 * length > stop:
                length = stop - now
            step = cell.scale / ((now + 0.5 * length) ** EXPONENT + OFFSET)
            half = _block(*field(cell.tau, x, mean, swing), mean, mean, swing, spread, step, 0.5 * length)
            score, slope = field(cell.tau, x, half.mean, half.swing)
            block = _block(score, slope, half.mean, mean, swing, spread, step, length)
            total += block.total
            mean, swing = block.mean, block.swing
            onward = np.zeros((2 * d, 2 * d))
            onward[:, :d] = block.carry
            onward[d:, d:] = np.eye(d)
            carry, noise = onward @ carry, onward @ noise @ onward.T + block.noise
            now += length
        found.append(Span(int(stop - begun), carry, 0.5 * (noise + noise.T), total))
    return found


class _Block(NamedTuple):
    mean: Floats
    swing: Floats
    total: Floats
    carry: Floats
    noise: Floats


def _block(
    score: Floats, slope: Floats, about: Floats, mean: Floats, swing: Floats, spread: Floats, step: float, length: float
) -> _Block:
    """Go through a block in which the score is linear about a point and the step constant."""
    rates, basis = np.linalg.eigh(slope)
    z = np.maximum(rates, 1e-12) * step * length
    fading = np.exp(-z)
    first = -np.expm1(-z) / z  # integrals of the fading and of what has faded, over a unit of time
    second = np.where(z > 1e-4, (1.0 - first) / z, 0.5 - z / 6.0)
    push = basis.T @ (score + slope @ (mean - about))
    both = z[:, None] + z[None, :]
    kept = np.exp(-both)
    joint = -np.expm1(-both) / both
    inner = step**2 * (basis.T @ spread @ basis)
    # Noise of (point, sum): e = int exp(-z (1 - s)) dB_s and a = int (1 - exp(-z (1 - s))) / z dB_s, times the length.
    point = length * inner * joint
    mixed = length**2 * inner * _mixed(z, first, joint)
    summed = length**3 * inner * _summed(z, first, joint)
    noise = np.block([[point, mixed], [mixed.T, summed]])
    turn = np.kron(np.eye(2), basis)
    return _Block(
        mean - basis @ (step * length * first * push),
        basis @ (kept * (basis.T @ swing @ basis) + point) @ basis.T,
        length * (mean - basis @ (step * length * second * push)),
        np.concatenate([basis * fading @ basis.T, length * (basis * first) @ basis.T]),
        turn @ noise @ turn.T,
    )


def _mixed(z: Floats, first: Floats, joint: Floats) -> Floats:
    """Return int_0^1 exp(-z_i s) (1 - exp(-z_j s)) / z_j ds."""
    exact = (first[:, None] - joint) / z[None, :]
    return np.where(z[None, :] > 1e-5, exact, 0.5 - (2.0 * z[:, None] + z[None, :]) / 6.0)


def _summed(z: Floats, first: Floats, joint: Floats) -> Floats:
    """Return int_0^1 (1 - exp(-z_i s)) (1 - exp(-z_j s)) / (z_i z_j) ds."""
    product = z[:, None] * z[None, :]
    exact = (1.0 - first[:, None] - first[None, :] + joint) / product
    small = 1.0 / 3.0 - (z[:, None] + z[None, :]) / 8.0
    return np.where(np.maximum(z[:, None], z[None, :]) > 1e-4, exact, small)
