"""What a study leaves behind beside its report: a CSV file an item, and on demand ours beside the print."""

from collections.abc import Sequence
from pathlib import Path

from sottovoce.core.errors import BadInput
from sottovoce_papers.harness.record import record
from sottovoce_papers.harness.study import Outcome


def make(folder: Path) -> None:
    """Make the folder of a study before anything is run.

    Raises
    ------
    BadInput
        If it cannot be made, or is a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"the folder {folder} cannot be made ({reason}); give another by --out.") from None


def write(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Write every item's numbers to ``folder/paper/item.csv``."""
    return [
        _recorded(outcome, folder / outcome.item.paper / f"{outcome.item.name}.csv")
        for outcome in outcomes
        if not outcome.skipped
    ]


def record_all(outcomes: Sequence[Outcome]) -> list[Path]:
    """Write every item's numbers beside its print."""
    return [_recorded(outcome, outcome.item.ours_file) for outcome in outcomes if not outcome.skipped]


def named(paths: Sequence[Path], folder: Path) -> list[str]:
    """Say what was written where: each file of a few, the folder of many."""
    tables = [path for path in paths if path.suffix == ".csv"]
    few = len(tables) <= 3
    said = [f"Numbers:  {path}" for path in tables] if few else [f"Numbers:  {len(tables)} files, in {folder}"]
    return said + [f"Report:   {path}" for path in paths if path.suffix == ".html"]


def _recorded(outcome: Outcome, path: Path) -> Path:
    try:
        return record(outcome.item, outcome.rows, path)
    except OSError as error:
        raise BadInput(
            f"{path} cannot be written ({error.strerror or error}); make room, or change its folder."
        ) from None
