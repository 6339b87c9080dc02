"""The one door to the compiler: numba where it is installed; otherwise the same functions run interpreted, slower."""

import warnings
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


__all__ = ["COMPILED", "njit", "say_slow", "uint32", "uint64"]
LONG = 200_000  # records; a loop over them takes ten seconds when it is interpreted


def say_slow(records: int) -> None:
    """Warn before a long loop over records that is not compiled."""
    if not COMPILED and records >= LONG:
        text = "numba is not installed, so this takes about 25 times as long: install it with: pip install numba"
        warnings.warn(text, UserWarning, stacklevel=2)
