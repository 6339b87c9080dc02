"""The server's side of a pooled threshold: from tallies, or from a secure sum, to one cell of the public grid.

The scan goes from the highest edge down and stops at the first count that exceeds its threshold; the cell above that
edge is the answer, and the lowest cell if none does. A cell stands for its upper edge; the highest has none.
"""

from collections.abc import Sequence
from itertools import accumulate

from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.coverage.pooled import PooledChoice


def cell_of_tallies(ones: Sequence[Sequence[int]], choice: PooledChoice) -> int:
    """Return the cell that all sites' answers to the questions point at.

    Parameters
    ----------
    ones
        For each site, how many records said yes at each edge, the lowest first.
    choice
        What the sites were asked (`choose_local`).

    Examples
    --------
    >>> from sottovoce.server.conformal.coverage.pooled_modes import choose_local
    >>> choice = choose_local([4_000, 4_000], [2.0, 2.0], bins=4)
    >>> choice.asked, choice.thresholds[0]
    ((1000, 1000), 403)
    >>> cell_of_tallies([[400, 250, 190, 110], [420, 240, 180, 130]], choice)
    2
    """
    if len(ones) != len(choice.asked):
        raise BadInput(f"{len(choice.asked)} sites were asked but {len(ones)} answered; one tally a site is needed.")
    for place, (tally, asked) in enumerate(zip(ones, choice.asked, strict=True)):
        if len(tally) != choice.cells or not all(0 <= count <= asked for count in tally):
            raise BadInput(
                f"the tally of site number {place + 1} is not {choice.cells} counts from 0 to {asked}; ask it again."
            )
    counts = [sum(vote * tally[b] for vote, tally in zip(choice.votes, ones, strict=True)) for b in range(choice.cells)]
    return first_above(counts, choice.thresholds)


def cell_of_sum(total: Sequence[int], choice: PooledChoice) -> int:
    """Return the cell that the secure sum of all sites' noisy histograms points at.

    Parameters
    ----------
    total
        The sum modulo 2^32, one integer a cell but for the lowest cell.
    choice
        What the sites were asked (`choose_aggregate`).

    Examples
    --------
    >>> import math
    >>> from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate
    >>> choice = choose_aggregate(1_000, 5, math.inf, bins=4)
    >>> cell_of_sum([50, 60, 70, 2**32 - 1], choice)
    2
    """
    if len(total) != choice.cells:
        raise BadInput(f"a sum over {choice.cells} cells has as many integers, not {len(total)}; send one a cell.")
    signed = ((count + (1 << 31)) % (1 << 32) - (1 << 31) for count in reversed(total))  # noise may be negative
    return first_above([*accumulate(signed)][::-1], choice.thresholds)


def first_above(counts: Sequence[int], thresholds: Sequence[int]) -> int:
    """Return the highest cell whose count of scores above its lower edge exceeds the threshold; 0 if none does.

    >>> first_above([9, 5, 2], [4, 4, 4])
    2
    """
    for cell in range(len(counts), 0, -1):
        if counts[cell - 1] > thresholds[cell - 1]:
            return cell
    return 0
