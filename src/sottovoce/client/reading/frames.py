"""From a data frame (pandas, polars, Arrow) with columns for value, site and perhaps person to the records of sites.

One record a person: the report of a record costs epsilon, and a person behind k records would pay k times. Drawing one
of her rows over the whole study, not one at each site, keeps the privacy statement true of the person.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import NarwhalsError

from sottovoce.client.reading.arrow import need_arrow
from sottovoce.client.reading.column import WEIGHTS
from sottovoce.client.reading.formats import check_columns
from sottovoce.client.reading.labels import (
    GROUP,
    Labels,
    arrow_labels,
    code_labels,
    code_persons,
    name_sites,
    number_persons,
)
from sottovoce.client.reading.reader import collected, not_computed
from sottovoce.client.reading.strata import Division, check_weights, divide
from sottovoce.client.reading.table import (
    DROP,
    QUANTILE,
    Checked,
    Flags,
    Needs,
    SiteTable,
    check_column,
    check_missing,
    checked_table,
)
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.censoring import Censoring
from sottovoce.core.checks import check_names, kind_of
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import hides, quoted

Roll = Callable[[int], Words]  # a source of n independent, uniform 64-bit words
UNDIVIDED = Division()
EVERYWHERE = "all records"  # the site of records that are all held in one place


def read_frame(
    frame: Any,
    *,
    value: str,
    site: str | None,
    person: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    missing: str = "refuse",
    dice: Roll | None = None,
    censored: Censoring | None = None,
    flag: str | None = None,
) -> SiteTable:
    """Read the records of many sites from one data frame, or refuse it before anything is spent.

    Columns of public groups and weights divide the sites (`client.reading.strata`); without a column of sites all
    records lie in one place. With a column ``person`` the person, not the row, is what privacy protects: of all her
    rows, over all sites, one is drawn, by ``dice``. Under missing="drop" missing values and sites are left out and
    counted; a missing person is always refused. What lies beyond the limits ``censored``, or is marked in the column
    ``flag``, is a symbol.

    >>> import pyarrow as pa
    >>> flights = pa.table({"delay": [3.0, 8.0, 1.0, 2.0], "airport": ["LGA", "JFK", "JFK", "LGA"]})
    >>> read_frame(flights, value="delay", site="airport").names
    ('JFK', 'LGA')
    """
    check_missing(missing)
    need_arrow("reading a data frame with a site column")
    if person is not None:
        check_dice(dice)
    columns = pick_columns(value, site, person, group, weight, flag=flag, censored=censored)
    narrow = _select(frame, columns)
    if not len(narrow):
        raise BadInput("the data frame has no rows: give a data frame with records")
    flags = None if flag is None else Flags(narrow[flag].to_native(), _where(flag))
    limits: dict[str, Any] = {"censored": censored, "flags": flags}
    checked = check_column(narrow[value].to_native(), where=_where(value), missing=missing, **limits)
    advice = DROP if missing == "refuse" else None
    sites = Labels(np.zeros(len(narrow), dtype=np.int64), [EVERYWHERE])
    if site is not None:
        sites = name_sites(code_labels(arrow_labels(narrow[site]), _where(site), advice), _where(site))
    people = None
    if person is not None:
        people = number_persons(code_persons(arrow_labels(narrow[person]), _where(person)), _where(person))
    division = Division(by=group or "")
    if group is not None:
        coded = code_labels(arrow_labels(narrow[group]), _where(group), advice)
        division = division._replace(groups=name_sites(coded, _where(group), noun=GROUP))
    if weight is not None:
        division = division._replace(weights=read_weights(narrow[weight].to_native(), _where(weight), missing))
    return by_site(checked, sites, people, dice, division=division)


def read_weights(column: Any, where: str, missing: str) -> Floats:
    """Read a column of public weights; NaN stays only under missing="drop"."""
    weights: Floats = check_column(column, where=where, missing=missing, accepts=WEIGHTS).floats
    check_weights(weights, where)
    return weights


def pick_columns(
    value: str,
    site: str | None = None,
    person: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    *,
    flag: str | None = None,
    censored: Censoring | None = None,
) -> list[str]:
    """List the columns to read, refusing one column in two roles, and marks without limits."""
    if flag is not None and censored is None:
        raise BadInput('flag= marks values beyond limits, and none are said: add them, as in censored="<5"')
    columns = [name for name in (value, site, person, group, weight, flag) if name is not None]
    check_column_names(columns)
    if len(set(columns)) < len(columns):
        given = {"group": group, "weight": weight, "flag": flag}
        said = ["value", "site", "person", *(role for role, name in given.items() if name is not None)]
        roles = f"{', '.join(said[:-1])} and {said[-1]}"
        twice = next(name for name in columns if columns.count(name) > 1)
        raise BadInput(f"column {quoted(twice)} is named twice: {roles} are different columns")
    return columns


def check_column_names(names: Iterable[object]) -> None:
    """Refuse names of columns that are no text, or cannot be shown."""
    for name in names:
        if not isinstance(name, str):
            raise BadInput(f"the name of a column is {kind_of(name)}: give text")
        if hides(name):
            raise BadInput(f"column {quoted(name)} has a control or invisible character in its name: rename it")


def _where(column: str) -> str:
    """Name a column of the data frame in a sentence."""
    return f"column {quoted(column)} of the data frame"


def _select(frame: Any, columns: list[str]) -> "nw.DataFrame[Any]":
    """Keep only the needed columns of a data frame; a lazy one is computed after that."""
    try:
        native = nw.from_native(frame)
        present = native.collect_schema().names()
    except TypeError:
        raise BadInput(f"frame is {kind_of(frame)}: give a data frame of pandas, polars or Arrow") from None
    except NarwhalsError:
        raise BadInput("the data frame has two columns of one name: rename one of them") from None
    except Exception:  # of a lazy frame, whatever its library raises, with values in it
        raise not_computed("the data frame") from None
    check_columns("the data frame", columns, present)
    narrow = native.select(columns)
    return collected(narrow, "the data frame") if isinstance(narrow, nw.LazyFrame) else narrow


def by_site(
    values: Checked,
    sites: Labels,
    persons: Ints | None,
    dice: Roll | None,
    needs: Needs = QUANTILE,
    division: Division = UNDIVIDED,
) -> SiteTable:
    """Part the values by site, group and weight, leaving out what is missing and all but one row a person."""
    names = check_names(sites.labels)
    if not names:
        raise BadInput("no row names its site: fill in the site column")
    gone = np.isnan(values.floats) if values.missing else np.zeros(values.floats.size, dtype=np.bool_)
    placed = (sites.codes >= 0) & division.placed
    rows = np.flatnonzero(placed & ~gone)
    dropped = np.bincount(sites.codes[placed & gone], minlength=len(names)).tolist()
    complete = rows.size
    if persons is not None:
        rows = rows[one_row_a_person(persons[rows], dice)]
    codes, strata = sites.codes[rows], None
    if division.divides:
        _refuse_empty("site", names, codes)
        if division.groups is not None:
            _refuse_empty("group", check_names(division.groups.labels, "group"), division.groups.codes[rows])
        codes, names, strata = divide(Labels(sites.codes, names), division, rows)
        lost = dict(zip(check_names(sites.labels), dropped, strict=True))
        dropped = [lost.pop(site, 0) for site in strata.sites]  # a site's missing values stand in its first stratum
        needs = needs._replace(records=1)
    # Numpy sorts 16-bit integers by radix, in one pass over the rows.
    order = rows[np.argsort(codes.astype(np.int16) if len(names) < 2**15 else codes, kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))[:-1]
    parts = np.split(values.floats[order], ends)
    table = checked_table(
        names,
        [Records(part, values.unit) for part in parts],
        dict(zip(names, dropped, strict=True)),
        unplaced=int(np.count_nonzero(~placed)),
        left_out=complete - rows.size,
        per_person=persons is not None,
        needs=needs,
    )
    return replace(table, strata=strata)


def _refuse_empty(what: str, names: Sequence[str], codes: Ints) -> None:
    """Refuse a site or a group without a row that can be used."""
    if len(empty := np.flatnonzero(np.bincount(codes, minlength=len(names)) == 0)):
        raise BadInput(f"{what} {quoted(names[empty[0]])} has no records that can be used: leave it out")


def one_row_a_person(persons: npt.NDArray[np.int64], dice: Roll | None) -> npt.NDArray[np.intp]:
    """Draw one row for every person, each of her rows equally likely.

    Every row gets an independent random word and the row with the smallest is kept: by symmetry each of k rows wins
    with probability 1/k.

    >>> import numpy as np
    >>> words = np.array([5, 9, 1, 7, 3], dtype=np.uint64)
    >>> one_row_a_person(np.array([0, 1, 0, 1, 2]), lambda n: words[:n])
    array([2, 3, 4])
    """
    words = check_dice(dice)(persons.size)
    if words.shape != persons.shape or words.dtype != np.uint64:
        raise TypeError("dice must return as many uint64 words as it is asked for")
    order = np.lexsort((words, persons))
    in_order = persons[order]
    first = np.ones(order.size, dtype=np.bool_)
    first[1:] = in_order[1:] != in_order[:-1]
    return np.sort(order[first])


def check_dice(dice: Roll | None) -> Roll:
    """Refuse to draw among the rows of a person without dice."""
    if dice is None:
        raise BadInput("person is given without dice, which draw one row a person: give dice as well")
    return dice
