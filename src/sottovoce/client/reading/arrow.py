"""The one door to pyarrow; without it arrays and plain CSV files are read, and the rest is refused in a sentence."""

from importlib import import_module
from typing import Any

from sottovoce.core.errors import BadInput


def _installed(name: str) -> Any:
    """Return a module, or None where it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


pa = _installed("pyarrow")
pc = _installed("pyarrow.compute")
arrow_csv = _installed("pyarrow.csv")


def need_arrow(what: str) -> None:
    """Refuse what cannot be done without pyarrow."""
    if pa is None:
        raise BadInput(f"{what} needs pyarrow: install it with: pip install pyarrow")
