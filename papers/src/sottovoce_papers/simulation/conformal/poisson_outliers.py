"""The synthetic population of the paper's section 5.1: counts whose mean waves with x, and rare large outliers.

    Y | X = x  ~  Poisson(sin^2 x + 0.1) + 0.03 x e1 + 25 1{U < 0.01} e2,   X uniform on [1, 5],

with standard normal e1 and e2 (after Romano, Patterson and Candès 2019).
"""

import numpy as np

from sottovoce_papers.simulation.conformal.data_sets import DataSet
from sottovoce_papers.simulation.families import Generator

ENDS = (1.0, 5.0)


def drawn(n: int, generator: Generator) -> DataSet:
    """Draw records; one in a hundred may be an outlier.

    >>> from sottovoce.sim import dice
    >>> held = drawn(1000, dice(1).generator())
    >>> held.features.shape, bool(np.median(held.responses) < 1.2)
    ((1000, 1), True)
    """
    x = generator.uniform(*ENDS, n)
    y = generator.poisson(np.sin(x) ** 2 + 0.1) + 0.03 * x * generator.normal(size=n)
    y += 25 * (generator.random(n) < 0.01) * generator.normal(size=n)
    return DataSet("synthetic", x[:, None], y)
