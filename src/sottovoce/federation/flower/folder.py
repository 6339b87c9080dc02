"""Where a Flower app keeps what must outlast it: the folder that the run names, or one of its own for each run."""

from pathlib import Path
from typing import Any

from sottovoce.core.errors import BadInput

HOME = "~/.sottovoce/flower"


def folder_of(context: Any) -> Path:
    """Return the folder of a run, readable to its owner alone; without ``folder`` every run begins anew."""
    named = str(context.run_config.get("folder", "")).strip()
    try:
        folder = (Path(named) if named else Path(HOME) / str(context.run_id)).expanduser()
        if not folder.is_absolute():
            raise BadInput("folder in the run's configuration must be an absolute path; give one.")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        raise BadInput(
            "the folder of this run cannot be made; give another with --run-config 'folder=\"...\"'."
        ) from None
    return folder
