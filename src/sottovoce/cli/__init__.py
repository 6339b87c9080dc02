"""The command line: each command parses, calls one function of `api`, and prints.

Nothing heavier than typer is imported here, so that `--help` is instant; a command imports what it needs when it runs.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from sottovoce import __version__
from sottovoce.cli.audit import audit
from sottovoce.cli.certificates import certificates
from sottovoce.cli.collect import collect, replay
from sottovoce.cli.command import Command, Commands, no_traceback
from sottovoce.cli.conformal import SeveralTests, conformal
from sottovoce.cli.demo import demo
from sottovoce.cli.explore import explore
from sottovoce.cli.groups import groups
from sottovoce.cli.integrate import integrate
from sottovoce.cli.key import key, token
from sottovoce.cli.ledger import ledger
from sottovoce.cli.plan import plan
from sottovoce.cli.quantile import quantile
from sottovoce.cli.regress import regress
from sottovoce.cli.serve import serve
from sottovoce.cli.shortfall import shortfall
from sottovoce.cli.site import site

app = typer.Typer(
    name="sottovoce",
    cls=Commands,
    help="Private quantiles with confidence intervals, over many sites, under local differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command(cls=Command)(quantile)
app.command(cls=Command)(groups)
app.command(cls=Command)(shortfall)
app.command(cls=Command)(integrate)
app.command(cls=Command)(regress)
app.command(cls=SeveralTests)(conformal)
app.command(cls=Command)(serve)
app.command(cls=Command)(site)
app.command(cls=Command)(certificates)
app.command(cls=Command)(collect)
app.command(cls=Command)(replay)
app.command(cls=Command)(audit)
app.command(cls=Command)(demo)
app.command(cls=Command)(explore)
app.command(cls=Command)(token)
app.add_typer(key)
app.add_typer(ledger)
app.add_typer(plan)
if find_spec("sottovoce_papers") is not None:  # asking for entry points would take a quarter of --help
    app.command(cls=Command)(import_module("sottovoce_papers.command").reproduce)


def _show_version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


def main() -> None:
    """Run the command line."""
    with no_traceback():
        app(prog_name="sottovoce")
