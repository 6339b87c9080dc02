"""How many iterations the rounds take and how far they move (section 4.1 of Cai, Hu and Wu).

Tables with a number of records warm up for 5 % of the iterations (10 % where records are Cauchy), those with a number
of rounds for 5 % of the rounds: that is how the printed errors come out.
"""

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.recursion.schedule import elapsed


def steps(rounds: Ints, scale: float, power: float = 0.51, offset: float = 100.0) -> Floats:
    """Return the step of an iteration in each round m: a round moves by ``scale / (m^power + offset)``.

    Examples
    --------
    >>> [round(step, 6) for step in steps(np.array([1, 2]), 20.2, power=0.0).tolist()]
    [0.2, 0.1]
    """
    falls = np.arange(1.0, len(rounds) + 1) ** power + offset
    return np.asarray(scale / falls / rounds)


def rounds_within(method: str, records: int, warmup: float = 0.05) -> Ints:
    """Return the iterations of each round of C1, C5 or Log with so many records a site.

    Examples
    --------
    >>> [len(rounds_within(method, 10_000)) for method in ("C1", "C5", "Log")]
    [10000, 2400, 1549]
    """
    schedule = {"C1": "every:1", "C5": "every:5", "Log": "log"}[method]
    return np.array(elapsed(schedule, records, warmup))


def rounds_given(method: str, total: int) -> Ints:
    """Return the iterations of each of so many rounds; the warm-up is 5 % of them.

    Examples
    --------
    >>> [int(rounds_given(method, 5000).sum()) for method in ("C1", "C5", "Log")]
    [5000, 24000, 53822]
    """
    alone = total // 20
    after = np.arange(1, total - alone + 1)
    lengths = {"C1": np.ones_like(after), "C5": np.full_like(after, 5), "Log": np.ceil(np.log2(after + 1))}[method]
    return np.concatenate((np.ones(alone), lengths)).astype(np.int64)
