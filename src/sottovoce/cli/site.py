"""`sottovoce site`: stay beside the records of one site, and answer what its policy allows."""

from typing import Annotated

from sottovoce.cli.options import Files, flag, option
from sottovoce.cli.telling import Certificates, Events, Insecure, Quiet, Status, teller


def site(
    files: Files,
    policy: Annotated[str, option("POLICY", "What this site is ready to do: a TOML file.")],
    coordinator: Annotated[str | None, option("URL", "Where the coordinator is: https://HOST:PORT.")] = None,
    socket: Annotated[
        str | None, option("PATH", "Answer on this Unix socket instead, to a Flower node of the same machine and user.")
    ] = None,
    ledger: Annotated[
        str | None, option("LEDGER", "File of what was spent and said; POLICY.ledger by default.")
    ] = None,
    certificates: Certificates = None,
    insecure: Insecure = False,
    once: Annotated[bool, flag("--once", "End when a study is over, instead of waiting for the next.")] = False,
    status: Status = None,
    events: Events = "text",
    quiet: Quiet = False,
) -> None:
    """Answer a coordinator for the records of one site, each record once, within the site's own policy.

    The program connects outward only, or listens on a Unix socket of its owner's. Records never leave it; what does is
    kept in the ledger first, and a question that is asked again gets the same bytes.
    """
    from sottovoce.federation.serving import stay

    with teller(events, quiet) as watch:
        stay(
            policy,
            files,
            coordinator=coordinator,
            socket=socket,
            ledger=ledger,
            certificates=certificates,
            insecure=insecure,
            once=once,
            watch=watch,
            status=status,
        )
