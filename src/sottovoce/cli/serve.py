"""`sottovoce serve`: conduct a study over sites that run in their own programs."""

from typing import Annotated, Any

import typer

from sottovoce.cli.options import Json, Report, option
from sottovoce.cli.output import check_outputs, in_options, show
from sottovoce.cli.telling import Certificates, Events, Insecure, Quiet, Status, teller


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
    status: Status = None,
    events: Events = "text",
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
    with teller(events, quiet) as watch:
        served = serve_study(
            study,
            host=host,
            port=port,
            certificates=certificates,
            insecure=insecure,
            log=log,
            watch=watch,
            status=status,
        )
    found: Any = served.result
    payload, lines = found.to_dict(), [in_options(found.summary())]
    payload["ledgers"] = {site: each._asdict() for site, each in served.ledgers.items()}
    lines += [
        f"{'' if k else 'Ledgers:':<15}{site}: {each.counter:,} transactions, head {each.head[:16]}"
        for k, (site, each) in enumerate(served.ledgers.items())
    ]
    if out is not None:
        payload["out"] = str(found.save(out))
        lines.append(f"Result:        {payload['out']}")
    show(found, payload, lines, json, plot if hasattr(found, "plot") else None, report)
