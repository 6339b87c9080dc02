"""`sottovoce reproduce`: the papers' tables and figures again, beside what was printed.

`sottovoce.cli` loads this module while it is itself being loaded, so nothing of it is imported before the command runs.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

    from sottovoce_papers.harness.item import Item
    from sottovoce_papers.harness.runner import Scale

CELLS = "cells"
PIPE = 160
STOPPED = 130  # what a shell expects of a command that was interrupted


def reproduce(
    paper: Annotated[
        str | None, typer.Argument(metavar="PAPER", help="A paper's key or its beginning; all without it.")
    ] = None,
    item: Annotated[
        str | None, typer.Argument(metavar="ITEM", help="table-1, 'Table S.2', figure-b1, tables, figures.")
    ] = None,
    replications: Annotated[
        str | None, typer.Option(metavar="R", help="How often each cell is run, instead of --scale.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="SCALE", help="small (default): a tenth of the replications; full: all.")
    ] = None,
    jobs: Annotated[
        str | None, typer.Option(metavar="N", help="Processes; all processors by default. Numbers do not depend on it.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", envvar="SOTTOVOCE_DATA", help="Folder of the real data sets, for items that need one."
        ),
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where the report, the numbers and finished cells are written.")
    ] = "reproduction",
    seed: Annotated[str, typer.Option(metavar="S", help="Seed of the study.")] = "1",
    fresh: Annotated[bool, typer.Option("--fresh", help="Run all cells again, also finished ones.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Write ours beside the print in papers/ too.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the papers and items, and run nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.html.")] = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no progress bar.")] = False,
) -> None:
    """Run the papers' tables and figures again and set them beside the print.

    Finished cells are kept: an interrupted run continues. Writes report.html and one CSV file per item.
    """
    from sottovoce.cli import options
    from sottovoce.cli.command import plain_errors
    from sottovoce.cli.output import print_json

    with plain_errors():
        often = _at_least(options.whole(replications, "--replications"), 2, "--replications")
        at_a_time = _at_least(options.whole(jobs, "--jobs"), 1, "--jobs") or _processors()
        chosen = _scale(scale, often)
        seeded = _at_least(options.whole(seed, "--seed"), 0, "--seed") or 0
        folder = _folder(data)

        from sottovoce_papers.harness import catalogue

        asked = catalogue.items(catalogue.papers_folder(), paper, item)
        if listed:
            _list(asked, json)
            return

        from sottovoce_papers.harness import console, files, payload, progress, report, study

        target = Path(out).expanduser()
        files.make(target)
        watch = progress.Watch(target / CELLS, fresh=fresh)
        try:
            with progress.bar(watch, at_a_time, wanted=not no_progress):
                outcomes = study.reproduce(
                    asked,
                    target / CELLS,
                    folder,
                    scale=chosen,
                    replications=often,
                    seed=seeded,
                    jobs=at_a_time,
                    begun=watch.begun,
                    progress=watch.progress,
                )
        except KeyboardInterrupt:
            if at_a_time > 1:
                _end_workers()
            typer.echo(f"sottovoce: {watch.stopped(str(target / CELLS))}", err=True)
            raise typer.Exit(STOPPED) from None
        seconds = watch.by_item()
        made: list[Path] = []
        try:
            made += files.write(outcomes, target)
            if record:
                made += files.record_all(outcomes)
            if not no_report:
                run = report.Run(seeded, _often(chosen, often), seconds)
                made.append(report.write(outcomes, target / "report.html", run))
        finally:  # a disk that is full must not cost the answer
            if json:
                print_json({**payload.of_study(outcomes, seconds), "seed": seeded, "files": list(map(str, made))})
            else:
                console.tell(outcomes, seconds, *_console())
                typer.echo("\n".join(files.named(made, target)))


def _list(asked: Sequence["Item"], json: bool) -> None:
    """Print what there is."""
    from sottovoce.cli.output import print_json
    from sottovoce_papers.harness import console, payload

    if json:
        print_json({"items": [payload.of_item(item) for item in asked]})
    else:
        target, width = _console()
        for line in console.listed(asked, width):
            target.print(line, no_wrap=True, overflow="ignore", crop=width is not None)


def _console() -> tuple["Console", int | None]:
    """Return where to print, and how wide tables may be: in a pipe or a file as wide as they are."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console, console.width
    return Console(highlight=False, width=PIPE), None


def _often(scale: "Scale", often: int | None) -> str:
    """Say how often cells were run."""
    if often is not None:
        return f"{often:,} replications of each cell"
    return "all replications" if scale == "full" else "a tenth of the replications (scale small)"


def _scale(text: str | None, often: int | None) -> "Scale":
    if text is not None and often is not None:
        raise BadInput("--scale and --replications both say how often cells are run; give one of them.")
    if text == "full":
        return "full"
    if text in (None, "small"):
        return "small"
    raise BadInput(f"--scale is {text!r}; choose small or full.")


def _at_least(number: int | None, least: int, option: str) -> int | None:
    if number is not None and number < least:
        raise BadInput(f"{option} is {number}; give {least} or more.")
    return number


def _processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _folder(data: str | None) -> Path | None:
    """Return the folder of data sets."""
    if not data:
        return None
    folder = Path(data).expanduser()
    if not folder.is_dir():
        raise BadInput(f"there is no folder {data} of data sets; correct --data or SOTTOVOCE_DATA, or leave it out.")
    return folder


def _end_workers() -> None:
    """End the processes of an interrupted study."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)
