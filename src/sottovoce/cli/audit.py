"""`sottovoce audit`: is it really epsilon? The exact cost, what clients really send, and certificates."""

from typing import Annotated, Any

import typer

from sottovoce.cli.options import Json, Report, number, option
from sottovoce.cli.output import print_json, say
from sottovoce.core.errors import BadInput

FAULTY = 1  # the exit code of an audit that found something
REFUSED = 2


def audit(
    what: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="A result (.json), or the TOML file of a study; with --log.")
    ] = None,
    epsilon: Annotated[str | None, option("BUDGET", "Audit this installation at a budget, such as 1.")] = None,
    clients: Annotated[str, option("NAMES", "Of the installation: library, federation, device, or all.")] = "all",
    log: Annotated[
        str | None, option("LOG", "Of the study's coordinator or collector (STUDY.log, STUDY.toml.log).")
    ] = None,
    samples: Annotated[int, option("NUMBER", "Reports of each of two inputs; 0: from integers alone.")] = 2_000,
    confidence: Annotated[float, option("LEVEL", "With which an honest installation passes.")] = 0.999,
    certificate: Annotated[str | None, option("PATH", "Write a certificate that a program can verify.")] = None,
    verify: Annotated[str | None, option("PATH", "Compute a certificate again; with --ledger and --log.")] = None,
    ledger: Annotated[
        list[str] | None, option("PATH", "Export of a site's ledger, to verify its head; once for each site.")
    ] = None,
    json: Json = False,
    report: Report = None,
) -> None:
    """Audit epsilon: exactly from integers, and from below by what clients really send about made-up data.

    No record is read and nothing is spent. Ends with 0 where nothing was found, with 1 where an audit found a fault,
    and with 2 on bad input, where a certificate does not hold, or where there was nothing to compute from.
    """
    if verify is not None:
        if what is not None or epsilon is not None or certificate is not None:
            raise BadInput("--verify computes a certificate again; leave out STUDY, --epsilon and --certificate.")
        _verify(verify, ledger or [], log, json)
        return
    if ledger:
        raise BadInput("--ledger verifies the head of a certificate; give --verify, too.")
    if (what is None) == (epsilon is None):
        raise BadInput("give a study or a result, or --epsilon to audit this installation.")
    from sottovoce.server.page import check_page

    if report is not None:
        check_page(report)
    found = _audited(what, epsilon, clients, log, samples, confidence)
    payload, lines = found.to_dict(), [found.summary()]
    if certificate is not None:
        payload["certificate"] = str(found.save_certificate(certificate))
        lines.append(f"Certificate:   {payload['certificate']}")
    if report is not None:
        payload["report"] = str(found.report(report))
        lines.append(f"Report:        {payload['report']}")
    if json:
        print_json(payload)
    else:
        typer.echo("\n".join(lines))
    if not found.checked:
        say("nothing could be checked: the result keeps no integers; audit the fitted estimator, or the study's log.")
        raise typer.Exit(REFUSED)
    if not found.honest:
        raise typer.Exit(FAULTY)


def _audited(
    what: str | None, epsilon: str | None, clients: str, log: str | None, samples: int, confidence: float
) -> Any:
    """Audit what was named."""
    from sottovoce.auditing.audit import audit as audited
    from sottovoce.auditing.audit import audit_log

    def tell(name: str) -> None:
        if typer.get_text_stream("stderr").isatty():
            say(f"auditing {name}")

    how: dict[str, Any] = {"samples": samples, "confidence": confidence, "progress": tell}
    if epsilon is not None:
        budget = number(epsilon, "--epsilon", "give a budget such as 1")
        return audited(budget, clients=clients if clients == "all" else clients.split(","), **how)
    assert what is not None
    if not what.endswith(".toml"):
        return audited(what, **how)
    from sottovoce.auditing.sources import log_beside, study_name

    kind, name = study_name(what)
    return audit_log(kind, log or log_beside(kind, what), name, **how)


def _verify(path: str, ledgers: list[str], log: str | None, json: bool) -> None:
    """Compute a certificate again, and end with 2 where it does not hold."""
    from sottovoce.auditing.verify import verify

    found = verify(path, ledgers, log)
    if json:
        print_json(found.to_dict())
    else:
        typer.echo(found.summary())
    if not found.holds:
        say("the certificate does not hold; see what is wrong above.")
        raise typer.Exit(REFUSED)
