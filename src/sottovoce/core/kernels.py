"""The one door to the compiler: numba where it is installed; otherwise the same functions run interpreted, slower."""

from typing import TYPE_CHECKING, Any

import numpy as np

COMPILED = False
if TYPE_CHECKING:
    from numba import njit, uint32, uint64
else:
    try:
        from numba import config, njit, uint32, uint64

        COMPILED = not config.DISABLE_JIT
    except ModuleNotFoundError:
        uint32, uint64 = np.uint32, np.uint64

        def njit(**_: Any) -> Any:
            """Leave a function as it is."""
            return lambda function: function


__all__ = ["COMPILED", "njit", "uint32", "uint64"]
