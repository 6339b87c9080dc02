"""What the commands do: a coordinator that conducts one study over HTTPS, and a site that stays and answers."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.core.errors import BadInput
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.rounds import Ended, Rounds, check_giving_up, check_leaving
from sottovoce.federation.status import LedgerState, Notice, SiteBoard, StudyBoard, heads_as_state
from sottovoce.federation.status_page import StatusServer
from sottovoce.federation.study import Certificates, StudyTerms, read_study

PARTS = ("authority.pem", "certificate.pem", "key.pem")


class Served(NamedTuple):
    """What a study came to, and where the ledger of each site stood in the end."""

    result: Any
    ledgers: dict[str, LedgerState]


def serve_study(
    study: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8443,
    certificates: str | Path | None = None,
    insecure: bool = False,
    log: str | Path | None = None,
    watch: Callable[[Notice], None] | None = None,
    status: int | None = None,
    without: Sequence[str] = (),
) -> Served:
    """Conduct a study over HTTPS and return its result; begun before, it goes on from its log.

    ``watch`` is told what happens; ``status`` is a port of loopback for the page that shows it. ``without`` names sites
    that will not come back: a study that was begun goes on over the others.
    """
    need("starlette", "uvicorn", "httptools")
    _check_secure(certificates, insecure)
    terms, tell = read_study(study), _silent if watch is None else watch
    with _logged(study, terms, log) as kept:
        known = kept.study()
        if without:
            check_leaving(known)
        if known is not None and known.result is not None:
            from sottovoce.server.load import from_dict

            return Served(from_dict(json.loads(known.result)), _ledgers(kept))
        with _rounds(terms, kept, Address(host, port, certificates, insecure), tell, status) as rounds:
            return Served(rounds.conduct(without), _ledgers(kept))


def give_up_study(
    study: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8443,
    certificates: str | Path | None = None,
    insecure: bool = False,
    log: str | Path | None = None,
    watch: Callable[[Notice], None] | None = None,
    status: int | None = None,
) -> Ended:
    """End a study for good and tell its sites, which give back what they have reserved in vain."""
    need("starlette", "uvicorn", "httptools")
    _check_secure(certificates, insecure)
    terms, tell = read_study(study), _silent if watch is None else watch
    with _logged(study, terms, log) as kept:
        check_giving_up(kept.study(), terms)
        with _rounds(terms, kept, Address(host, port, certificates, insecure), tell, status) as rounds:
            return rounds.give_up()


class Address(NamedTuple):
    """Where a coordinator listens, and with which certificates."""

    host: str
    port: int
    certificates: str | Path | None
    insecure: bool


@contextmanager
def _logged(study: str | Path, terms: StudyTerms, log: str | Path | None) -> Iterator[StudyLog]:
    """Open the log of a study."""
    kept = StudyLog(Path(study).with_suffix(".log") if log is None else log, terms.name)
    try:
        yield kept
    finally:
        kept.close()


@contextmanager
def _rounds(
    terms: StudyTerms, kept: StudyLog, where: Address, tell: Callable[[Notice], None], status: int | None
) -> Iterator[Rounds]:
    """Listen for the sites of a study, and show what happens."""
    from sottovoce.federation.coordinator.http import HttpPost

    with HttpPost(terms.sites, where.host, where.port, _files(where.certificates)) as post:
        board = StudyBoard(terms, kept, kept.where, lambda: post.seen)
        with _shown(status, board.status, tell):
            tell(board.listens(f"{where.host}:{post.port}"))
            yield Rounds(terms, kept, post, lambda event: tell(board.happened(event)))


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
    watch: Callable[[Notice], None] | None = None,
    status: int | None = None,
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
    place = Path(policy).with_suffix(".ledger") if ledger is None else Path(ledger)
    kept, tell = SiteLedger(place), _silent if watch is None else watch
    try:
        board = SiteBoard(rules, holding, kept.show, place, str(socket) if coordinator is None else coordinator)
        resident = Resident(rules, holding, kept, watch=lambda event: tell(board.seen(event)))
        with _shown(status, board.status, tell):
            try:
                if line is not None:
                    heard = {"heard": lambda words: _told(tell, board.lost(words)), "reached": board.reached}
                    line(resident, ended, once=once, **heard)
                elif socket is not None:
                    answer_on(socket, resident, ended, once=once)
            finally:
                tell(board.ends())
    finally:
        kept.shut()


def _line(coordinator: str, name: str, certificates: str | Path | None, insecure: bool) -> Any:
    """Return what polls a coordinator; nothing is wrong with its address or files any more."""
    need("httpx")
    from sottovoce.federation.site.poll import SiteLine, connect, poll

    _check_secure(certificates, insecure)
    files = _files(certificates)
    client = connect(SiteLine(coordinator, name, *(() if files is None else files)))

    def talk(site: Any, stop: threading.Event, *, reached: Callable[[int], None], **how: Any) -> None:
        client.event_hooks = {"response": [lambda response: reached(response.status_code)]}
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


def _told(tell: Callable[[Notice], None], notice: Notice | None) -> None:
    """Tell what is new."""
    if notice is not None:
        tell(notice)


def _silent(_: Notice) -> None:
    """Say nothing."""


@contextmanager
def _shown(port: int | None, status: Callable[[], dict[str, Any]], tell: Callable[[Notice], None]) -> Iterator[None]:
    """Show a status on a port of loopback, where one is asked for."""
    if port is None:
        yield
        return
    with StatusServer(port, status) as page:
        tell(Notice({"event": "status", "url": page.url}, f"status page on {page.url}"))
        yield


def _ledgers(kept: StudyLog) -> dict[str, LedgerState]:
    return {site: heads_as_state(*head) for site, head in kept.heads().items()}


def _check_secure(certificates: Any, insecure: bool) -> None:
    if certificates is None and not insecure:
        raise BadInput("give --certificates FOLDER, or --insecure to try things out on loopback.")
    if certificates is not None and insecure:
        raise BadInput("--insecure and --certificates do not go together; leave one out.")


def _files(folder: str | Path | None) -> Any:
    """Return the three files of a folder that `sottovoce certificates` wrote, or that a network's authority gave."""
    return None if folder is None else Certificates(*(Path(folder) / name for name in PARTS)).check()
