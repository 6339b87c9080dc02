"""Selections by the names that a study and a query know."""

import functools
from collections.abc import Callable

from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection.exponential import Exponential, exponential
from sottovoce.protocol.selection.paper import PaperExponential, paper
from sottovoce.protocol.selection.sparse_vector import SparseVector, sparse_vector

Mechanism = SparseVector | Exponential | PaperExponential

_MADE: dict[str, Callable[[int, int, int, float], Mechanism]] = {
    SparseVector.name: sparse_vector,
    Exponential.name: exponential,
    PaperExponential.name: paper,
}
SELECTIONS = tuple(_MADE)


@functools.lru_cache(maxsize=4096)  # sites of one size are asked alike
def selection(name: str, size: int, order: int, cells: int, epsilon: float) -> Mechanism:
    """Return the mechanism of a name for a site of some size.

    >>> round(selection("sparse-vector", 200, 182, 101, 1.0).epsilon, 6)
    1.0
    """
    if name not in _MADE:
        raise BadInput(f"there is no mechanism {name!r}; choose {', '.join(SELECTIONS)}.")
    return _MADE[name](size, order, cells, epsilon)
