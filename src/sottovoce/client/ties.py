"""Do the records look rounded? A hint to whoever holds them, never part of a report."""

from collections.abc import Sequence

import numpy as np

from sottovoce.client.record import Records

SAMPLE = 4096


def look_rounded(records: Sequence[Records]) -> bool:
    """Tell whether many of the records, evenly picked from every site, share their value with another."""
    each = max(2, SAMPLE // len(records))
    picked = np.concatenate([site.values()[:: max(1, site.size // each)][:each] for site in records])
    return len(picked) >= 100 and len(np.unique(picked)) < 0.9 * len(picked)
