"""The labels of rows, of sites and of persons: their numbers, their names, and one person under one number.

A person is one person however a file writes her: in doubt two labels are one person, which can cost records, and never
privacy. Sites stay as they are written; names that differ only in case or blanks are said before anybody is asked.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from sottovoce.client.reading.arrow import pa, pc
from sottovoce.client.reading.reader import is_missing
from sottovoce.client.reading.table import DROP, QUANTILE, Needs
from sottovoce.core.arrays import Ints
from sottovoce.core.checks import bad_row, label_text, sentence
from sottovoce.core.errors import BadInput

WHO = "every row must name its person"
SITE, GROUP = ("sites", "says where a record is held"), ("groups", "says which group a record belongs to")

_MANY, _FEW = 30, 5  # different numbers that name no sites if they have fractions or so few rows each
_WRITTEN_OUT = r"^\+?(-?)0*([0-9]+)(?:[.,]0*)?$"  # a whole number, with zeros before it and after the point
_FRACTION_TOO = r"^-?[0-9]+(?:[.,][0-9]+)?$"
_POWER = r"^[0-9]+(?:\.[0-9]+)?e\+?[0-9]{1,2}$"
_RECORD = r"^[+-]?[0-9]*[.,]?[0-9]+(?:[eE][+-]?[0-9]+)?$|^[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}"  # a number, a date


class Coded(NamedTuple):
    """For each row the number of its label, -1 where it is missing, and the labels, as Arrow and all different."""

    codes: Ints
    labels: Any


class Labels(NamedTuple):
    """For each row the number of its label, -1 where it is missing, and the labels in their order."""

    codes: Ints
    labels: list[Any]


def arrow_labels(series: "nw.Series[Any]") -> Any:
    """Turn a column of labels into Arrow; labels of mixed types become text."""
    native = series.to_native()
    if type(native).__module__.startswith("pyarrow"):
        return native
    if series.dtype not in (nw.Object, nw.Unknown):
        try:
            return series.to_arrow()
        except (pa.ArrowException, TypeError, ValueError):
            pass
    texts = (None if is_missing(label) else label_text(label) for label in series.to_list())
    return pa.chunked_array([pa.array(texts, type=pa.large_string())])


def code_labels(column: Any, where: str, advice: str | None = DROP) -> Coded:
    """Give every label of an Arrow column its number; with an advice, a missing label is refused."""
    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    try:
        coded = join_coded([_code(chunk) for chunk in chunks])
    except (pa.ArrowException, TypeError):
        raise sentence(where, "holds values that cannot be names: give text or whole numbers") from None
    missing = coded.codes < 0
    if advice is not None and missing.any():
        raise bad_row(where, int(missing.argmax()), "a missing value", advice)
    return coded


def code_persons(column: Any, where: str) -> Coded:
    """Give every person her number; a missing one is refused, and numbers with fractions, which name nobody."""
    coded = code_labels(column, where, WHO)
    of = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_floating(of) and coded.labels.type != pa.int64():
        raise _no_person(where)
    return coded


def _no_person(where: str) -> BadInput:
    """Refuse numbers that name nobody."""
    return sentence(where, "holds numbers with fractions, or too long for float64, which name nobody: give text")


def join_coded(parts: Sequence[Coded]) -> Coded:
    """Put labels below each other; labels of different types become text."""
    if not parts:
        return Coded(np.empty(0, dtype=np.int64), pa.array([], pa.large_string()))
    kinds = {part.labels.type for part in parts if len(part.labels)}
    pieces = [part.labels for part in parts]
    if len(kinds) != 1:
        pieces = [piece.cast(pa.large_string()) for piece in pieces]
    pieces = [piece.cast(next(iter(kinds))) if len(kinds) == 1 else piece for piece in pieces]
    starts = np.cumsum([0, *(len(piece) for piece in pieces)])
    codes = np.concatenate(
        [np.where(part.codes < 0, -1, part.codes + start) for part, start in zip(parts, starts, strict=False)]
    )
    return _again(codes, pa.concat_arrays(pieces))


def _again(codes: Ints, labels: Any) -> Coded:
    """Give labels other numbers after some of them became equal or missing."""
    found = labels.dictionary_encode()
    numbers = found.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Coded(np.append(numbers, -1)[codes], found.dictionary)


def _code(chunk: Any) -> Coded:
    """Give every label of one Arrow array its number."""
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    if str(chunk.type).startswith("run_end_encoded"):
        chunk = pc.run_end_decode(chunk)
    if not pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_encode()
    indices = chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return _again(indices, _simple(chunk.dictionary))


def _simple(labels: Any) -> Any:
    """Turn labels into whole numbers or text where they stand for them; NaN is missing."""
    of = labels.type
    if pa.types.is_dictionary(of):
        inner = _code(labels)
        return inner.labels.take(pa.array(inner.codes, mask=inner.codes < 0))
    if "binary" in str(of) or str(of) in ("string", "string_view"):
        return labels.cast(pa.large_string())
    if pa.types.is_integer(of) and of != pa.uint64():
        return labels.cast(pa.int64())
    if pa.types.is_floating(of):
        wide = labels.cast(pa.float64())
        present = pc.if_else(pc.is_nan(wide), pa.scalar(None, pa.float64()), wide)
        try:
            return present.cast(pa.int64())
        except pa.ArrowInvalid:
            return present
    if pa.types.is_nested(of):
        raise TypeError("lists and structures are no labels")
    return labels


def name_sites(coded: Coded, where: str, needs: Needs = QUANTILE, noun: tuple[str, str] = SITE) -> Labels:
    """List the names of sites, or groups, in order, refusing a column that looks like records, unquoted."""
    codes, labels = coded
    rows = np.bincount(codes[codes >= 0], minlength=len(labels))
    of = labels.type
    measured = pa.types.is_floating(of) or pa.types.is_temporal(of)
    numeric = measured or pa.types.is_integer(of) or pa.types.is_decimal(of)
    if str(of) == "large_string" and len(labels):
        numeric = bool(pc.all(pc.match_substring_regex(labels, _RECORD)).as_py())
        measured = numeric and bool(pc.any(pc.match_substring_regex(labels, "[.,/]|[0-9]-")).as_py())
    alone, sites = np.count_nonzero(rows == 1), np.count_nonzero(rows)
    if needs.records > 1 and ((measured and alone) or (sites > 2 and 2 * alone > sites)):
        raise sentence(
            where,
            f"names {noun[0]} that have one row only: name the column that {noun[1]}, or leave them out",
        )
    if numeric and sites > _MANY and (measured or rows.sum() < _FEW * sites):
        raise sentence(
            where,
            f"holds many different numbers or dates, as records do: name the column that {noun[1]}",
        )
    names = labels.to_pylist()
    order = sorted((place for place in range(len(names)) if rows[place]), key=names.__getitem__)
    rank = np.full(len(names) + 1, -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Labels(rank[codes], [names[place] for place in order])


def number_persons(coded: Coded, where: str) -> Ints:
    """Give all ways to write a person one number: "7", "7.0", " 7", "00007" and 7 are one.

    >>> number_persons(code_labels(pa.array(["7", "7.0", " 7", "00007", "Anna", "anna "]), "who"), "who").tolist()
    [0, 0, 0, 0, 1, 1]
    """
    codes, labels = coded
    if pa.types.is_integer(labels.type) or pa.types.is_temporal(labels.type):
        return codes
    text = pc.utf8_lower(pc.utf8_normalize(labels.cast(pa.large_string()), "NFKC"))
    text = pc.replace_substring_regex(pc.utf8_trim_whitespace(text), r"\s+", " ")
    text = pc.replace_substring_regex(text, _WRITTEN_OUT, r"\1\2")
    powers = pc.match_substring_regex(text, _POWER)
    if pc.any(powers).as_py():
        text = pa.array(
            [_whole(each) if power else each for each, power in zip(*map(_listed, (text, powers)), strict=True)]
        )
    if (
        pc.all(pc.match_substring_regex(text, _FRACTION_TOO)).as_py()
        and pc.any(pc.match_substring_regex(text, "[.,]")).as_py()
    ):
        raise _no_person(where)
    blank = np.isin(codes, np.flatnonzero(pc.equal(text, "").to_numpy(zero_copy_only=False)))
    if blank.any():
        raise bad_row(where, int(blank.argmax()), "a blank", WHO)
    return _again(codes, text).codes


def _listed(array: Any) -> list[Any]:
    """Return an Arrow array as a list."""
    found: list[Any] = array.to_pylist()
    return found


def _whole(text: str) -> str:
    """Write a number with a power of ten out where it is whole, as 1e+05 is."""
    number = Decimal(text)
    return f"{number:.0f}" if number == number.to_integral_value() else text


def join_files(parts: Sequence[Coded]) -> Coded:
    """Put the labels of several files below each other, or refuse types that cannot be compared."""
    try:
        return join_coded(parts)
    except pa.ArrowException:
        raise BadInput("the files name sites or persons in types that cannot be compared: use text") from None
