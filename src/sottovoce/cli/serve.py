"""`sottovoce serve`: conduct a study over sites that run in their own programs."""

import sys
from typing import Annotated, Any

import typer

from sottovoce.cli.options import Json, Report, flag, option
from sottovoce.cli.output import check_outputs, in_options, say, show

Certificates = Annotated[
    str | None, option("FOLDER", "authority.pem, certificate.pem and key.pem of this party; both sides show theirs.")
]
Insecure = Annotated[bool, flag("--insecure", "Without TLS, on this machine alone: to try things out.")]
Quiet = Annotated[bool, flag("--quiet", "Say nothing on the way.")]


def serve(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="The study card: a TOML file.")],
    host: Annotated[str, option("HOST", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, option("PORT", "Port to listen on; 0 for any that is free.")] = 8443,
    certificates: Certificates = None,
    insecure: Insecure = False,
    log: Annotated[str | None, option("LOG", "The log: a file (STUDY.log by default), or postgresql://...")] = None,
    out: Annotated[str | None, option("PATH", "Keep the result in a .json file.")] = None,
    plot: Annotated[str | None, option("PATH", "Draw the run to a .png, .svg or .pdf file.")] = None,
    report: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Conduct a study: wait for its sites, ask them, and print what they told.

    Sites connect to this program; it never connects to them, and never sees a record. Stopped or killed, it goes on
    from its log when it is started again, and asks nobody twice.
    """
    from sottovoce.federation.serving import serve_study

    check_outputs(plot, report)
    if out is not None:
        from sottovoce.federation.serving import check_file

        check_file(out)
    found: Any = serve_study(
        study,
        host=host,
        port=port,
        certificates=certificates,
        insecure=insecure,
        log=log,
        watch=None if quiet else happened,
        listening=None if quiet else lambda at: say(f"listening on {host}:{at}"),
    )
    payload, lines = found.to_dict(), [in_options(found.summary())]
    if out is not None:
        payload["out"] = str(found.save(out))
        lines.append(f"Result:        {payload['out']}")
    show(found, payload, lines, json, plot if hasattr(found, "plot") else None, report)


def happened(event: Any) -> None:
    """Say a line about what happened in a study; on a terminal the rounds share one line."""
    text = event.line()
    if text is None:
        return
    if event.what == "told" or not sys.stderr.isatty():
        if event.what != "told":
            say(text)
        return
    say(text)
