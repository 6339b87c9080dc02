"""The one door to pyarrow; without it arrays and plain CSV files are read, and the rest is refused in a sentence."""

from typing import TYPE_CHECKING

from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as arrow_csv
else:
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.csv as arrow_csv
    except ModuleNotFoundError:
        pa = pc = arrow_csv = None

__all__ = ["arrow_csv", "need_arrow", "pa", "pc"]


def need_arrow(what: str) -> None:
    """Refuse what cannot be done without pyarrow."""
    if pa is None:
        raise BadInput(f"{what} needs pyarrow: install it with: pip install pyarrow")
