"""`sottovoce ledger`: what a site's durable ledger says, whether it is whole, and an export for an auditor."""

from typing import Annotated, Any

import typer

from sottovoce.cli.command import Command
from sottovoce.cli.options import Json
from sottovoce.cli.output import print_json
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown

ledger = typer.Typer(
    name="ledger",
    help="Look at the durable ledger of a site, running or not; nothing is changed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Ledger = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger's file, as the site's policy names it.")]
_STUDIES = "{:<24} {:<12} {:>8} {:>24} {:>7} {:<8} {}"


@ledger.command(cls=Command)
def show(path: Ledger, json: Json = False) -> None:
    """Show studies, costs over all of them, and heads.

    An id, a record, a question or a reply is never shown.
    """
    from sottovoce.api.ledger import show as table_of

    found = table_of(path)
    if json:
        print_json(found)
    else:
        typer.echo("\n".join(_lines(found)))


@ledger.command(cls=Command)
def verify(path: Ledger) -> None:
    """Compute all chains and sums again.

    Ends with 0 if the ledger is whole, and with 2 and one sentence on what is wrong, and where, if it is not.
    """
    from sottovoce.api.ledger import verify as wrong_with

    wrong = wrong_with(path)
    if wrong:
        more = f" (and {len(wrong) - 1:,} more)" if len(wrong) > 1 else ""
        raise BadInput(f"the ledger is not whole: {wrong[0]}{more}; stop the site and put the newest copy back.")
    typer.echo("The ledger is whole: every chain, every sum and its head are as they must be.")


@ledger.command(cls=Command)
def export(
    path: Ledger,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A new file; without it, lines are printed.")
    ] = None,
) -> None:
    """Write studies and chain as JSON lines, for an auditor.

    Digests stand for questions and replies: the chain can be computed again without them.
    """
    from sottovoce.api.ledger import export as exported
    from sottovoce.api.ledger import write_export

    if file is None:
        for line in exported(path):
            typer.echo(line)
    else:
        typer.echo(f"{write_export(path, file):,} lines: {shown(file)}")


def _lines(found: dict[str, Any]) -> list[str]:
    """Lay out what a ledger says."""
    text = [
        f"Transactions:  {found['counter']:,}",
        f"Head:          {found['head']}",
        f"Ids:           {found['ids']:,}; the dearest has cost epsilon {found['dearest']:.4g}",
    ]
    text += [
        f"Source:        {shown(each['source'])}; epsilon {each['epsilon']:.4g} as a whole, "
        f"{each['epsilon_by_id']:.4g} by id"
        for each in found["sources"]
    ]
    if found["studies"]:
        text += ["", _STUDIES.format("study", "method", "epsilon", "asked of records", "rounds", "state", "opened")]
    for each in found["studies"]:
        asked = f"{each['asked']:,} of {each['records']:,}"
        name = shown(each["name"] or each["study"][:8], 24)
        text.append(
            _STUDIES.format(
                name, each["method"], f"{each['epsilon']:.4g}", asked, each["rounds"], each["state"], each["opened"]
            )
        )
    return text
