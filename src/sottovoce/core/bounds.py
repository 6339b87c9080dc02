r"""The public bounds of raw covariates, and the linear map between raw and scaled coefficients.

A covariate :math:`x_j \in [l_j, h_j]` is scaled to :math:`z_j = (x_j - m_j) / r_j`, with centre
:math:`m_j = (l_j + h_j)/2` and half-width :math:`r_j = (h_j - l_j)/2`. Then
:math:`\beta_0 + \sum_j \beta_j z_j = (\beta_0 - \sum_j \beta_j m_j / r_j) + \sum_j (\beta_j / r_j) x_j`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.checks import kind_of
from sottovoce.core.errors import BadInput

_HOW = "give one pair (low, high), one pair for each column, or a mapping from column to pair"


@dataclass(frozen=True, eq=False)
class Bounds:
    """Between which public numbers each covariate lies.

    ``given`` tells whether somebody gave them; if not, the covariates are said to be in [-1, 1] already.

    >>> bounds = read_bounds({"distance": (0, 30), "hour": (0, 24)}, ("distance", "hour"))
    >>> bounds.scale([[30.0, 6.0]])
    array([[ 1. , -0.5]])
    >>> intercept, slopes = bounds.unscale_coefficients([20.0, 15.0, 3.0])
    >>> float(intercept), slopes
    (2.0, array([1.  , 0.25]))
    """

    low: Floats
    high: Floats
    names: tuple[str, ...]
    given: bool = True

    @property
    def centre(self) -> Floats:
        """Return the middle between the bounds of each column."""
        return self.low / 2.0 + self.high / 2.0

    @property
    def half(self) -> Floats:
        """Return half the distance between the bounds of each column."""
        return self.high / 2.0 - self.low / 2.0

    def scale(self, raw: npt.ArrayLike) -> Floats:
        """Scale raw covariates, one row a record, such that the bounds become -1 and 1; nothing is checked."""
        scaled: Floats = (np.asarray(raw, dtype=np.float64) - self.centre) / self.half
        return scaled

    def unscale_coefficients(self, beta: npt.ArrayLike) -> tuple[Any, Floats]:
        """Turn coefficients of scaled covariates (last axis: intercept, slopes) into a raw intercept and raw slopes."""
        scaled = np.asarray(beta, dtype=np.float64)
        slopes: Floats = scaled[..., 1:] / self.half
        return scaled[..., 0] - slopes @ self.centre, slopes

    @property
    def to_raw(self) -> Floats:
        """Return the (d, d) matrix that takes scaled coefficients, intercept first, to raw ones."""
        matrix = np.diag(np.concatenate(([1.0], 1.0 / self.half)))
        matrix[0, 1:] = -self.centre / self.half
        return matrix

    @property
    def to_scaled(self) -> Floats:
        """Return the (d, d) matrix that takes raw coefficients, intercept first, to scaled ones."""
        matrix = np.diag(np.concatenate(([1.0], self.half)))
        matrix[0, 1:] = self.centre
        return matrix


def read_bounds(bounds: Any, names: Sequence[str]) -> Bounds:
    """Read the bounds of columns, or refuse them in one sentence.

    None says that every column is in [-1, 1] already; else one pair (low, high) for all columns, a sequence or (p, 2)
    array with a pair for each column, or a mapping from the name of every column to its pair.

    >>> read_bounds((0, 24), ["hour"]).high
    array([24.])
    >>> read_bounds({"hour": (24, 0)}, ["hour"])
    Traceback (most recent call last):
    sottovoce.core.errors.BadInput: bounds of column 'hour' are (24, 0): give low < high
    """
    p = len(names)
    if bounds is None:
        return Bounds(np.full(p, -1.0), np.full(p, 1.0), tuple(names), given=False)
    if isinstance(bounds, Mapping):
        pairs = _by_name(bounds, names)
    else:
        entries = _entries(bounds, "bounds")
        if len(entries) == 2 and not any(_holds_entries(entry) for entry in entries):
            pairs = [entries] * p
        elif len(entries) == p and all(_holds_entries(entry) for entry in entries):
            pairs = entries
        else:
            raise BadInput(f"bounds has {len(entries):,} entries and X has {p:,} columns: {_HOW}")
    checked = np.array([_pair(pair, name) for pair, name in zip(pairs, names, strict=True)]).reshape(p, 2)
    return Bounds(checked[:, 0].copy(), checked[:, 1].copy(), tuple(names))


def _by_name(bounds: Mapping[Any, Any], names: Sequence[str]) -> list[Any]:
    """Put the pairs of a mapping into the order of the columns."""
    absent = [repr(name) for name in names if name not in bounds]
    unknown = [repr(name) for name in bounds if name not in names]
    if absent or unknown:
        lacks = f"has no pair for {', '.join(absent)}" if absent else ""
        extra = f"names {', '.join(unknown)}, which X does not have" if unknown else ""
        raise BadInput(
            f"bounds {' and '.join(filter(None, (lacks, extra)))}: give a pair (low, high) for each of "
            f"{', '.join(map(repr, names))} and for no other"
        )
    return [bounds[name] for name in names]


def _holds_entries(value: Any) -> bool:
    """Tell whether a value is a sequence rather than a number or a text."""
    if isinstance(value, str | bytes):
        return False
    return hasattr(value, "__len__") or (hasattr(value, "__iter__") and not hasattr(value, "__float__"))


def _entries(value: Any, where: str) -> list[Any]:
    """List what a sequence holds."""
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0:
        raise BadInput(f"{where} is {kind_of(value)}: {_HOW}")
    return list(value)


def _pair(pair: Any, name: str) -> tuple[float, float]:
    """Read the two bounds of one column."""
    where = f"bounds of column {name!r}"
    ends = _entries(pair, where)
    if len(ends) != 2:
        raise BadInput(f"{where} has {len(ends)} numbers: give two, (low, high)")
    low, high = (_number(end, where) for end in ends)
    shown = f"({low:.12g}, {high:.12g})"
    if not (np.isfinite(low) and np.isfinite(high)):
        raise BadInput(f"{where} are {shown}: give two finite numbers")
    if low >= high:
        raise BadInput(f"{where} are {shown}: give low < high")
    if high / 2.0 - low / 2.0 < max(1e-12 * max(abs(low), abs(high)), 1e-290):
        raise BadInput(f"{where} are {shown}, too close together for float64: give bounds that lie further apart")
    return low, high


def _number(value: Any, where: str) -> float:
    """Read a number of Python, numpy, pandas or Arrow."""
    plain = value.as_py() if hasattr(value, "as_py") else value
    try:
        if isinstance(plain, str | bytes | bool | np.bool_) or plain is None or isinstance(plain, complex):
            raise TypeError
        return float(plain)
    except (TypeError, ValueError, OverflowError):
        kind = "None" if plain is None else kind_of(plain)
        raise BadInput(f"{where} holds {kind}: give two numbers, (low, high)") from None
