"""What every command prints: one sentence on bad input, one JSON object, a progress bar on a terminal."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from sottovoce.core.errors import BadInput, SearchFailed

# The sentences are written for callers of functions: say the option instead of the parameter.
_OPTIONS = {
    'missing="drop"': "--drop-missing",
    "missing='drop'": "--drop-missing",
    "robust=True": "--robust",
    "resolution=": "--resolution",
    "math.inf": "inf",
    "give bounds=(low, high), the public bounds of each column": "give --bounds NAME=LOW:HIGH, the public bounds",
    "widen the bounds": "widen --bounds",
    "clip=True": "--clip",
    "give density and size": "give --density and --size",
    "needs bound=": "needs --bound",
    "bound belongs to": "--bound belongs to",
    "variance, quantile and caution belong": "--variance, --quantile and --caution belong",
    "leave sites out": "leave --sites out",
    "give n= in its summary": 'give "n" in its summary',
    "trusted=False": '"trusted": false',
    "give maximum=, or grid=": "give --maximum, or --grid",
    "statistics=": "--statistics ",
    "leave statistics at 1": "leave --statistics at 1",
    "leave exact out": "leave --exact out",
    "report(scores)": "--report",
}


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn an error of the input into one sentence and exit code 2, without a traceback."""
    try:
        yield
    except (BadInput, SearchFailed) as error:
        text = in_options(str(error)).replace("\n", " ")
        if isinstance(error, SearchFailed) and "spent" not in text:
            text = f"{text.rstrip('.')} (the records that answered are spent)."
        typer.echo(f"sottovoce: {text}", err=True)
        raise typer.Exit(2) from None


def in_options(text: str) -> str:
    """Name options where a sentence names parameters."""
    for parameter, option in _OPTIONS.items():
        text = text.replace(parameter, option)
    return text


def print_json(payload: Mapping[str, Any]) -> None:
    """Print one JSON object; what JSON cannot say (NaN, infinities) is null."""
    import json

    typer.echo(json.dumps(_plain(payload), indent=2, allow_nan=False, ensure_ascii=False))


def _plain(value: Any) -> Any:
    """Turn numpy numbers, tuples and what is not finite into what JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if key != "stored"}  # what `sv.load` reads
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress_bar(records: int, wanted: bool = True, who: str = "records") -> Iterator[Callable[[int], None] | None]:
    """Show on stderr how many records have answered; nothing where stderr is not a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(f"{who} answering"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(who, total=records)
        yield lambda answered: bar.advance(task, answered)
