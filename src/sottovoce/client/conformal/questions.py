"""One-record local privacy at a site: each record says through randomised response whether its score is above one edge.

Every edge gets equally many records, taken in a random order; the remainder is not asked. The budget of a record is the
binary channel's, and holds against everybody, the server included.
"""

from collections.abc import Sequence

from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.messages import Query, Study, Tally

ROUND = 1  # there is only one


def questioned_site(scores: Records, epsilon: float, dice: RandomSource | None = None) -> Site:
    """Return a site whose scores answer through a budget, each once.

    Parameters
    ----------
    scores
        The calibration scores of the site.
    epsilon
        The budget of a record; ``math.inf`` for truthful answers.
    dice
        The source of randomness; the operating system's if none is given.

    Examples
    --------
    >>> import numpy as np
    >>> questioned_site(Records(np.arange(100.0)), 1.0)
    Site(100 records, 0 answered)
    """
    return Site(scores, Study(0.5, epsilon), dice)


def answer_above(site: Site, edges: Sequence[float]) -> Tally:
    """Return how many records said that they lie above each edge; a retry gets the same numbers.

    Parameters
    ----------
    site
        A site none of whose records has answered, or the one that has answered just this.
    edges
        The edges of the public grid, increasing.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> site = questioned_site(Records(np.full(10, 2.0)), math.inf)
    >>> answer_above(site, [1.0, 2.0, 3.0]).ones, site.spent
    ((3, 0, 0), 9)
    """
    if not len(edges):
        raise BadInput("a question needs an edge; give the grid at least one.")
    points = tuple(float(edge) for edge in edges)
    return site.tally(Query(ROUND, points, (site.size // len(points),) * len(points)))
