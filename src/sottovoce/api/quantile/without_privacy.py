"""What could be said if all records lay in one place: the sample quantile between two order statistics.

The interval runs between the order statistics of ranks ``n tau -+ z sqrt(n tau (1 - tau))``, whatever the distribution.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.client.reading.table import SiteTable
from sottovoce.inference.common import normal


class OpenAnswer(NamedTuple):
    """A quantile for which every record was seen."""

    estimate: float
    low: float
    high: float


def pooled_quantile(table: SiteTable, tau: float, level: float = 0.95) -> OpenAnswer:
    """Return the quantile of all records together; it protects nobody.

    Examples
    --------
    >>> from sottovoce.client.reading.table import read_sites
    >>> pooled_quantile(read_sites([range(60), range(60, 101)]), 0.5)
    OpenAnswer(estimate=50.0, low=40.0, high=60.0)
    """
    values = np.sort(np.concatenate([records.values() for records in table.records]))
    n = len(values)
    reach = normal.two_sided(level) * math.sqrt(n * tau * (1 - tau))
    ranks = (n * tau, n * tau - reach, n * tau + reach)
    return OpenAnswer(*(float(values[min(max(math.ceil(rank) - 1, 0), n - 1)]) for rank in ranks))
