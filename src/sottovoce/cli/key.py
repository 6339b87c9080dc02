"""`sottovoce key` and `sottovoce token`: who may change and read a collector's studies, and who may answer them."""

from typing import Annotated

import typer

from sottovoce.cli.collect import Log, Study
from sottovoce.cli.command import Command
from sottovoce.cli.options import Json, option
from sottovoce.cli.output import print_json

key = typer.Typer(
    name="key",
    help="API keys of a collector: add, list, revoke; a running collector heeds them at once.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Where = Annotated[str, typer.Argument(metavar="LOG", help="The collector's log: a file, or postgresql://...")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What the key is called.")]


@key.command(cls=Command)
def add(
    log: Where,
    name: Name,
    role: Annotated[str, option("ROLE", "admin: changes studies; reader: reads; sender: no rate limit.")] = "admin",
) -> None:
    """Make a key and print it, once: the log keeps its hash alone."""
    from sottovoce.collector.running import add_key

    typer.echo(add_key(log, name, role))


@key.command("list", cls=Command)
def list_(log: Where, json: Json = False) -> None:
    """List the keys by name and role."""
    from sottovoce.collector.running import list_keys

    found = list_keys(log)
    if json:
        print_json({"keys": found})
        return
    for each in found:
        typer.echo(f"{each['role']:<8} {each['name']}")


@key.command(cls=Command)
def revoke(log: Where, name: Name) -> None:
    """Revoke a key, from now on."""
    from sottovoce.collector.running import revoke_key

    revoke_key(log, name)


def token(
    study: Study,
    count: Annotated[int, option("NUMBER", "How many.")] = 1,
    group: Annotated[str | None, option("GROUP", "Of people of this group; the first by default.")] = None,
    log: Log = None,
) -> None:
    """Issue tokens to devices, one a line, for a study whose file says tokens = true below [devices].

    Each lets one report count, once. Whoever issues them knows to whom, and could tell whose letter is whose.
    """
    from sottovoce.collector.running import issue_tokens

    for each in issue_tokens(study, log, group, count):
        typer.echo(each)
