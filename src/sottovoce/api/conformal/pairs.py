"""The calibration data of many sites: pairs of covariates and responses, or one table with a label a row.

Sentences name a site and a row, never a value.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.utils import _safe_indexing

from sottovoce.client.reading.labels import arrow_labels, code_labels, name_sites
from sottovoce.client.reading.reader import is_missing
from sottovoce.client.reading.table import SCORES
from sottovoce.core.checks import check_names, dimensions, kind_of, label_text, sentence
from sottovoce.core.errors import BadInput

_FORMS = "give a mapping from site to (X, y), a list of such pairs, or X, y and site=, the label of every row"
_PLACES = "every row must name its site"


def read_pairs(sites: Any, y: Any = None, site: Any = None) -> dict[str, tuple[Any, Any]]:
    """Return the covariates and responses of every site.

    ``sites`` is a mapping from the name of a site to its pair (X, y); a sequence of pairs (then the sites are called
    "site 1", "site 2", …); or one table X of all rows, with its responses and the label of every row's site (None when
    all rows are of one site).

    >>> table = np.array([[1.0], [2.0], [3.0]])
    >>> pairs = read_pairs(table, [10, 20, 30], site=["south", "north", "south"])
    >>> [(name, rows.tolist(), responses) for name, (rows, responses) in pairs.items()]
    [('north', [[2.0]], [20]), ('south', [[1.0], [3.0]], [10, 30])]
    """
    if y is not None:
        if isinstance(sites, Mapping) and any(isinstance(pair, tuple) for pair in sites.values()):
            raise BadInput("y was given beside a mapping of sites: put the responses of each site in its pair (X, y).")
        return {"site 1": (sites, y)} if site is None else _parted(sites, y, site)
    if site is not None:
        raise BadInput("site was given without y: give X, y and site, the label of every row.")
    if isinstance(sites, Mapping):
        given = list(sites.items())
    elif isinstance(sites, Sequence) and not isinstance(sites, str | bytes):
        given = [(f"site {place}", pair) for place, pair in enumerate(sites, start=1)]
    else:
        raise BadInput(f"sites is {kind_of(sites)}: {_FORMS}.")
    if not given:
        raise BadInput(f"there are no sites: {_FORMS}.")
    names = check_names(name for name, _ in given)
    for name, (_, pair) in zip(names, given, strict=True):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise BadInput(f"site {name!r} is not a pair (X, y): {_FORMS}.")
    return {name: (pair[0], pair[1]) for name, (_, pair) in zip(names, given, strict=True)}


def parted_labels(by: Any, table: Any, site: Any) -> dict[str, list[str]]:
    """Part the labels of the groups of all rows by site, as `read_pairs` parts the rows."""
    column = labels_of(by)
    n = rows_of(table, "X")
    if len(column) != n:
        raise BadInput(f"X has {n:,} rows and by has {len(column):,} labels: give one label for each row.")
    if column.null_count:
        raise BadInput("by holds a missing value: every row needs its group.")
    names = [label_text(label) for label in column.to_pylist()]
    if site is None:
        return {"site 1": names}
    found = name_sites(code_labels(labels_of(site), "site", _PLACES), "site", SCORES)
    parts = (np.flatnonzero(found.codes == place).tolist() for place in range(len(found.labels)))
    return {name: [names[row] for row in rows] for name, rows in zip(check_names(found.labels), parts, strict=True)}


def _parted(table: Any, y: Any, site: Any) -> dict[str, tuple[Any, Any]]:
    """Part one table by the labels of its rows."""
    found = name_sites(code_labels(labels_of(site), "site", _PLACES), "site", SCORES)
    n = found.codes.size
    for what, size in (("X", rows_of(table, "X")), ("y", rows_of(y, "y"))):
        if size != n:
            raise BadInput(f"{what} has {size:,} rows and site has {n:,} labels: give one label for each row.")
    names = check_names(found.labels)
    rows = [np.flatnonzero(found.codes == place) for place in range(len(names))]
    return {name: (_safe_indexing(table, at), _safe_indexing(y, at)) for name, at in zip(names, rows, strict=True)}


def labels_of(site: Any) -> Any:
    """Turn the labels of rows into an Arrow column; labels of mixed types become text."""
    if isinstance(site, str | bytes):
        raise BadInput("site is text: give the labels themselves, one for each row, and leave them out of X.")
    series = nw.from_native(site, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return arrow_labels(series)
    if dimensions(site) != 1:
        raise BadInput("site has not one column: give one label for each row.")
    values = np.asarray(site, dtype=object)
    try:
        return pa.chunked_array([pa.array(values.tolist(), from_pandas=True)])
    except (pa.ArrowException, TypeError, ValueError):
        texts = [None if is_missing(label) else label_text(label) for label in values.tolist()]
        return pa.chunked_array([pa.array(texts, type=pa.string())])


def rows_of(table: Any, where: str) -> int:
    """Count the rows of a table or column."""
    shape = getattr(table, "shape", None)
    try:
        return int(shape[0]) if shape else len(table if hasattr(table, "__len__") else np.asarray(table))
    except TypeError:
        raise sentence(where, f"is {kind_of(table)}: give a table with a row for each record.") from None


def check_rows(name: str, covariates: Any, responses: npt.NDArray[Any]) -> None:
    """Refuse a site without records, or with another number of responses than of rows."""
    n = rows_of(covariates, f"X of site {name!r}")
    if n != responses.size:
        raise BadInput(f"site {name!r} has {n:,} rows in X and {responses.size:,} in y: give one response a row.")
    if not n:
        raise BadInput(f"site {name!r} has no records: leave it out.")


def refuse_shared(responses: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse two sites whose responses are the same memory: their records would count, and be asked, twice."""
    address = {name: int(values.__array_interface__["data"][0]) for name, values in responses.items()}
    for one, two in pairwise(sorted(responses, key=address.__getitem__)):
        if np.may_share_memory(responses[one], responses[two]):
            first, second = sorted((one, two), key=list(responses).index)
            raise BadInput(f"sites {first!r} and {second!r} share records: give every record to one site.")
