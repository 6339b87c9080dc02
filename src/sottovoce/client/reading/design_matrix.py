"""From covariates and responses, in memory or in a file, to the checked, scaled rows of a regression."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sottovoce.client.reading.categories import refuse_unseen
from sottovoce.client.reading.matrix import (
    RESPONSE,
    Matrix,
    Warn,
    open_matrix,
    open_response,
    read_response,
)
from sottovoce.client.reading.scaling import refuse_collinear, refuse_not_finite, refuse_other_values, scaled
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds, read_bounds
from sottovoce.core.calling import warn
from sottovoce.core.categories import Levels, with_dummies
from sottovoce.core.errors import BadInput

ESTIMATOR = "PrivateQuantileRegressor"

_SHOWN = 5  # names in a sentence


class ReadRows(NamedTuple):
    """The rows of a regression; what their columns are called, and whether the data said so; rows clipped; bounds."""

    rows: Rows
    names: tuple[str, ...]
    named: bool
    clipped: int
    bounds: Bounds


def plain_warning(text: str) -> None:
    """Warn of something that is read all the same."""
    warn(text)


def read(
    X: Any,  # noqa: N803
    y: Any,
    bounds: Any = None,
    clip: bool = False,
    *,
    names: Sequence[str] | None = None,
    p: int | None = None,
    collinear: bool = True,
    levels: Levels | None = None,
    two_valued: Sequence[str] = (),
    estimator: str = ESTIMATOR,
    warn: Warn = plain_warning,
) -> ReadRows:
    """Read the records of a regression, or refuse them in one sentence before anything is spent.

    X has one row a record: a two-dimensional array, a list of rows, a data frame of pandas or polars, an Arrow table,
    or a mapping from name to column. A contiguous y of float64 is used as it is, not copied. A `Bounds` of an earlier
    call is used as it is; without bounds covariates are in [-1, 1] already. With ``clip`` those beyond a bound are
    moved to it, and their rows counted; ``two_valued`` columns take their bounds alone. ``names`` (None if they had
    none) and ``p`` are those of an earlier call that this one continues. Looking for ``collinear`` columns tells
    something about the records: it is a check of the holder's own machine, and False for a part of the data.

    >>> trips = {"distance": [2.0, 7.5, 4.0, 12.0], "night": [False, True, False, False]}
    >>> read(trips, [9, 20, 18, 31], bounds={"distance": (0, 30), "night": (0, 1)}).rows
    Rows(4 records of 2 covariates, values hidden)
    >>> read(trips, [9, 20, 18, 31], bounds=(0, 10))
    Traceback (most recent call last):
    sottovoce.core.errors.BadInput: Column 'distance' of X is outside its bounds (0, 10) in row 4: widen the bounds, \
or give clip=True to move such values to the nearest bound
    """
    if y is None:
        raise BadInput(f"{estimator} requires y to be passed, but the target y is None")
    matrix = open_matrix(X, levels)
    if p is not None:
        check_features(matrix, names, p, estimator, warn)
    return read_opened(matrix, y, bounds, clip, collinear=collinear, levels=levels, two_valued=two_valued, warn=warn)


def read_opened(
    matrix: Matrix,
    y: Any,
    bounds: Any,
    clip: bool,
    *,
    collinear: bool = True,
    levels: Levels | None = None,
    two_valued: Sequence[str] = (),
    where: str = RESPONSE,
    warn: Warn,
) -> ReadRows:
    """Read the records of a regression from an opened table and a column of responses, called `where`."""
    given = isinstance(bounds, Bounds)
    between = bounds if given else read_bounds(with_dummies(bounds, matrix.names, levels or {}), matrix.names)
    column = open_response(y, where, warn)
    if column.size != matrix.n:
        raise BadInput(
            f"Found input variables with inconsistent numbers of samples: X has {matrix.n:,} rows and {where} has "
            f"{column.size:,}, so give one response a row"
        )
    response = read_response(column, where)
    features, clipped = scaled(matrix, between, clip=clip)
    refuse_other_values(features, matrix, two_valued)
    if collinear:
        if len(features) > matrix.p:
            refuse_unseen(features, matrix.names, levels or {})
        refuse_collinear(features, matrix)
    return ReadRows(Rows(features, response), matrix.names, matrix.named, clipped, between)


def read_features(
    X: Any,  # noqa: N803
    names: Sequence[str] | None,
    p: int,
    *,
    levels: Levels | None = None,
    estimator: str = ESTIMATOR,
    warn: Warn = plain_warning,
) -> Floats:
    """Read raw covariates to predict for: they must be the columns of the fit, and finite, but in no bounds.

    ``names`` (None if they had none) and ``p`` are those of the columns at the fit.
    """
    matrix = open_matrix(X, levels)
    check_features(matrix, names, p, estimator, warn)
    values = matrix.chunk(0, matrix.n)
    refuse_not_finite(values, matrix)
    return values


def check_features(matrix: Matrix, names: Sequence[str] | None, p: int, estimator: str, warn: Warn) -> None:
    """Refuse a table with other columns than a model was fitted to, in the words that scikit-learn looks for.

    ``warn`` is told when names can not be compared, since one table has none.
    """
    if names is not None and not matrix.named:
        warn(f"X does not have valid feature names, but {estimator} was fitted with feature names")
    elif names is None and matrix.named:
        warn(f"X has feature names, but {estimator} was fitted without feature names")
    elif names is not None and tuple(names) != matrix.names:
        raise _other_names(matrix.names, names)
    if matrix.p != p:
        raise BadInput(f"X has {matrix.p} features, but {estimator} is expecting {p} features as input.")


def _other_names(given: Sequence[str], expected: Sequence[str]) -> BadInput:
    """Say which names are new, which are gone, or that their order is another one."""
    unseen, gone = sorted(set(given) - set(expected)), sorted(set(expected) - set(given))
    text = "The feature names should match those that were passed during fit.\n"
    if unseen:
        text += f"Feature names unseen at fit time:\n{_listed(unseen)}"
    if gone:
        text += f"Feature names seen at fit time, yet now missing:\n{_listed(gone)}"
    if not unseen and not gone:
        text += "Feature names must be in the same order as they were in fit.\n"
    return BadInput(text)


def _listed(names: Sequence[str]) -> str:
    """List the first names, one a line."""
    return "".join(f"- {name}\n" for name in names[:_SHOWN]) + ("- ...\n" if len(names) > _SHOWN else "")
