"""The bytes of a text file as blocks of whole rows in UTF-8, unpacked and decoded piece by piece, in one pass.

Nothing here is handed to threads that may outlive the call: a thread of Arrow's that still holds an object of Python
when the process ends brings it down.
"""

import codecs
import csv
import gzip
import io
import stat
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown

PIECE = 1 << 22  # bytes that are read at once
SAMPLE = 1 << 18  # characters that are looked at to find out how a file is written
LONGEST_ROW = 1 << 24  # bytes
MOST_RATIO, AMPLE = 100, 1 << 26  # how many times its size a file may unpack to, beyond so many bytes

_MAGIC = {
    b"\x1f\x8b": "a gzip file: end its name in .csv.gz",
    b"PK\x03\x04": "a zip archive or a spreadsheet: save it as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save it as CSV",
    b"PAR1": "a Parquet file: end its name in .parquet",
    b"ARROW1": "an Arrow file: end its name in .arrow",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it first",
    b"BZh": "compressed by bzip2: unpack it first",
    b"\xfd7zXZ": "compressed by xz: unpack it first",
    b"SQLite": "a database: save the table as CSV",
    b"%PDF": "a PDF file: save the table as CSV",
}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def check_regular(path: Path) -> int:
    """Return the size of a file, refusing what is no file of records: folders, pipes, devices, empty files."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"{shown(path, 200)} is a folder, a pipe or a device: give a file of records")
    if not found.st_size:
        raise BadInput(f"{shown(path, 200)} is an empty file: write it again with its records")
    return found.st_size


def too_large(path: Path) -> BadInput:
    """Refuse a file that unpacks to more than its size makes likely."""
    return BadInput(
        f"{shown(path, 200)} unpacks to more than {MOST_RATIO} times its size: check it, and unpack it yourself first"
    )


def texts(path: Path) -> Generator[str, None, None]:
    """Give the text of a file piece by piece, however it is packed and encoded; refuse what is no text."""
    name, decoder, plain, guessed = shown(path, 200), None, False, False
    for piece in _pieces(path):
        if decoder is None:
            kind = next((kind for magic, kind in _MAGIC.items() if piece.startswith(magic)), None)
            if kind is not None:
                raise BadInput(f"{name} is {kind}")
            encoding = _encoding(piece)
            decoder, plain = codecs.getincrementaldecoder(encoding)(), encoding == "utf-8"
        try:
            text = decoder.decode(piece)
        except UnicodeDecodeError as error:
            # As long as all was ASCII, the text may as well be in the encoding that Windows uses in Western Europe.
            if not plain or not error.object[: error.start].isascii():
                raise _no_text(name) from None
            data, decoder, guessed = decoder.getstate()[0] + piece, codecs.getincrementaldecoder("cp1252")(), True
            try:
                text = decoder.decode(data)
            except UnicodeDecodeError:
                raise _no_text(name) from None
        plain = plain and text.isascii()
        if "\0" in text or (guessed and any(sign < " " and sign not in "\t\n\r" for sign in set(text))):
            raise BadInput(f"{name} holds control characters, so it is no text: check how it was written")
        if text:
            yield text
    if decoder is not None and decoder.getstate()[0]:
        raise _no_text(name)


def _no_text(name: str) -> BadInput:
    """Refuse a text in an encoding that cannot be told."""
    return BadInput(f"{name} is not text in UTF-8: save it again as CSV in UTF-8")


def _pieces(path: Path) -> Iterator[bytes]:
    """Give the bytes of a file piece by piece, unpacked; end where they are far more than the file."""
    packed = path.suffix.lower() == ".gz"
    with path.open("rb") as raw:
        source: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        total = 0
        while piece := source.read(PIECE):
            total += len(piece)
            if packed and total > max(AMPLE, MOST_RATIO * raw.tell()):
                raise too_large(path)
            yield piece


def _encoding(start: bytes) -> str:
    """Find the encoding that the first bytes of a text show, by a mark or by the zeros of two-byte letters."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    seen = start[:4096]
    even, odd = seen[0::2].count(0), seen[1::2].count(0)
    if max(even, odd) * 3 > len(seen) // 2 and min(even, odd) * 20 < len(seen):
        return "utf-16-le" if odd > even else "utf-16-be"
    return "utf-8"


def blocks(path: Path, first: str, rest: Iterator[str]) -> Iterator[bytes]:
    """Cut a text that begins with a row into blocks of whole rows; a line break in quotes ends no row."""
    old_mac = "\n" not in first and "\r" in first
    left = b""
    for text in _after(first, rest):
        data = left + (text.replace("\r", "\n") if old_mac else text).encode()
        cut = data.rfind(b"\n")
        quotes = data.count(b'"', 0, max(cut, 0))
        while cut >= 0 and quotes % 2:
            earlier = data.rfind(b"\n", 0, cut)
            quotes -= data.count(b'"', max(earlier, 0), cut)
            cut = earlier
        if cut >= 0:
            yield data[: cut + 1]
        left = data[cut + 1 :]
        if len(left) > LONGEST_ROW:
            raise _no_row(path)
    if left.count(b'"') % 2:
        try:
            all(csv.reader(io.StringIO(left.decode(), newline=""), strict=True))
        except csv.Error:
            raise _no_row(path) from None
    if left:
        yield left


def _no_row(path: Path) -> BadInput:
    """Refuse a row without an end."""
    return BadInput(
        f"{shown(path, 200)} has a row longer than {LONGEST_ROW >> 20} MB, or a quote that is never closed: check its "
        "quotes and line ends"
    )


def _after(first: str, rest: Iterator[str]) -> Iterator[str]:
    """Put a piece before others."""
    yield first
    yield from rest
