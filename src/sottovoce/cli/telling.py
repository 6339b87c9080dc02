"""How the commands of a federation tell what happens on stderr: lines, on a terminal one for all rounds, or JSON.

With ``--events json`` every event is one object a line; docs/federation.md has the fields.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from sottovoce.cli.options import flag, option
from sottovoce.cli.output import as_line, say
from sottovoce.core.errors import BadInput

Certificates = Annotated[
    str | None, option("FOLDER", "authority.pem, certificate.pem and key.pem of this party; both sides show theirs.")
]
Insecure = Annotated[bool, flag("--insecure", "Without TLS, on this machine alone: to try things out.")]
Status = Annotated[int | None, option("PORT", "Show a status page on this port of 127.0.0.1; 0 for any that is free.")]
Events = Annotated[str, option("HOW", "Tell what happens on stderr as text, or as json: one object a line.")]
Quiet = Annotated[bool, flag("--quiet", "Say nothing on the way.")]
Watch = Callable[[Any], None]


@contextmanager
def teller(events: str, quiet: bool) -> Iterator[Watch | None]:
    """Return what tells of an event (`federation.status.Notice`), or nothing where nothing is to be said."""
    if events not in ("text", "json"):
        raise BadInput("--events must be text or json; choose one.")
    if quiet:
        yield None
    elif events == "json":
        yield _as_json
    elif not sys.stderr.isatty():
        yield _as_text
    else:
        with _on_a_terminal() as watch:
            yield watch


def _as_json(notice: Any) -> None:
    import json

    typer.echo(json.dumps(notice.fields, allow_nan=False, ensure_ascii=False), err=True)


def _as_text(notice: Any) -> None:
    """Say a line; that one site of several has answered is not worth one."""
    if notice.fields["event"] != "told":
        say(notice.line)


@contextmanager
def _on_a_terminal() -> Iterator[Watch]:
    """Let lines that pass share one, which is gone in the end; others stay above it."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    with console.status(Text("waiting")) as live:

        def watch(notice: Any) -> None:
            line = Text(as_line(notice.line))
            if notice.passing:
                live.update(line)
            else:
                console.print(line)

        yield watch
