"""State <-> bytes and JSON: exact, by type alone, and strict."""

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sottovoce.core import codec
from sottovoce.core.arrays import Bools, Floats, Ints
from sottovoce.core.errors import BadInput


class Inner(NamedTuple):
    values: Floats
    counts: Ints
    marks: Bools
    note: str | None = None


@dataclass(frozen=True)
class Outer:
    parts: tuple[Inner, ...]
    raw: bytes
    at: float
    names: dict[str, float]


floats = arrays.arrays(
    np.float64, arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3), elements=st.floats()
)
texts = st.sampled_from(["", "inf", "nan", "base64:", "$float", "é"])
inners = st.builds(
    Inner,
    floats,
    arrays.arrays(np.int64, st.integers(0, 4)),
    arrays.arrays(np.bool_, st.integers(0, 4)),
    st.none() | texts,
)
outers = st.builds(
    Outer,
    st.lists(inners, max_size=3).map(tuple),
    st.binary(max_size=9),
    st.floats(),
    st.dictionaries(texts, st.floats(), max_size=3).filter(lambda d: "$float" not in d),
)


def same(one: Outer, two: Outer) -> bool:
    return codec.to_bytes(one) == codec.to_bytes(two)


@given(outers)
def test_every_bit_comes_back(state: Outer) -> None:
    again = codec.from_bytes(codec.to_bytes(state), Outer)
    assert codec.to_bytes(again) == codec.to_bytes(state)
    assert [part.values.shape for part in again.parts] == [part.values.shape for part in state.parts]
    assert all(part.values.flags.writeable for part in again.parts)


@given(outers)
def test_json_holds_every_number(state: Outer) -> None:
    plain = json.loads(json.dumps(codec.to_plain(state), allow_nan=False))
    again = codec.from_plain(plain, Outer)
    for mine, theirs in zip(again.parts, state.parts, strict=True):
        np.testing.assert_array_equal(mine.values, theirs.values)
        assert (mine.counts.tolist(), mine.marks.tolist(), mine.note) == (
            theirs.counts.tolist(),
            theirs.marks.tolist(),
            theirs.note,
        )
    assert again.raw == state.raw
    assert again.at == state.at or math.isnan(state.at)


STATE = Outer((Inner(np.arange(3.0), np.arange(2), np.array([True])),), b"x", 1.5, {"a": 2.0})


def test_what_does_not_fit_is_refused() -> None:
    whole = codec.to_bytes(STATE)
    for bad in (b"", whole[:-1], whole + b"\x00", codec.to_bytes(STATE.parts[0]), codec.to_bytes({"parts": 1})):
        with pytest.raises(BadInput, match="not a stored Outer"):
            codec.from_bytes(bad, Outer)
    swapped = Inner(STATE.parts[0].counts, STATE.parts[0].values, STATE.parts[0].marks)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="not a stored Inner"):
        codec.from_bytes(codec.to_bytes(swapped), Inner)
    plain = codec.to_plain(STATE)
    wrongs: list[Any] = [None, [], {**plain, "at": "x"}, {**plain, "parts": [{}]}, {**plain, "raw": {"$bytes": "?"}}]
    for wrong in wrongs:
        with pytest.raises(BadInput, match="not a stored Outer"):
            codec.from_plain(wrong, Outer)


def test_what_is_not_plain_is_not_stored() -> None:
    for value in (np.array([object()]), np.array(["a"]), object(), lambda: 1):
        with pytest.raises(TypeError):
            codec.to_bytes(value)
        with pytest.raises(TypeError):
            codec.to_plain(value)
