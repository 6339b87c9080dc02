"""What the commands do: a coordinator that conducts one study over HTTPS, and a site that stays and answers."""

import json
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sottovoce.core.errors import BadInput
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.rounds import Happened, Rounds
from sottovoce.federation.study import Certificates, read_study

PARTS = ("authority.pem", "certificate.pem", "key.pem")


def serve_study(
    study: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8443,
    certificates: str | Path | None = None,
    insecure: bool = False,
    log: str | Path | None = None,
    watch: Callable[[Happened], None] | None = None,
    listening: Callable[[int], None] | None = None,
) -> Any:
    """Conduct a study over HTTPS and return its result; begun before, it goes on from its log."""
    need("starlette", "uvicorn", "httptools")
    from sottovoce.federation.coordinator.http import HttpPost

    terms = read_study(study)
    _check_secure(certificates, insecure)
    kept = StudyLog(Path(study).with_suffix(".log") if log is None else log, terms.name)
    try:
        known = kept.study()
        if known is not None and known.result is not None:
            from sottovoce.server.load import from_dict

            return from_dict(json.loads(known.result))
        with HttpPost(terms.sites, host, port, _files(certificates)) as post:
            if listening is not None:
                listening(post.port)
            return Rounds(terms, kept, post, watch).conduct()
    finally:
        kept.close()


def stay(
    policy: str | Path,
    data: list[str],
    *,
    coordinator: str | None = None,
    socket: str | Path | None = None,
    ledger: str | Path | None = None,
    certificates: str | Path | None = None,
    insecure: bool = False,
    once: bool = False,
    watch: Callable[[Any], None] | None = None,
    heard: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Answer for the records of some files, to a coordinator or on a socket; with ``once``, until a study is over."""
    if (coordinator is None) == (socket is None):
        raise BadInput("give --coordinator URL or, for a Flower node on this machine, --socket PATH; one of them.")
    if socket is not None and (certificates is not None or insecure):
        raise BadInput("--socket stays on this machine, and Flower brings its own TLS; leave out what is for HTTPS.")
    from sottovoce.client.site_ledger import SiteLedger
    from sottovoce.federation.site.holding import read_holding
    from sottovoce.federation.site.policy import read_policy
    from sottovoce.federation.site.resident import Resident
    from sottovoce.federation.site.socket import answer_on

    rules = read_policy(policy)
    ended = threading.Event() if stop is None else stop
    line = None if coordinator is None else _line(coordinator, rules.name, certificates, insecure)
    holding = read_holding(data, rules)
    kept = SiteLedger(Path(policy).with_suffix(".ledger") if ledger is None else Path(ledger))
    try:
        resident = Resident(rules, holding, kept, watch=watch)
        if line is not None:
            line(resident, ended, once=once, heard=heard)
        elif socket is not None:
            answer_on(socket, resident, ended, once=once)
    finally:
        kept.shut()


def _line(coordinator: str, name: str, certificates: str | Path | None, insecure: bool) -> Any:
    """Return what polls a coordinator; nothing is wrong with its address or files any more."""
    need("httpx")
    from sottovoce.federation.site.poll import Line, connect, poll

    _check_secure(certificates, insecure)
    files = _files(certificates)
    client = connect(Line(coordinator, name, *(() if files is None else files)))

    def talk(site: Any, stop: threading.Event, **how: Any) -> None:
        with client:
            poll(client, site, stop, **how)

    return talk


def make_certificates(folder: str | Path, sites: list[str], hosts: list[str]) -> list[Path]:
    """Write a test set of certificates."""
    need("cryptography")
    from sottovoce.federation.certificates import write_certificates

    return write_certificates(folder, sites, hosts)


def check_file(path: str | Path) -> None:
    """Refuse a file that cannot be written, before anything is asked."""
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise BadInput(f"{path} cannot be written; give a file in a folder that is there.")


def need(*modules: str) -> None:
    """Refuse to begin without what a federation needs beside the core."""
    if any(find_spec(module) is None for module in modules):
        raise BadInput("a federation needs more than the core; install sottovoce[federation].")


def _check_secure(certificates: Any, insecure: bool) -> None:
    if certificates is None and not insecure:
        raise BadInput("give --certificates FOLDER, or --insecure to try things out on loopback.")
    if certificates is not None and insecure:
        raise BadInput("--insecure and --certificates do not go together; leave one out.")


def _files(folder: str | Path | None) -> Any:
    """Return the three files of a folder that `sottovoce certificates` wrote, or that a network's authority gave."""
    return None if folder is None else Certificates(*(Path(folder) / name for name in PARTS)).check()
