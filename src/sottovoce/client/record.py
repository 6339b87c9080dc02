"""The holder of one site's records: it counts them, and never shows, copies or sends them."""

from collections.abc import Sequence
from typing import Any, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from sottovoce.client.mapped import evenly
from sottovoce.core.arrays import Floats
from sottovoce.core.unit import NUMBER, Unit

SAMPLE = 4096  # values that are looked at for ties


class Records:
    """Hold the records of one site behind a door with a single key.

    ``values`` is a contiguous, one-dimensional array of float64. It is not copied, so leave it unchanged.

    >>> import numpy as np
    >>> records = Records(np.array([3.5, 1.25, 2.0]))
    >>> records
    Records(3 records, values hidden)
    >>> len(records), records.size, records.unit.kind
    (3, 3, 'number')
    """

    __slots__ = ("_values", "size", "unit")

    _values: npt.NDArray[np.float64]
    size: int
    unit: Unit

    def __init__(self, values: npt.NDArray[np.float64], unit: Unit = NUMBER) -> None:
        if values.dtype != np.float64 or values.ndim != 1 or not values.flags.c_contiguous:
            raise TypeError("Records holds a one-dimensional, contiguous array of float64: use read_values for others")
        view = values.view(np.ndarray)
        view.setflags(write=False)
        object.__setattr__(self, "_values", view)
        object.__setattr__(self, "size", int(view.size))
        object.__setattr__(self, "unit", unit)

    def values(self) -> npt.NDArray[np.float64]:
        """Return the read-only array itself; only the kernels of a site, in this room, may call this."""
        return self._values

    @property
    def address(self) -> int:
        """Return where in memory the records begin, to find holders of the same ones."""
        return int(self._values.__array_interface__["data"][0])

    def overlaps(self, other: "Records") -> bool:
        """Tell whether two holders look at the same memory."""
        return overlap([self], [other])

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Records({self.size:,} {'record' if self.size == 1 else 'records'}, values hidden)"

    # `object.__eq__` compares identities; this says that it is meant: equality of values would be an oracle.
    __hash__ = object.__hash__

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("Records cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("Records cannot be changed")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("Records cannot be pickled or copied: they do not leave the site")

    def __reduce__(self) -> NoReturn:
        raise TypeError("Records cannot be pickled or copied: they do not leave the site")

    def __getstate__(self) -> Any:
        raise TypeError("Records cannot be pickled or copied: they do not leave the site")


def look_tied(values: Floats) -> bool:
    """Tell whether many values, evenly picked, are equal to others: a hint to their holder alone."""
    picked = evenly(values, SAMPLE)[:SAMPLE]
    return len(picked) >= 100 and len(np.unique(picked)) < 0.9 * len(picked)


def overlap(first: Sequence[Records], second: Sequence[Records]) -> bool:
    """Tell whether a holder of one group and a holder of another look at the same memory.

    They are gone through in the order of memory, once: groups of thousands are compared, too.
    """
    spans = [
        (holder.address, holder.address + 8 * holder.size, group)
        for group, holders in enumerate((first, second))
        for holder in holders
        if holder.size
    ]
    ends = [0, 0]
    for start, end, group in sorted(spans):
        if start < ends[1 - group]:
            return True
        ends[group] = max(ends[group], end)
    return False
