"""`sottovoce collect` and `sottovoce replay`: take one report from each device, and prove what came of them."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from sottovoce.cli.options import Json, flag, option
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
    proxy: Annotated[str | None, option("ADDRESS", "Proxy whose word on the sender's address is believed.")] = None,
    rate: Annotated[float, option("NUMBER", "Requests a second from one address; 0: no limit.")] = 100.0,
    readers_only: Annotated[bool, flag("--readers-only", "Show results to keys of readers and admins alone.")] = False,
    workers: Annotated[int, option("NUMBER", "Processes, among which groups are divided.")] = 1,
    part: Annotated[str | None, option("K/N", "Own part K of N of the groups: hosts that share PostgreSQL.")] = None,
) -> None:
    """Collect one private report from each person's device.

    A device asks what is asked now, randomises its answer, and sends one letter, which is kept before it is
    acknowledged. Stopped or killed, the collector goes on from its log when it is started again.
    """
    from sottovoce.collector.listening import Listening
    from sottovoce.collector.running import collect_studies, part_of

    def ready() -> None:
        typer.echo(f"Collecting on http{'s' if certificate else ''}://{host}:{port} (stop with Ctrl-C)", err=True)

    where = Listening(host, port, certificate, key, proxy, rate, readers_only, workers, part_of(part))
    collect_studies(studies or [], log, where, ready)


def replay(study: Study, log: Log = None, json: Json = False) -> None:
    """Fold a collector's log anew, from its reports, and compare it with the sums that were kept."""
    from sottovoce.collector.running import replay_study

    found = replay_study(study, log)
    if json:
        print_json(found)
        return
    typer.echo(f"{found['study']}: {found['replayed']:,} reports give the same sums again (study {found['identity']})")
    if found["rounds_taken_as_kept"]:
        typer.echo(f"  {found['rounds_taken_as_kept']} rounds are taken as kept: their letters were scrubbed")
    for each in found["groups"]:
        about = "; ".join(_known(each["levels"]))
        typer.echo(f"  {each['group']}: {each['reports']:,} reports, {each['rounds']} rounds, {about}")


def _known(levels: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the interval of each level, or of each coefficient, named where there are several."""
    for level in levels:
        of_level = [f"tau {level['tau']:g}"] if len(levels) > 1 else []
        for row in level.get("coefficients") or [level]:
            name = " ".join([*of_level, *([row["name"]] if "name" in row else [])])
            yield f"{name}: {_ends(row.get('interval'))}" if name else _ends(row.get("interval"))


def _ends(interval: list[float | None] | None) -> str:
    """Write an interval; an end that is not known yet is open."""
    if interval is None:
        return "no interval yet"
    return " to ".join("open" if end is None else f"{end:.6g}" for end in interval)
