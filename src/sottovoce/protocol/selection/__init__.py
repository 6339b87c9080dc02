"""Private selections: public mechanisms by which a site names one cell of a public grid instead of a score.

They are known to a study and a query by name.
"""

import functools
from collections.abc import Callable

from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection import exponential, sparse_vector

Mechanism = sparse_vector.SparseVector | exponential.Exponential | exponential.PaperExponential

_MADE: dict[str, Callable[[int, int, int, float], Mechanism]] = {
    sparse_vector.SparseVector.name: sparse_vector.sparse_vector,
    exponential.Exponential.name: exponential.exponential,
    exponential.PaperExponential.name: exponential.paper,
}
SELECTIONS = tuple(_MADE)


@functools.lru_cache(maxsize=4096)  # sites of one size are asked alike
def selection(name: str, size: int, order: int, cells: int, epsilon: float) -> Mechanism:
    """Return the mechanism of a name for a site of some size."""
    if name not in _MADE:
        raise BadInput(f"there is no mechanism {name!r}; choose {', '.join(SELECTIONS)}.")
    return _MADE[name](size, order, cells, epsilon)
