"""`sottovoce certificates`: a test set of certificates for a coordinator and its sites."""

from typing import Annotated

import typer

from sottovoce.cli.options import option


def certificates(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A new folder.")],
    sites: Annotated[list[str], typer.Argument(metavar="SITES", help="The names of the sites, as in the study card.")],
    host: Annotated[
        list[str] | None, option("HOST", "Name or address of the coordinator; may be repeated. localhost by default.")
    ] = None,
) -> None:
    """Make a test set of certificates: an authority, a coordinator and some sites, valid for 90 days.

    In earnest an authority that the network trusts signs them, and no key leaves the machine it was made on.
    """
    from sottovoce.federation.serving import make_certificates

    for place in make_certificates(folder, sites, host or ["localhost", "127.0.0.1"]):
        typer.echo(str(place))
