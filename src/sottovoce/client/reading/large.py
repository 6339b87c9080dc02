"""A column larger than memory: from files of any length to records that lie in a spool, checked as all others are."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from sottovoce.client.reading.arrow import pa
from sottovoce.client.reading.column import RECORDS
from sottovoce.client.reading.files import Paths, expand
from sottovoce.client.reading.formats import Marks, is_known, where
from sottovoce.client.reading.reader import open_column
from sottovoce.client.reading.spool import NewSpool, new_spool, open_spool
from sottovoce.client.reading.stream import column_blocks
from sottovoce.client.reading.table import Reading, check_missing, count_missing
from sottovoce.core.checks import sentence
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown
from sottovoce.core.unit import NUMBER, Unit, common_unit

Progress = Callable[[int], None]  # is told how many rows have been read
_ENDING = ".spool"


def open_large(
    paths: Paths,
    value: str,
    folder: str | os.PathLike[str],
    *,
    missing: str = "refuse",
    delimiter: str | None = None,
    decimal: str | None = None,
    progress: Progress | None = None,
) -> Reading:
    r"""Open one column of Parquet, Arrow or CSV files as the records of one site, without holding them in memory.

    ``paths`` are files, wildcards and folders, whose rows stand below each other in the order of their names. The first
    time, the column is read block by block, checked as any column is and written to a spool in ``folder``, 8 bytes a
    record, which nobody else may read; it is used again as long as no source changes.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (pathlib.Path(folder) / "north.csv").write_text("delay\n3.5\n\n8\n")
    ...     open_large(f"{folder}/north.csv", "delay", f"{folder}/spools", missing="drop")
    Reading(records=Records(2 records, values hidden), dropped=1)
    """
    check_missing(missing)
    marks = Marks(delimiter, decimal).checked()
    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = expand(_with_folders(paths))
    home, made_of = _label(paths, value, missing, marks), _stamps(files)
    path = Path(folder).expanduser() / f"{home}-{_digest(made_of)}{_ENDING}"
    found = open_spool(path)
    if found is None:
        with new_spool(path) as spool:
            _fill(spool, files, value, missing, marks, progress)
            if _stamps(files) != made_of:
                raise BadInput("a source changed while it was read: give it once it is whole")
        for other in path.parent.glob(f"{home}-*{_ENDING}"):  # of the same sources, as they were
            if other != path:
                other.unlink(missing_ok=True)
        found = open_spool(path)
        if found is None:
            raise BadInput(f"{shown(path.parent, 200)} lost the records of the site: check who else writes there")
    return Reading(*found)


def remove_spools(folder: str | os.PathLike[str]) -> int:
    """Remove every spool of a folder, be it whole or not; return how many. Sites that are open keep theirs."""
    found = [each for each in Path(folder).expanduser().iterdir() if each.suffix in (_ENDING, ".part")]
    for each in found:
        each.unlink(missing_ok=True)
    return len(found)


def _fill(
    spool: NewSpool, files: Sequence[Path], value: str, missing: str, marks: Marks, progress: Progress | None
) -> None:
    """Read, check and write the column of every file."""
    units: dict[str, Unit] = {}
    dropped = rows = 0
    for path in files:
        place = where(path, value)
        found: Unit | None = None
        for first, block in column_blocks(path, value, marks):
            column = open_column(block, place, RECORDS, first=first)
            chunk = np.array(column.chunk(0, column.size))  # a copy: the file may change after the check
            gone = count_missing(chunk, place, first, missing)
            spool.write(chunk[~np.isnan(chunk)] if gone else chunk)
            dropped, rows = dropped + gone, rows + len(chunk)
            if not pa.types.is_null(block.type):
                found = column.unit if found is None else _joined(found, column.unit, place)
            if progress is not None:
                progress(rows)
        units[shown(path, 200)] = found or NUMBER
    if not spool.size:
        raise sentence(where(files[0], value), "holds missing values alone: give a column with records")
    spool.finish(common_unit(units, noun="file"), dropped)


def _joined(unit: Unit, other: Unit, place: str) -> Unit:
    """Return the unit of two blocks of one file, or refuse what cannot stand in one column."""
    if other.categories != unit.categories:
        raise sentence(place, "has parts with different categories: declare the same ones, in one order, for all rows")
    if other.kind != unit.kind:
        raise sentence(place, f"holds {unit.plural} in some parts and {other.plural} in others: give all rows one kind")
    return common_unit({"before": unit, "after": other}, noun="part")


def _with_folders(paths: Sequence[str | os.PathLike[str]]) -> Iterable[str | os.PathLike[str]]:
    """Put the files of records in a folder, and in those below it, in its place; leave whatever begins with . or _."""
    for given in paths:
        top = _folder(given)
        if top is None:
            yield given
            continue
        found = [each for each in sorted(top.rglob("*")) if each.is_file() and is_known(each)]
        shown_ones = [each for each in found if not any(p[0] in "._" for p in each.relative_to(top).parts)]
        if not shown_ones:
            raise BadInput(f"{shown(top, 200)} is a folder without files of records: give another")
        yield from shown_ones


def _folder(given: object) -> Path | None:
    """Return the folder that is given, if it is one; whatever else it is, others will say."""
    try:
        found = Path(given).expanduser() if isinstance(given, str | os.PathLike) else None
        return found if found is not None and found.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _label(paths: Sequence[str | os.PathLike[str]], value: str, missing: str, marks: Marks) -> str:
    """Name what was asked for: the same sources, column and way to read them have one spool at a time."""
    return _digest(
        [*(str(Path(each).expanduser().absolute()) for each in paths), "\0", value, missing, *map(str, marks)]
    )


def _stamps(files: Sequence[Path]) -> list[str]:
    """Return of each file its name, size and time."""
    try:
        found = [(path, path.stat()) for path in files]
    except OSError:
        raise BadInput("a source was taken away while it was read: give it once it is whole") from None
    return [f"{path.absolute()}\0{each.st_size}\0{each.st_mtime_ns}" for path, each in found]


def _digest(parts: Iterable[str]) -> str:
    """Return a name for texts: different ones have different names."""
    hashed = hashlib.sha256()
    for part in parts:
        data = os.fsencode(part)
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()[:24]
