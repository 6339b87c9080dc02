"""Stochastic gradient descent with Laplace noise on the gradient (Song, Chaudhuri and Sarwate 2013).

As compared in section 4.2 of Cai, Hu and Wu: in every iteration each site moves by
``tau 1(x > q) - (1 - tau) 1(x < q) + Z`` with ``Z`` of scale ``1 / epsilon_k``, and the sites are averaged. All sites
must hold equally many records.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from sottovoce.core.arrays import Floats
from sottovoce.inference.self_normalised.memory import Memory, average, init, interval, look
from sottovoce.protocol.randomised_response import epsilon_of_rate
from sottovoce.server.quantile.estimate import Estimate
from sottovoce.server.quantile.recursion.step_size import StepSize, decay, step_length
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.methods import Sample


@dataclass(frozen=True)
class DpSgd:
    """Laplace noise at the budget of the response rates.

    Examples
    --------
    >>> estimate = DpSgd(0.5, (0.9, 0.9), start=0.0)([np.linspace(-1, 1, 500)] * 2, seed=1, level=0.95)
    >>> estimate.low < estimate.point < estimate.high
    True
    """

    tau: float
    rates: Sequence[float]
    start: float | None = None
    constant: float = 20.0

    def __call__(self, sample: Sample, seed: int, level: float) -> Estimate:
        """Return the averaged point and its self-normalised interval."""
        generator = dice(seed).generator()
        start = float(generator.standard_normal() if self.start is None else self.start)
        values = np.array(sample)
        scales = 1 / np.array([epsilon_of_rate(rate) for rate in self.rates])
        moves = generator.laplace(size=values.shape) * scales[:, None]
        memory = descend(values, moves, self.tau, start, decay(self.rates, constant=self.constant), init())
        low, high = interval(memory, level)
        return Estimate(float(average(memory)), float(low), float(high), level, values.size)


@njit(cache=True, nogil=True)
def descend(values: Floats, noise: Floats, tau: float, point: float, pace: StepSize, memory: Memory) -> Memory:
    """Run all iterations, one merge each; return what the self-normaliser remembers."""
    sites, n = values.shape
    for t in range(n):
        step, total = step_length(pace, t + 1, 1, 1.0), 0.0
        for k in range(sites):
            score = tau if values[k, t] > point else tau - 1.0
            total += score + noise[k, t]
        point += step * total / sites
        memory = look(memory, point, 1.0)
    return memory
