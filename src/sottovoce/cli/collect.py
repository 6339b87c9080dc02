"""`sottovoce collect` and `sottovoce replay`: take one report from each device, and prove what came of them."""

from typing import Annotated

import typer

from sottovoce.cli.options import Json, option
from sottovoce.cli.output import print_json

Study = Annotated[str, typer.Argument(metavar="STUDY", help="The study: a TOML file.")]
Studies = Annotated[
    list[str] | None, typer.Argument(metavar="STUDIES", help="TOML files of studies; those of the log go on, too.")
]
Log = Annotated[str | None, option("LOG", "The log: a file (STUDY.toml.log by default), or postgresql://...")]


def collect(
    studies: Studies = None,
    host: Annotated[str, option("HOST", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, option("PORT", "Port to listen on.")] = 8080,
    log: Log = None,
    certificate: Annotated[str | None, option("PATH", "Certificate for TLS, a PEM file; with --key.")] = None,
    key: Annotated[str | None, option("PATH", "Key of the certificate, a PEM file.")] = None,
) -> None:
    """Collect one private report from each person's device.

    A device asks what is asked now, randomises its answer, and sends one letter, which is kept before it is
    acknowledged. Stopped or killed, the collector goes on from its log when it is started again.
    """
    from sottovoce.collector.running import collect_studies

    def ready() -> None:
        typer.echo(f"Collecting on http{'s' if certificate else ''}://{host}:{port} (stop with Ctrl-C)", err=True)

    collect_studies(studies or [], log, host, port, certificate, key, ready)


def replay(study: Study, log: Log = None, json: Json = False) -> None:
    """Fold a collector's log anew, from its reports, and compare it with the sums that were kept."""
    from sottovoce.collector.running import replay_study

    found = replay_study(study, log)
    if json:
        print_json(found)
        return
    typer.echo(f"{found['study']}: {found['reports']:,} reports give the same sums again (study {found['identity']})")
    for each in found["groups"]:
        low, high = each["interval"] or (None, None)
        ends = "no interval yet" if low is None or high is None else f"{low:.6g} to {high:.6g}"
        typer.echo(f"  {each['group']}: {each['reports']:,} reports, {each['rounds']} rounds, {ends}")
