"""The holder of a regression's records, covariates beside responses: it counts them, and never shows or sends them."""

from typing import Any, NoReturn, SupportsIndex

import numpy as np

from sottovoce.core.arrays import Floats

_STAYS = "Rows cannot be pickled or copied: they do not leave the site"


class Rows:
    """Hold the records of a regression behind a door with a single key.

    ``features`` are scaled to [-1, 1], a C-contiguous (n, p) array of float64, and ``response`` is finite, a contiguous
    (n,) array of float64. Neither is copied, so leave both unchanged.

    >>> import numpy as np
    >>> rows = Rows(np.array([[0.5, -1.0], [0.25, 1.0]]), np.array([3.5, 1.25]))
    >>> rows
    Rows(2 records of 2 covariates, values hidden)
    >>> len(rows), rows.size, rows.p
    (2, 2, 2)
    """

    __slots__ = ("_features", "_response", "p", "size")

    _features: Floats
    _response: Floats
    size: int
    p: int

    def __init__(self, features: Floats, response: Floats) -> None:
        if features.ndim != 2 or not _plain(features):
            raise TypeError("Rows holds a two-dimensional, C-contiguous array of float64: use design_matrix.read")
        if response.shape != features.shape[:1] or not _plain(response):
            raise TypeError("Rows holds one response a record, in a contiguous array of float64")
        # The channels are private only for covariates within the box; a NaN fails every comparison.
        if features.size and not (features.min() >= -1.0 and features.max() <= 1.0):
            raise TypeError("Rows holds covariates within [-1, 1]: use design_matrix.read to scale others")
        if response.size and not (np.isfinite(response.min()) and np.isfinite(response.max())):
            raise TypeError("Rows holds finite responses: use design_matrix.read to check others")
        views = features.view(np.ndarray), response.view(np.ndarray)
        for name, view in zip(("_features", "_response"), views, strict=True):
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        object.__setattr__(self, "size", int(features.shape[0]))
        object.__setattr__(self, "p", int(features.shape[1]))

    def features(self) -> Floats:
        """Return the read-only covariates themselves, for the loops that ask people and never to be shown or sent."""
        return self._features

    def response(self) -> Floats:
        """Return the read-only responses themselves, for the loops that ask people and never to be shown or sent."""
        return self._response

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        records = f"{self.size:,} {'record' if self.size == 1 else 'records'}"
        return f"Rows({records} of {self.p} {'covariate' if self.p == 1 else 'covariates'}, values hidden)"

    # `object.__eq__` compares identities; this says that it is meant: equality of values would be an oracle.
    __hash__ = object.__hash__

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("Rows cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("Rows cannot be changed")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(_STAYS)

    def __reduce__(self) -> NoReturn:
        raise TypeError(_STAYS)

    def __getstate__(self) -> Any:
        raise TypeError(_STAYS)


def _plain(array: Floats) -> bool:
    """Tell whether an array can be read by a kernel as it is."""
    return array.dtype == np.float64 and array.flags.c_contiguous
