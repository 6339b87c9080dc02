"""Records show their number and nothing else."""

import copy
import importlib
from typing import Any

import numpy as np
import pytest

from sottovoce.client.record import Records
from sottovoce.core.unit import Unit

SECRET = 123456.789


def hold(size: int = 1204) -> Records:
    return Records(np.full(size, SECRET), Unit("duration", "s"))


def test_text_shows_the_number_of_records_only() -> None:
    assert repr(hold()) == str(hold()) == f"{hold()}" == "Records(1,204 records, values hidden)"
    assert repr(hold(1)) == "Records(1 record, values hidden)"


def test_size_and_unit() -> None:
    assert (len(hold()), hold().size, hold().unit.kind) == (1204, 1204, "duration")


def test_values_are_the_same_memory_and_read_only() -> None:
    array = np.array([1.0, 2.0])
    values = Records(array).values()
    assert np.shares_memory(values, array)
    assert array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 3.0


@pytest.mark.parametrize("protocol", range(6))
def test_pickle_is_refused(protocol: int) -> None:
    dumps: Any = importlib.import_module("pickle").dumps
    with pytest.raises(TypeError, match="cannot be pickled"):
        dumps(hold(), protocol)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda records: records.__reduce__()])
def test_copies_are_refused(duplicate: Any) -> None:
    with pytest.raises(TypeError, match="do not leave the site"):
        duplicate(hold())


def test_state_is_not_handed_out() -> None:
    with pytest.raises(TypeError):
        hold().__getstate__()
    with pytest.raises(TypeError):
        vars(hold())


def test_no_iteration_no_items_no_array() -> None:
    opaque: Any = hold()
    with pytest.raises(TypeError):
        iter(opaque)
    with pytest.raises(TypeError):
        opaque[0]
    assert not hasattr(opaque, "__array__")
    assert str(SECRET) not in str(np.asarray(opaque, dtype=object))


def test_nothing_can_be_set_or_deleted() -> None:
    opaque: Any = hold()
    for name in ("size", "unit", "_values", "other"):
        with pytest.raises(AttributeError):
            setattr(opaque, name, 1)
    with pytest.raises(AttributeError):
        del opaque.size


def test_equality_is_identity() -> None:
    records = hold()
    assert records == records
    assert records != hold()
    assert len({records, hold()}) == 2


@pytest.mark.parametrize("array", [np.zeros(3, np.float32), np.zeros((2, 2)), np.zeros(6)[::2], np.zeros(2, ">f8")])
def test_other_arrays_are_refused(array: Any) -> None:
    with pytest.raises(TypeError, match="contiguous array of float64"):
        Records(array)
