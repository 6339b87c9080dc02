"""One bit a person: does the response lie above a point? As `client.quantile.encode`, person by person."""

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Words


def count_above(
    response: npt.NDArray[np.float64], where: npt.NDArray[np.uint64], die: Words, flips: int, point: float
) -> int:
    """Return how many of the people ``where`` say one, a word of ``die`` for each.

    The lowest faces of the die say zero and as many of the highest one, whatever the record.
    """
    lowest = np.uint64(flips << 2)
    randomize_row = (response[where] > point) & (die >= lowest)
    return int(np.count_nonzero(randomize_row | (die > ~lowest)))
