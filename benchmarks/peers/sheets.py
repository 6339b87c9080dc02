"""What a comparison gives: sheets of figures, sentences that follow from them, and the peers that were not there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers.installed import Peer

Draw = Callable[[Path], None]


@dataclass(frozen=True)
class Sheet:
    """A table: its title, what its columns are, its rows, and what is to be known to read it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """Write the table in Markdown; columns of figures stand right."""
        marks = ["---:" if at and any(cell[:1].isdigit() for cell in column) else "---" for at, column in
                 enumerate(zip(*self.rows, strict=True))]  # fmt: skip
        lines = [self.columns, marks, *self.rows]
        note = [self.note, ""] if self.note else []
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(line)} |" for line in lines), "", *note])

    def text(self) -> str:
        """Write the table for a terminal."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) if not at else cell.rjust(width) for at, (cell, width) in enumerate(pairs))
            for pairs in (list(zip(line, widths, strict=True)) for line in (self.columns, *self.rows))
        ]
        return "\n".join([self.title, *lines, *([self.note] if self.note else []), ""])


@dataclass(frozen=True)
class Comparison:
    """A question put to several libraries in one run."""

    title: str
    question: str
    sheets: tuple[Sheet, ...]
    findings: tuple[str, ...]
    peers: tuple[Peer, ...]
    pictures: Mapping[str, Draw] = field(default_factory=dict)  # file names, in the folder of the page

    @property
    def missing(self) -> tuple[str, ...]:
        """Return a sentence for each peer that could not be run, or only in part."""
        return tuple(peer.reason for peer in self.peers if peer.reason)

    def markdown(self) -> str:
        """Write the section of the page."""
        parts = [f"## {self.title}", "", self.question, ""]
        parts += [line for sheet in self.sheets for line in (sheet.markdown(),)]
        parts += [f"![{self.title}]({name})\n" for name in self.pictures]
        parts += bullets(self.findings)
        parts += bullets(f"Left out, or only in part: {sentence}." for sentence in self.missing)
        return "\n".join([*parts, ""])

    def text(self) -> str:
        """Write the section for a terminal."""
        return "\n".join(
            [
                f"\n{self.title.upper()}\n{self.question}\n",
                *(sheet.text() for sheet in self.sheets),
                *bullets((*self.findings, *(f"Left out, or only in part: {sentence}." for sentence in self.missing))),
            ]
        )


def bullets(sentences: Iterable[str]) -> list[str]:
    """Return Markdown's list of sentences."""
    return [f"* {sentence}" for sentence in sentences]


def figure(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, without an exponent where it is of ordinary size.

    >>> figure(12345.678), figure(0.012345), figure(0), figure(2.0), figure(3.2e-13)
    ('12,346', '0.0123', '0', '2.00', '3.2e-13')
    """
    if value == 0 or value != value:
        return "0" if value == 0 else "none"
    if not 1e-5 <= abs(value) < 1e12:
        return f"{value:.{digits - 2}e}"
    whole = len(f"{abs(value):.0f}") if abs(value) >= 1 else 0
    places = digits - whole if whole else digits - 1 - int(f"{value:e}".split("e")[1])
    return f"{value:,.{max(places, 0)}f}"


def seconds(value: float) -> str:
    """Write a duration in the unit that suits it.

    >>> seconds(1.5), seconds(0.0021), seconds(3.4e-8)
    ('1.50 s', '2.10 ms', '34.0 ns')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{figure(value / size)} {unit}"
    return f"{figure(value / 1e-9)} ns"


def listed(names: Sequence[str]) -> str:
    """Write names as a sentence does.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
