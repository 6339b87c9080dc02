"""Order statistics of a site's scores: the message of a site that is not private."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sottovoce.client.record import Records


def order_values(scores: Records, orders: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return the scores of the asked ranks, infinite where a rank is beyond the number of scores.

    Parameters
    ----------
    scores
        The scores of a site.
    orders
        The ranks, from 1, in any order.

    Examples
    --------
    >>> order_values(Records(np.array([3.0, 1.0, 2.0])), [2, 3, 4])
    array([ 2.,  3., inf])
    """
    ranks = np.asarray(orders, dtype=np.int64)
    if ranks.size and ranks.min() < 1:
        raise ValueError(f"ranks begin at 1, not at {ranks.min()}")
    found = np.full(ranks.shape, np.inf)
    held = ranks <= len(scores)
    if held.any():
        places = np.unique(ranks[held] - 1)
        found[held] = np.partition(scores.values(), places)[ranks[held] - 1]
    return found
