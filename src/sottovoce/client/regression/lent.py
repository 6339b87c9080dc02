"""Arrays lent to a compiled loop: numba counts references of arrays it inlines over, here it does not.

Room for such a loop to work in is made outside it, because what is lent is not kept alive.
"""

from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.kernels import COMPILED


def lent(array: Any) -> Any:
    """Return an argument of a compiled loop without a count of its references.

    Functions inlined into the loop would count them up and down for every person, at about half of the loop's time.
    Only for arguments: their caller holds them until the loop has ended. An array made inside would be freed at once.
    """
    return array


if COMPILED:
    from numba.extending import intrinsic, overload

    @intrinsic
    def _uncounted(typing: Any, array: Any) -> Any:  # noqa: ARG001 - numba's signature
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            view.meminfo = view.meminfo.type(None)
            return view._getvalue()

        return array(array), build

    @overload(lent)
    def _lent(array: Any) -> Any:  # noqa: ARG001 - numba's signature
        def uncounted(array: Any) -> Any:
            return _uncounted(array)  # type: ignore[call-arg]

        return uncounted


class Room(NamedTuple):
    """Which slopes a person is asked about, which coordinates they told, the gradient, and a move of the point."""

    chosen: Ints
    coordinates: Ints
    values: Floats  # (levels, d)
    move: Floats


def make_room(levels: int, d: int) -> Room:
    """Return room for a loop."""
    return Room(
        np.zeros(max(d - 1, 1), dtype=np.int64), np.zeros(d, dtype=np.int64), np.zeros((levels, d)), np.zeros(d)
    )
