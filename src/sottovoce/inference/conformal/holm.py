"""Many tests at once: the step-down rule of Holm (1979), which keeps the chance of any false rejection.

The smallest of ``m`` p-values is held against ``error / m``, the next against ``error / (m - 1)``, and so on until one
is too large. However the p-values depend on each other, a true hypothesis is rejected with probability ``error`` at
most; and everything that Bonferroni rejects is rejected too.
"""

from collections.abc import Sequence


def rejected(p_values: Sequence[float], error: float) -> tuple[bool, ...]:
    """Tell which hypotheses fall when all are tested at once.

    Parameters
    ----------
    p_values
        One a hypothesis.
    error
        How likely one false rejection or more may be.

    Examples
    --------
    >>> rejected([0.02, 0.001, 0.03], 0.05)
    (True, True, True)
    >>> rejected([0.03, 0.001, 0.03], 0.05)
    (False, True, False)
    """
    fallen = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > error / (len(p_values) - rank):
            break
        fallen[place] = True
    return tuple(fallen)
