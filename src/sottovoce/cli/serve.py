"""`sottovoce serve`: conduct a study over sites that run in their own programs."""

from typing import Annotated, Any

import typer

from sottovoce.cli.options import Json, Report, flag, option
from sottovoce.cli.output import check_outputs, in_options, print_json, show
from sottovoce.cli.telling import Certificates, Events, Insecure, Quiet, Status, teller
from sottovoce.core.errors import BadInput


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
    without: Annotated[
        list[str] | None,
        option("SITE", "Go on without a site that will not come back, for good; once for each such site."),
    ] = None,
    give_up: Annotated[
        bool,
        flag(
            "--give-up",
            "End a paused study for good, without a result, and tell its sites; again, to tell those that were away.",
        ),
    ] = False,
    json: Json = False,
    status: Status = None,
    events: Events = "text",
    quiet: Quiet = False,
) -> None:
    """Conduct a study: wait for its sites, ask them, and print what they told.

    Sites connect to this program; it never connects to them, and never sees a record. Stopped or killed, it goes on
    from its log when it is started again, and asks nobody twice; with --without it goes on over the other sites.
    """
    from sottovoce.federation.serving import serve_study

    where: dict[str, Any] = {
        "host": host,
        "port": port,
        "certificates": certificates,
        "insecure": insecure,
        "log": log,
        "status": status,
    }
    if give_up:
        if without:
            raise BadInput("--give-up ends the study for all sites, and --without goes on with it; leave one out.")
        _give_up(study, where, events, quiet, json)
        return
    check_outputs(plot, report)
    if out is not None:
        from sottovoce.federation.serving import check_file

        check_file(out)
    with teller(events, quiet) as watch:
        served = serve_study(study, **where, watch=watch, without=without or ())
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


def _give_up(study: str, where: dict[str, Any], events: str, quiet: bool, json: bool) -> None:
    """End a study, and say who has not heard it."""
    from sottovoce.federation.serving import give_up_study

    with teller(events, quiet) as watch:
        ended = give_up_study(study, **where, watch=watch)
    if json:
        print_json(ended._asdict())
        return
    typer.echo("The study is given up for good." if ended.given_up else "The study is over, and keeps its result.")
    if ended.not_heard:
        typer.echo(f"Not heard yet:  {', '.join(ended.not_heard)}; repeat this command when they are there.")
