"""Plain state <-> bytes: numbers, texts, tuples, named tuples, frozen classes and arrays, exactly and strictly.

A state is read back by its type, so nothing of the bytes decides what is made: no code, no class name, no reference. An
array keeps its type, shape and every bit. What does not fit the type is refused.
"""

import math
from base64 import b64decode, b64encode
from typing import Any, TypeVar

import msgspec
import numpy as np

from sottovoce.core.errors import BadInput

T = TypeVar("T")


def to_bytes(value: Any) -> bytes:
    """Encode a plain state.

    >>> from typing import NamedTuple
    >>> from sottovoce.core.arrays import Floats
    >>> class Point(NamedTuple):
    ...     round: int
    ...     at: Floats
    >>> from_bytes(to_bytes(Point(3, np.array([0.5, 1.5]))), Point)
    Point(round=3, at=array([0.5, 1.5]))
    """
    return msgspec.msgpack.encode(value, enc_hook=_packed)


def from_bytes(data: bytes, kind: type[T]) -> T:
    """Decode a state of a kind, or refuse."""
    try:
        return msgspec.msgpack.decode(data, type=kind, dec_hook=_unpacked)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise BadInput(f"these bytes are not a stored {kind.__name__}; store it again.") from None


def to_plain(value: Any) -> Any:
    """Turn a state into what JSON can hold: arrays as lists with their type, infinities and bytes as text.

    >>> to_plain(np.array([0.5, np.inf]))
    {'dtype': '<f8', 'shape': [2], 'values': [0.5, {'$float': 'inf'}]}
    """
    return _spelled(msgspec.to_builtins(value, enc_hook=_listed, builtin_types=(bytes,)))


def from_plain(value: Any, kind: type[T]) -> T:
    """Read back what `to_plain` made, or refuse."""
    try:
        return msgspec.convert(_unspelled(value), type=kind, dec_hook=_unlisted)
    except (msgspec.ValidationError, RecursionError, ValueError, TypeError, KeyError):
        raise BadInput(f"this is not a stored {kind.__name__}; store it again.") from None


def _packed(value: Any) -> Any:
    """Take an array apart into its type, shape and bytes."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return [value.dtype.str, list(value.shape), value.tobytes()]
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not plain state")


def _unpacked(kind: Any, value: Any) -> Any:
    """Put an array together again, of the type that is asked for."""
    wanted = _dtype(kind)
    if not (isinstance(value, list) and len(value) == 3):
        raise ValueError("not an array")
    name, shape, data = value
    if np.dtype(name) != wanted or not all(isinstance(side, int) and side >= 0 for side in shape):
        raise ValueError("an array of another type")
    array = np.frombuffer(data, dtype=wanted).copy()
    return array.reshape(shape)


def _listed(value: Any) -> Any:
    """Write an array as a list."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return {"dtype": value.dtype.str, "shape": list(value.shape), "values": value.ravel().tolist()}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not plain state")


def _unlisted(kind: Any, value: Any) -> Any:
    """Make an array of a list, of the type that is asked for."""
    wanted = _dtype(kind)
    if np.dtype(value["dtype"]) != wanted:
        raise ValueError("an array of another type")
    return np.array(value["values"], dtype=wanted).reshape(value["shape"])


def _dtype(kind: Any) -> np.dtype[Any]:
    """Return the element type of an annotated array."""
    if getattr(kind, "__origin__", kind) is not np.ndarray:
        raise ValueError("not an array")
    wanted: np.dtype[Any] = np.dtype(kind.__args__[1].__args__[0])
    return wanted


_FLOAT, _BYTES = "$float", "$bytes"  # what JSON has no word for, by keys that no field has


def _spelled(value: Any) -> Any:
    """Replace what JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: str(value)}
    if isinstance(value, bytes):
        return {_BYTES: b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    return [_spelled(item) for item in value] if isinstance(value, list | tuple) else value


def _unspelled(value: Any) -> Any:
    """Read back what was replaced."""
    if isinstance(value, dict):
        if value.keys() == {_FLOAT}:
            return float(value[_FLOAT])
        if value.keys() == {_BYTES}:
            return b64decode(value[_BYTES], validate=True)
        return {key: _unspelled(item) for key, item in value.items()}
    return [_unspelled(item) for item in value] if isinstance(value, list) else value
