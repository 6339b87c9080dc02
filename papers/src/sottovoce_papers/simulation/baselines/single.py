"""All records on one device (Liu, Hu, Ding and Kong 2023): one private walk, step ``2 / (n^0.51 + 100)``.

The step does not divide by the response rate. Sites of different rates are walked at their mean rate, as printed; the
records of the sites take turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.inference.self_normalised.memory import average, init, interval
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.protocol.walk import moves
from sottovoce.server.quantile.estimate import Estimate
from sottovoce.server.quantile.recursion.step_size import decay
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.baselines.divide_and_conquer import apart
from sottovoce_papers.simulation.methods import Sample


@dataclass(frozen=True)
class Single:
    """One device that holds everything.

    Examples
    --------
    >>> estimate = Single(0.5, (0.9, 0.9), start=0.0)([np.linspace(-1, 1, 500)] * 2, seed=1, level=0.95)
    >>> estimate.low < estimate.point < estimate.high
    True
    """

    tau: float
    rates: Sequence[float]
    start: float | None = None
    constant: float = 2.0

    def __call__(self, sample: Sample, seed: int, level: float) -> Estimate:
        """Return the averaged point and its self-normalised interval."""
        source = dice(seed)
        start = float(source.generator().standard_normal() if self.start is None else self.start)
        rate = float(np.mean(self.rates))
        channel = binary(epsilon_of_rate(rate))
        values = np.array(sample).T.reshape(1, -1)
        flips = source.words(values.size).reshape(1, -1) < np.uint64(channel.weights[0][1] << 2)
        each = rate * moves(channel, self.tau)[None, :]
        memory = apart(values, flips, each, np.array([start]), decay([1.0], constant=self.constant), init())
        low, high = interval(memory, level)
        return Estimate(float(average(memory)), float(low), float(high), level, values.size)
