"""Calibration data in every form, and what is refused of them, without a word of what they hold."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import sottovoce as sv
from sottovoce.api.conformal.estimator import checked_predictions
from sottovoce.api.conformal.pairs import check_rows, read_pairs, refuse_shared, rows_of

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)
SITES = np.array(["b", "a", "b", "c", "a", "b"])


def plain(pairs: dict[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    return {name: (np.asarray(x).tolist(), np.asarray(y).tolist()) for name, (x, y) in pairs.items()}


WANTED = {name: (X[name == SITES].tolist(), Y[name == SITES].tolist()) for name in "abc"}


@pytest.mark.parametrize(
    ("table", "y", "labels"),
    [
        (X, Y, SITES),
        (X, Y, SITES.astype(object)),
        (X.tolist(), Y.tolist(), SITES.tolist()),
        (pd.DataFrame(X), pd.Series(Y), pd.Series(SITES)),
        (pd.DataFrame(X, index=range(7, 13)), pd.Series(Y, index=range(6)), pd.Categorical(SITES)),
        (pl.DataFrame(X, schema=["u", "v"], orient="row"), pl.Series(Y), pl.Series(SITES)),
        (X, pa.array(Y).to_numpy(), pa.chunked_array([pa.array(SITES.tolist())])),
    ],
    ids=["numpy", "objects", "lists", "pandas", "index", "polars", "arrow"],
)
def test_a_table_is_parted_by_its_labels(table: Any, y: Any, labels: Any) -> None:
    assert plain(read_pairs(table, y, labels)) == WANTED


def test_labels_are_ordered_as_what_they_are() -> None:
    assert list(read_pairs(X, Y, [10, 2, 10, 2, 2, 10])) == ["2", "10"]
    assert list(read_pairs(X, Y, [10.0, 2.0, 10.0, 2.0, 2.0, 10.0])) == ["2", "10"]
    assert list(read_pairs(X, Y, [10, "a", 10, 2, "a", 2])) == ["10", "2", "a"]


def test_sparse_rows_are_parted_too() -> None:
    pairs = read_pairs(csr_array(X), Y, SITES)
    assert {name: x.toarray().tolist() for name, (x, _) in pairs.items()} == {name: WANTED[name][0] for name in WANTED}


def test_pairs_with_and_without_names() -> None:
    assert list(read_pairs({"north": (X, Y), 7: [X, Y]})) == ["north", "7"]
    assert list(read_pairs([(X, Y), (X, Y)])) == ["site 1", "site 2"]
    assert list(read_pairs(X, Y)) == ["site 1"]
    assert read_pairs({"u": Y, "v": Y}, Y) == {"site 1": ({"u": Y, "v": Y}, Y)}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (({},), "there are no sites"),
        (([],), "there are no sites"),
        ((X,), "sites is a ndarray: give a mapping from site to"),
        (("north",), "sites is text"),
        ((pd.DataFrame(X),), "sites is a DataFrame"),
        (((X, Y),), "site 'site 1' is not a pair"),
        (({"a": X},), "site 'a' is not a pair"),
        (({"a": (X, Y, Y)},), "site 'a' is not a pair"),
        (({" ": (X, Y)},), "site 1 has a blank name"),
        (({1: (X, Y), "1": (X, Y)},), "two sites are called '1'"),
        (({"a": (X, Y)}, Y), "y was given beside a mapping of sites"),
        ((X, None, SITES), "site was given without y"),
        ((X, Y, "b"), "site is text"),
        ((X, Y, X), "site has not one column"),
        ((X, Y, SITES[:5]), "X has 6 rows and site has 5 labels"),
        ((X, Y[:5], SITES), "y has 5 rows and site has 6 labels"),
        ((X, Y, ["b", None, "b", "c", "a", "b"]), "Site holds a missing value in row 2"),
        ((X, Y, [1.0, 2.0, np.nan, 1.0, 2.0, 2.0]), "Site holds a missing value in row 3"),
        ((X, Y, [1, "a", np.nan, 1, 2, 2]), "Site holds a missing value in row 3"),
        ((object(), Y, SITES), "X is an object"),
    ],
)
def test_refusals(given: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(sv.BadInput, match=complaint):
        read_pairs(*given)


def test_rows_are_counted_in_every_form() -> None:
    for table in (X, X.tolist(), csr_array(X), pd.DataFrame(X), pl.DataFrame(X), pa.table({"u": Y})):
        assert rows_of(table, "X") == 6
    with pytest.raises(sv.BadInput, match="X is an int: give a table"):
        rows_of(3, "X")


def test_every_row_has_a_response_and_no_site_is_empty() -> None:
    check_rows("a", X, Y)
    with pytest.raises(sv.BadInput, match="site 'a' has 6 rows in X and 5 in y"):
        check_rows("a", X, Y[:5])
    with pytest.raises(sv.BadInput, match="site 'a' has no records: leave it out"):
        check_rows("a", X[:0], Y[:0])


def test_a_record_belongs_to_one_site() -> None:
    refuse_shared({"a": Y[:3], "b": Y[3:], "c": Y.copy()})
    with pytest.raises(sv.BadInput, match="sites 'a' and 'b' share records"):
        refuse_shared({"c": Y[5:], "a": Y[3:5], "b": Y[:4]})
    with pytest.raises(sv.BadInput, match="sites 'z' and 'a' share records"):
        refuse_shared({"z": Y, "a": Y})


def test_predictions_are_numbers_of_one_shape() -> None:
    def read(values: Any, n: int | None = 2, columns: int | None = None) -> Any:
        return checked_predictions(values, n, columns, "predictions", " for the rows of site 'a'").tolist()

    assert read([1, 2]) == read([[1], [2]]) == read(np.array([1, 2], dtype=np.float32), None) == [1.0, 2.0]
    assert read([[1, 2]], None, 2) == [[1.0, 2.0]]
    for values, columns, complaint in (
        (["u", "v"], None, "predictions that are not numbers for the rows of site 'a'"),
        ([1.0], None, r"predictions of shape \(1,\) for the rows of site 'a', not \(2,\): give another model"),
        (3.0, None, r"of shape \(\)"),
        ([1.0, 2.0], 2, r"of shape \(2,\) for the rows of site 'a', not \(2, 2\)"),
        ([1.0, np.nan], None, "predictions with NaN in row 2 for the rows of site 'a'"),
        ([-np.inf, 1.0], None, "predictions with infinity in row 1"),
        ([[1.0, 2.0], [1.0, np.inf]], 2, "predictions with infinity in row 2"),
    ):
        with pytest.raises(sv.BadInput, match=complaint):
            read(values, columns=columns)
