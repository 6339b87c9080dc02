"""Divide and conquer: each site walks alone and only the ends are averaged (section 4.2 of Cai, Hu and Wu).

One merge leaves nothing to normalise by, so the printed intervals must come from the average of the sites' points at
every iteration. The printed errors fit the step of Liu et al. (2023) that does not divide by the response rate, which
slows private sites down; ``decoded`` walks with the unbiased step instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from sottovoce.core.arrays import Floats
from sottovoce.inference.self_normalised.memory import Memory, average, init, interval, look
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.protocol.walk import moves
from sottovoce.server.quantile.estimate import Estimate
from sottovoce.server.quantile.recursion.step_size import StepSize, decay, step_length
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.methods import Sample


@dataclass(frozen=True)
class DivideAndConquer:
    """Sites that do not talk, with step ``2 rbar / (t^0.51 + 100)``.

    Examples
    --------
    >>> estimate = DivideAndConquer(0.5, (0.9, 0.9), start=0.0)([np.linspace(-1, 1, 500)] * 2, seed=1, level=0.95)
    >>> estimate.low < estimate.point < estimate.high
    True
    """

    tau: float
    rates: Sequence[float]
    start: float | None = None
    decoded: bool = False
    constant: float = 2.0

    def __call__(self, sample: Sample, seed: int, level: float) -> Estimate:
        """Return the average of the lonely walks and its self-normalised interval."""
        source = dice(seed)
        start = float(source.generator().standard_normal() if self.start is None else self.start)
        channels = [binary(epsilon_of_rate(rate)) for rate in self.rates]
        speeds = np.ones(len(channels)) if self.decoded else np.array(self.rates)
        each = np.array([moves(channel, self.tau) for channel in channels]) * speeds[:, None]
        values = np.array(sample)
        flips = np.array(
            [
                die.words(values.shape[1]) < np.uint64(channel.weights[0][1] << 2)
                for channel, die in zip(channels, source.split(len(channels)), strict=True)
            ]
        )
        pace = decay(self.rates, constant=self.constant)
        memory = apart(values, flips, each, np.full(len(channels), start), pace, init())
        low, high = interval(memory, level)
        return Estimate(float(average(memory)), float(low), float(high), level, values.size)


@njit(cache=True, nogil=True)
def apart(
    values: Floats, flips: npt.NDArray[np.bool_], moves: Floats, points: Floats, pace: StepSize, memory: Memory
) -> Memory:
    """Walk at each site alone; look at the plain average of the points at every iteration."""
    sites, n = values.shape
    for t in range(n):
        step, total = step_length(pace, t + 1, 1, 1.0), 0.0
        for k in range(sites):
            letter = (values[k, t] > points[k]) ^ flips[k, t]
            points[k] += step * moves[k, 1 if letter else 0]
            total += points[k]
        memory = look(memory, total / sites, 1.0)
    return memory
