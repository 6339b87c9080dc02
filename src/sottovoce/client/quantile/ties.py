"""Do the records look rounded? A hint to whoever holds them, kept out of everything that is passed on."""

import numpy as np

from sottovoce.client.record import Records

SAMPLE = 4096


def look_rounded(records: Records) -> bool:
    """Tell whether many of a site's records, evenly picked, share their value with another."""
    picked = records.values()[:: max(1, records.size // SAMPLE)][:SAMPLE]
    return len(picked) >= 100 and len(np.unique(picked)) < 0.9 * len(picked)
