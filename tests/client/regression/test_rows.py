"""Rows show their number and nothing else, and hold only what the channels are private for."""

import copy
import importlib
from typing import Any

import numpy as np
import pytest

from sottovoce.client.regression.rows import Rows

SECRET = 0.123456789


def hold(n: int = 1204, p: int = 2) -> Rows:
    return Rows(np.full((n, p), SECRET), np.full(n, 1000 * SECRET))


def test_text_shows_numbers_of_records_and_covariates_only() -> None:
    assert repr(hold()) == str(hold()) == f"{hold()}" == "Rows(1,204 records of 2 covariates, values hidden)"
    assert repr(hold(1, 1)) == "Rows(1 record of 1 covariate, values hidden)"


def test_size() -> None:
    rows = hold(7, 3)
    assert (len(rows), rows.size, rows.p) == (7, 7, 3)
    assert Rows(np.empty((0, 2)), np.empty(0)).size == 0


def test_values_are_the_same_memory_and_read_only() -> None:
    features, response = np.array([[1.0, -1.0]]), np.array([2.0])
    rows = Rows(features, response)
    assert np.shares_memory(rows.features(), features)
    assert np.shares_memory(rows.response(), response)
    assert features.flags.writeable
    assert response.flags.writeable
    for view in (rows.features(), rows.response()):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 3.0


@pytest.mark.parametrize("protocol", range(6))
def test_pickle_is_refused(protocol: int) -> None:
    dumps: Any = importlib.import_module("pickle").dumps
    with pytest.raises(TypeError, match="cannot be pickled"):
        dumps(hold(), protocol)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda rows: rows.__reduce__()])
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
    for name in ("size", "p", "_features", "_response", "other"):
        with pytest.raises(AttributeError):
            setattr(opaque, name, 1)
    with pytest.raises(AttributeError):
        del opaque.size


def test_equality_is_identity() -> None:
    rows = hold()
    assert rows == rows
    assert rows != hold()
    assert len({rows, hold()}) == 2


GOOD = np.zeros((3, 2))
ODD: dict[str, tuple[Any, Any]] = {
    "float32": (np.zeros((3, 2), np.float32), np.zeros(3)),
    "big-endian": (np.zeros((3, 2), ">f8"), np.zeros(3)),
    "one dimension": (np.zeros(3), np.zeros(3)),
    "Fortran order": (np.zeros((3, 2), order="F"), np.zeros(3)),
    "too few responses": (GOOD, np.zeros(2)),
    "a table of responses": (GOOD, np.zeros((3, 1))),
    "strided responses": (GOOD, np.zeros(6)[::2]),
    "whole responses": (GOOD, np.zeros(3, np.int64)),
    "beyond the box": (np.array([[1.0000001, 0.0]]), np.zeros(1)),
    "below the box": (np.array([[0.0, -1.0000001]]), np.zeros(1)),
    "NaN": (np.array([[0.0, np.nan], [0.0, 0.0]]), np.zeros(2)),
    "NaN response": (GOOD, np.array([0.0, np.nan, 0.0])),
    "infinite response": (GOOD, np.array([0.0, -np.inf, 0.0])),
}


@pytest.mark.parametrize(("features", "response"), ODD.values(), ids=ODD)
def test_other_arrays_are_refused(features: Any, response: Any) -> None:
    with pytest.raises(TypeError, match="Rows holds"):
        Rows(features, response)


def test_the_corners_of_the_box_are_held() -> None:
    assert Rows(np.array([[1.0, -1.0]]), np.zeros(1)).p == 2
