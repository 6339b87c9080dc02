"""From files on disk, one for each site or with a site column, to the records of sites."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sottovoce.client.reading.arrow import need_arrow
from sottovoce.client.reading.formats import Marks, read_table, stem, where
from sottovoce.client.reading.frames import Roll, by_site, check_dice, pick_columns, read_weights
from sottovoce.client.reading.labels import (
    GROUP,
    Coded,
    Labels,
    code_labels,
    code_persons,
    join_files,
    name_sites,
    number_persons,
)
from sottovoce.client.reading.strata import Division
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
    read_values,
)
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.censoring import Censoring
from sottovoce.core.checks import check_names, kind_of
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted, shown
from sottovoce.core.unit import common_unit

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read_files(
    paths: Paths,
    *,
    value: str,
    site: str | None = None,
    person: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    missing: str = "refuse",
    dice: Roll | None = None,
    needs: Needs = QUANTILE,
    delimiter: str | None = None,
    decimal: str | None = None,
    censored: Censoring | None = None,
    flag: str | None = None,
) -> SiteTable:
    r"""Read the records of many sites from Parquet, Arrow or CSV files, or refuse them before anything is spent.

    Without a column ``site`` each file is a site, called as the file is. Columns of public groups and weights divide
    the sites (`client.reading.strata`). Of all rows of a ``person``, in all files, one is drawn, by ``dice``. Under
    missing="drop" missing values and sites are left out and counted; a missing person is always refused. What parts
    columns and decimals in CSV files is found out unless given. What lies beyond the limits ``censored``, or is marked
    in the column ``flag``, is a symbol.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("north", "south"):
    ...         _ = (pathlib.Path(folder) / f"{name}.csv").write_text("delay\n3.5\n8\n")
    ...     read_files(f"{folder}/*.csv", value="delay").names
    ('north', 'south')
    """
    check_missing(missing)
    if person is not None:
        check_dice(dice)
    marks = Marks(delimiter, decimal).checked()
    columns = pick_columns(value, site, person, group, weight, flag=flag, censored=censored)
    numeric = [value] if weight is None else [value, weight]
    limits = Limited(censored, flag)
    files = expand(paths)
    if site is None and person is None and group is None and weight is None:
        return _one_file_a_site(files, value, missing, needs, marks, limits)
    need_arrow("a column of sites or persons" if group is None and weight is None else "a column beside the records")
    stems = check_names(stem(path) for path in files) if site is None else []
    parts: list[Checked] = []
    site_columns: list[Coded] = []
    person_columns: list[Coded] = []
    group_columns: list[Coded] = []
    weights: list[Floats] = []
    for path in files:
        table = read_table(path, columns, numeric, marks=marks, censored=censored, weight=weight)
        parts.append(
            check_column(table.column(value), where=where(path, value), missing=missing, **limits.of(table, path))
        )
        advice = DROP if missing == "refuse" else None
        if group is not None:
            group_columns.append(code_labels(table.column(group), where(path, group), advice))
        if weight is not None:
            weights.append(read_weights(table.column(weight), where(path, weight), missing))
        if site is not None:
            site_columns.append(code_labels(table.column(site), where(path, site), advice))
        if person is not None:
            person_columns.append(code_persons(table.column(person), where(path, person)))
    if site is None:
        sizes = [part.floats.size for part in parts]
        sites = Labels(np.repeat(np.arange(len(stems), dtype=np.int64), sizes), list(stems))
    else:
        sites = name_sites(join_files(site_columns), f"column {quoted(site)}", needs)
    people: Ints | None = None
    if person is not None:
        people = number_persons(join_files(person_columns), f"column {quoted(person)}")
    division = Division(by=group or "")
    if group is not None:
        division = division._replace(
            groups=name_sites(join_files(group_columns), f"column {quoted(group)}", noun=GROUP)
        )
    if weight is not None:
        division = division._replace(weights=np.concatenate(weights))
    return by_site(_joined(files, parts), sites, people, dice, needs, division)


class Limited(NamedTuple):
    """The limits beyond which values are symbols, and the column that marks such values."""

    censored: Censoring | None = None
    flag: str | None = None

    def of(self, table: Any, path: Path) -> dict[str, Any]:
        """Return what the reader of a column is to be told."""
        flags = None if self.flag is None else Flags(table.column(self.flag), where(path, self.flag))
        return {"censored": self.censored, "flags": flags}


def _one_file_a_site(
    files: list[Path], value: str, missing: str, needs: Needs, marks: Marks, limits: Limited
) -> SiteTable:
    """Read each file as a site, holding one file at a time."""
    names = check_names(stem(path) for path in files)
    columns = pick_columns(value, flag=limits.flag, censored=limits.censored)
    readings = []
    for path in files:
        table = read_table(path, columns, marks=marks, censored=limits.censored)
        told = limits.of(table, path)
        readings.append(read_values(table.column(value), where=where(path, value), missing=missing, **told))
    dropped = {name: reading.dropped for name, reading in zip(names, readings, strict=True)}
    return checked_table(names, [reading.records for reading in readings], dropped, needs=needs)


def _joined(files: list[Path], parts: list[Checked]) -> Checked:
    """Put the values of several files below each other, in one unit."""
    unit = common_unit({shown(path, 200): part.unit for path, part in zip(files, parts, strict=True)}, noun="file")
    floats = parts[0].floats if len(parts) == 1 else np.concatenate([part.floats for part in parts])
    return Checked(floats, unit, sum(part.missing for part in parts), owned=False)


def expand(paths: Paths) -> list[Path]:
    """List the files that paths and wildcards name, refusing folders, absent files and a file named twice."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    found: list[Path] = []
    for given in paths:
        if not isinstance(given, str | os.PathLike):
            raise BadInput(f"a path is {kind_of(given)}: give the name of a file")
        try:
            found.extend(_matches(Path(given).expanduser()))
        except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, no home folder, a null byte
            if isinstance(error, BadInput):
                raise
            raise BadInput(f"{shown(given, 200)} cannot be the name of a file: check it") from None
    if not found:
        raise BadInput("there are no files: give at least one file of records")
    _refuse_twice(found)
    return found


def file_identity(path: Path) -> tuple[int, int]:
    """Return what is the same for all names of one file, links too."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _refuse_twice(files: Iterable[Path]) -> None:
    """Refuse one file under two names, be it by a link."""
    seen: dict[tuple[int, int], Path] = {}
    for path in files:
        first = seen.setdefault(file_identity(path), path)
        if first is not path:
            name = shown(path, 200)
            twice = (
                "is named twice" if first.absolute() == path.absolute() else f"is the same file as {shown(first, 200)}"
            )
            raise BadInput(f"{name} {twice}: each file may be read once, so that no record answers twice")


def _matches(path: Path) -> list[Path]:
    """List the files that one path or wildcard names, in order; hidden files only where the wildcard says so."""
    name = shown(path, 200)
    if path.is_dir():
        raise BadInput(f"{name} is a folder: give its files, such as {shown(path / '*.parquet', 200)}")
    if path.exists():
        return [path]
    if not any(sign in str(path) for sign in "*?["):
        raise BadInput(f"there is no file {name}: check its name")
    matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    hidden = path.name.startswith(".")
    files = [match for match in matches if match.is_file() and (hidden or not match.name.startswith("."))]
    if not files:
        raise BadInput(f"no file matches {name}: check the wildcard")
    return files
