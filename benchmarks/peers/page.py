"""The page of the comparisons: what was measured, on what kind of machine, with which versions, and when."""

import datetime
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from benchmarks.peers.sheets import Comparison

OWN = ("sottovoce", "numpy", "scipy", "numba", "scikit-learn")

HEAD = """# Beside its peers

Other libraries answer neighbouring questions. Here they are run side by side with Sottovoce, in one process and on the
same data; ratios are taken turn by turn, seconds are those of the processor. The program that measured writes the page:

```sh
make bench-peers                                    # installs the extra [bench], prints the tables
make bench-peers WRITE="--write docs/peers.md"      # writes this page as well
```

A peer that cannot be installed or imported is named, and has no row.
"""


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


def page(comparisons: Sequence[Comparison], today: datetime.date) -> str:
    """Write the page."""
    measured = f"Measured on {today:%d %B %Y}: {machine()}; {versions(comparisons)}."
    return "\n".join([HEAD, measured, "", *(each.markdown() for each in comparisons)]).rstrip() + "\n"


def write(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write the page to a file, and its pictures beside it."""
    for each in comparisons:
        for name, draw in each.pictures.items():
            draw(path.parent / name)
    path.write_text(page(comparisons, datetime.datetime.now(datetime.UTC).date()), encoding="utf-8")
