"""Several tests and intervals at once: Holm's adjusted p-values, and the level of each that all hold together.

Holm (1979, Scandinavian Journal of Statistics 6, 65-70): however the p-values depend on each other, a true hypothesis
is rejected with the stated probability at most. Šidák (1967, doi:10.1080/01621459.1967.10482935): of ``m`` independent
intervals at ``level^(1/m)`` all hold with probability ``level``; of dependent ones (Bonferroni) at ``1 - (1 - level) /
m``, which is hardly less.
"""

from collections.abc import Sequence

import numpy as np

MOST = 1 - 1e-15  # a level as near to one as numbers go


def adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values: what is at most the error may be rejected.

    >>> [round(p, 6) for p in adjusted([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    stepped = np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1))
    found = np.empty(len(given))
    found[order] = np.minimum(stepped, 1.0)
    return tuple(found.tolist())


def each_of(level: float, number: int, independent: bool = True) -> float:
    """Return the level of each of some intervals that hold together at a level.

    >>> round(each_of(0.95, 20), 6), round(each_of(0.95, 20, independent=False), 6)
    (0.997439, 0.9975)
    """
    return min(float(level ** (1 / number)) if independent else 1 - (1 - level) / number, MOST)
