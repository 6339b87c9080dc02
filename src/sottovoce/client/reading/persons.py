"""One record a person: when somebody has many rows, one of them is drawn, each equally likely.

The report of a record costs epsilon. A person behind k records would pay k times: drawing one of her rows over the
whole study, not one a site, keeps the promise to the person. The draw gives every row an independent random word and
keeps the row with the smallest: by symmetry each of the k rows wins with probability 1/k.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput

Roll = Callable[[int], Words]


def one_row_a_person(persons: npt.NDArray[np.int64], dice: Roll | None) -> npt.NDArray[np.intp]:
    """Draw one row for every person.

    Parameters
    ----------
    persons
        For each row, the number of its person.
    dice
        A source of n independent, uniform 64-bit words.

    Returns
    -------
    The drawn rows, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> words = np.array([5, 9, 1, 7, 3], dtype=np.uint64)
    >>> one_row_a_person(np.array([0, 1, 0, 1, 2]), lambda n: words[:n])
    array([2, 3, 4])
    """
    words = check_dice(dice)(persons.size)
    if words.shape != persons.shape or words.dtype != np.uint64:
        raise TypeError("dice must return as many uint64 words as it is asked for")
    order = np.lexsort((words, persons))
    in_order = persons[order]
    first = np.ones(order.size, dtype=np.bool_)
    first[1:] = in_order[1:] != in_order[:-1]
    return np.sort(order[first])


def check_dice(dice: Roll | None) -> Roll:
    """Refuse to draw among the rows of a person without dice."""
    if dice is None:
        raise BadInput("person is given without dice, which draw one row a person: give dice as well")
    return dice
