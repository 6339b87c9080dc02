"""No channel: every person sends the exact score, as the reference that privacy is measured against."""

from collections.abc import Callable, Sequence

import numpy as np

from sottovoce.protocol.regression.blocks import Block, Open, RegressionChannel


def open_channel(taus: float | Sequence[float], p: int) -> RegressionChannel:
    """Return the channel that is not private: one block that tells every coordinate of the score.

    Parameters
    ----------
    taus
        The quantile level, or ascending levels.
    p
        The number of slopes.

    Examples
    --------
    >>> open_channel(0.5, 2).epsilon
    inf
    """
    levels = (float(taus),) if isinstance(taus, float | int) else tuple(float(tau) for tau in taus)
    gains = np.ones((len(levels), p + 1))
    return RegressionChannel("open", levels, p, (Block(1.0, Open(), tuple(range(1, p + 1)), gains),))


EXAMPLES: tuple[tuple[float, Callable[[float], RegressionChannel]], ...] = ()
"""Nothing to check: there is no law."""
