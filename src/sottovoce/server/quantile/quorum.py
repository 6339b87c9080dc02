"""How many sites must have answered before a round closes without the others: k of n, or a part of the shares."""

from dataclasses import dataclass

from sottovoce.core.arrays import Bools, Floats
from sottovoce.core.errors import BadInput


@dataclass(frozen=True)
class Quorum:
    """How many sites, and which part of the shares, must have answered for a round to close without the others."""

    shares: Floats
    sites: int = 1
    part: float = 0.0

    def closes(self, absent: Bools) -> bool:
        """Tell whether a round may close without some sites."""
        answered = ~absent
        return int(answered.sum()) >= self.sites and float(self.shares[answered].sum()) >= self.part - 1e-12


def quorum_of(shares: Floats, quorum: float) -> Quorum:
    """Return the quorum that a whole number of sites, or a part of the shares below or equal to one, stands for.

    >>> import numpy as np
    >>> quorum_of(np.array([0.5, 0.3, 0.2]), 2).closes(np.array([True, False, False]))
    True
    >>> quorum_of(np.array([0.5, 0.3, 0.2]), 0.6).closes(np.array([True, False, False]))
    False
    """
    if isinstance(quorum, float):
        if 0 < quorum <= 1:
            return Quorum(shares, 1, quorum)
    elif not isinstance(quorum, bool) and 1 <= quorum <= len(shares):
        return Quorum(shares, quorum)
    raise BadInput(
        f"quorum must be a number of sites from 1 to {len(shares)}, or a part of the shares such as 0.8, "
        f"not {quorum!r}; choose one."
    )
