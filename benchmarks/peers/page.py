"""The page of the comparisons: what was measured, on what kind of machine, with which versions, and when.

What is written by hand stands before the mark and stays; what was measured stands between the mark and the end.
"""

import datetime
import os
import platform
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from benchmarks.peers.sheets import Comparison

OWN = ("sottovoce", "numpy", "scipy", "numba", "scikit-learn")

BEGIN, END = "<!-- tallies -->", "<!-- end -->"
PLACE = re.compile(rf"(?<={BEGIN}\n).*?(?={END})", re.DOTALL)
HEAD = f"# Beside its peers\n\n{BEGIN}\n{END}\n"


def machine() -> str:
    """Say in general terms what the figures were measured on.

    >>> "cores" in machine()
    True
    """
    return f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}, Python {platform.python_version()}"


def versions(comparisons: Sequence[Comparison]) -> str:
    """Name every library that was run, with its version."""
    found = {peer.name: peer.version for each in comparisons for peer in each.peers if peer.version}
    for name in OWN:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found.pop(name, None)
    return ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


def page(comparisons: Sequence[Comparison], today: datetime.date, around: str = HEAD) -> str:
    """Write what was measured into a page, between its marks."""
    measured = f"Measured on {today:%d %B %Y}: {machine()}; {versions(comparisons)}."
    found = "\n".join(["", measured, "", *(each.markdown() for each in comparisons)]).rstrip() + "\n\n"
    if not PLACE.search(around):
        raise SystemExit(f"the page has no place between {BEGIN} and {END}: put the two marks where figures belong")
    return PLACE.sub(lambda _: found, around)


def write(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write the figures into the page, and its pictures beside it."""
    around = path.read_text(encoding="utf-8") if path.exists() else HEAD
    text = page(comparisons, datetime.datetime.now(datetime.UTC).date(), around)
    for each in comparisons:
        for name, draw in each.pictures.items():
            draw(path.parent / name)
    path.write_text(text, encoding="utf-8")
