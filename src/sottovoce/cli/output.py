"""What every command prints: one sentence on bad input, a result as text or one JSON object, a bar on a terminal."""

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import typer

from sottovoce.core.errors import BadInput


class Option(NamedTuple):
    """An option as a user writes it, and what stands for its word in the help."""

    name: str
    metavar: str


options_in_use: ContextVar[Mapping[str, Option]] = ContextVar("options of the command that runs")

# What is no option of the same name: a flag, the word of an option, the fields of a file of summaries, a method.
_WRITTEN = {
    'missing="drop"': "--drop-missing",
    'decimal="."': "--decimal point",
    'decimal=","': "--decimal comma",
    'method="certified"': "--method certified",
    'censored="<5"': '--censored "<5"',
    "a quantile takes such values with censored=": "sottovoce quantile takes such values with --censored",
    "guarantee='training-conditional'": "--guarantee training-conditional",
    "simultaneous=False": "--each",
    "shrinkage='average'": "--shrinkage average",
    "shrinkage='each'": "--shrinkage each",
    "math.inf": "inf",
    "give n= in its summary": 'give "n" in its summary',
    "trusted=False": '"trusted": false',
    "coverage_by_site(scores)": "--coverage",
}
# A parameter as Python has it, with or without a value; not the part of a path, which may hold an equals sign too.
_PARAMETER = re.compile(r"(?<![\w/='.-])([a-z_]+)=(True|\([^()]*\)|\d[\d.]*)?(?=[,;:]?(?:\s|$)|\.$)")


def say(text: str) -> None:
    """Say one line on stderr."""
    typer.echo(as_line(text), err=True)


def as_line(text: str) -> str:
    """Return the line that a command says; characters that would move a terminal's cursor are shown as they are."""
    line = " ".join(text.split("\n"))
    return "sottovoce: " + "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)


def say_before(texts: Iterable[str]) -> None:
    """Say what is worth knowing before anything is asked."""
    for text in texts:
        say(in_options(text))


def in_options(text: str, parameters: tuple[str, ...] = ()) -> str:
    """Name options where a text for callers of Python has `name=value`, or mentions one of `parameters` last."""
    for phrase, written in _WRITTEN.items():
        text = text.replace(phrase, written)
    options = options_in_use.get({})

    def in_words(found: re.Match[str]) -> str:
        name, value = found[1], found[2] or "True"
        if name not in options:
            return found[0]
        option, metavar = options[name]
        return option if value == "True" else f"{option} {metavar if value.startswith('(') else value}"

    text = _PARAMETER.sub(in_words, text)
    for name in parameters:
        mentions = list(re.finditer(rf"(?<![-\w])(?:the )?{name}(?![-\w=])", text))
        if mentions and name in options:
            text = text[: mentions[-1].start()] + options[name].name + text[mentions[-1].end() :]
    return text


@contextmanager
def printed(payload: Mapping[str, Any], lines: list[str], json: bool) -> Iterator[None]:
    """Print a result in the end, as JSON or as text, whatever happens until then.

    The records are spent: a disk that is full must not cost the answer.
    """
    try:
        yield
    finally:
        if json:
            print_json(payload)
        else:
            typer.echo("\n".join(lines))


def show(
    found: Any,
    payload: dict[str, Any],
    lines: list[str],
    json: bool,
    plot: str | None,
    report: str | None = None,
    save: str | None = None,
    more: Callable[[], None] | None = None,
) -> None:
    """Keep, draw and write a page on a result, where these are asked for, and print it with what there is ``more``."""
    with printed(payload, lines, json):
        say_hints(found)
        keep(found, payload, lines, save)
        if more is not None:
            more()
        draw(found, payload, lines, plot)
        write_report(found, payload, lines, report)


def say_hints(found: Any) -> None:
    """Tell whoever runs the command, and no file, what was noticed in the records themselves."""
    for hint in found.hints:
        typer.echo(f"sottovoce: hint, for you alone: {in_options(hint)}", err=True)


def draw(found: Any, payload: dict[str, Any], lines: list[str], plot: str | None) -> None:
    """Draw a result, where a plot is asked for, and say where it is."""
    if plot is not None:
        payload["plot"] = str(found.plot(plot))
        lines.append(f"Plot:          {payload['plot']}")


def check_outputs(plot: str | None, report: str | None, save: str | None = None) -> None:
    """Refuse files that cannot be written, before anything is asked."""
    from sottovoce.server.page import check_page
    from sottovoce.server.picture import check_path, check_target

    if plot is not None:
        check_path(plot)
    if report is not None:
        check_page(report)
    if save is not None:
        check_target(save, (".json",), "result")


def keep(found: Any, payload: dict[str, Any], lines: list[str], save: str | None) -> None:
    """Keep a result in a file, where that is asked for, and say where it is."""
    if save is not None:
        payload["saved"] = str(found.save(save))
        lines.append(f"Saved:         {payload['saved']}")


def write_report(found: Any, payload: dict[str, Any], lines: list[str], report: str | None) -> None:
    """Write a page on a result, where one is asked for, and say where it is."""
    if report is not None:
        payload["report"] = str(found.report(report))
        lines.append(f"Report:        {payload['report']}")


def show_plan(
    plan: Any, json: bool, plot: str | None = None, report: str | None = None, *others: Any, save: str | None = None
) -> None:
    """Print what would be asked, and what a coverage by site would ask after it, having asked nobody."""
    if plot is not None:
        raise BadInput("--plot draws what records told, and --explain asks nobody; leave one of them out.")
    if report is not None:
        raise BadInput("--report is about what records told, and --explain asks nobody; leave one of them out.")
    if save is not None:
        raise BadInput("--save keeps what records told, and --explain asks nobody; leave one of them out.")
    if json:
        print_json(plan.to_dict() | dict(zip(["coverage"], (each.to_dict() for each in others), strict=False)))
    else:
        typer.echo("\n\n".join(in_options(str(each)) for each in (plan, *others)))


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
