"""`sottovoce explore`: a page on this machine to ask about a file."""

from typing import Annotated

import typer

from sottovoce.cli.limit import set_limit
from sottovoce.cli.options import Decimal, Delimiter, Limit, Person, flag, option
from sottovoce.cli.output import in_options, say


def explore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Parquet, CSV or Arrow; one row a record.")],
    port: Annotated[int, option("PORT", "Port of 127.0.0.1 to listen on; 0 for any that is free.")] = 0,
    no_browser: Annotated[bool, flag("--no-browser", "Open no browser; the address is printed.")] = False,
    limit: Limit = None,
    person: Person = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
) -> None:
    """Ask about a file on a page of this machine: choose, see what it will come to, ask, and see what it has cost.

    The file is read once, and its records stay in this program; the page shows names and counts, and private results.
    Nothing else on the network can reach it. End it with Ctrl-C, or on the page.
    """
    from sottovoce.api.explored import ExploredFile
    from sottovoce.explore.running import explore_file

    set_limit(limit)
    opened = ExploredFile(file, person, delimiter, decimal)
    found = explore_file(
        opened, port, not no_browser, say, lambda text: say(f"hint, for you alone: {in_options(text)}")
    )
    if found:
        many = "1 question was" if len(found) == 1 else f"{len(found)} questions were"
        say(f"{many} answered; a row has paid up to epsilon {opened.spent:.4g} in all")
    for line in found:
        typer.echo(line)
