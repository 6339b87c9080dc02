"""Starts a collector: studies are checked, the log opened and folded, and then the port is."""

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from sottovoce.collector.access import RATE, Access
from sottovoce.collector.gathering import owned
from sottovoce.collector.keys import make_key
from sottovoce.collector.replaying import check_replay
from sottovoce.collector.service import CollectorService
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import read_collected
from sottovoce.collector.tokens import MOST, issue
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import identity

CONNECTIONS = 4096  # at a time; more are told to come again


class Listening(NamedTuple):
    """Where a collector listens, by which certificate, and whom it lets in."""

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: str | None = None
    key: str | None = None
    proxy: str | None = None
    rate: float = RATE
    readers_only: bool = False


def collect_studies(
    paths: Sequence[str], log: str | None, where: Listening, ready: Callable[[], None] = lambda: None
) -> None:
    """Run the collector of some studies until it is stopped."""
    import uvicorn

    given = [read_collected(path) for path in paths]
    if (where.certificate is None) != (where.key is None):
        raise BadInput("a certificate and its key belong together; give both --certificate and --key, or neither.")
    if not 0 <= where.rate < math.inf:
        raise BadInput("--rate is requests a second from one address; give a number, or 0 for no limit.")
    store = CollectorStore(log_of(paths, log))
    try:
        studies = CollectedStudies(store)
        for study, said in given:
            studies.begin(study, said)
        service: Any = CollectorService(studies, Access(store, where.rate, where.readers_only))
        gc.collect()
        ready()
        gc.freeze()  # what is loaded stays: looking through it again and again held answers up for tens of milliseconds
        try:
            uvicorn.run(
                service,
                host=where.host,
                port=where.port,
                http="httptools",
                log_level="warning",
                access_log=False,
                server_header=False,
                limit_concurrency=CONNECTIONS,
                proxy_headers=where.proxy is not None,
                forwarded_allow_ips=where.proxy,
                ssl_certfile=where.certificate,
                ssl_keyfile=where.key,
            )
        except OSError:
            raise BadInput("the certificate or its key cannot be read; give PEM files.") from None
    finally:
        store.close()


def log_of(paths: Sequence[str], log: str | None) -> str:
    """Return where the log is: where it was said, or beside the first study."""
    if log is None and not paths:
        raise BadInput("a collector needs a study or a log; give the TOML file of a study, or --log.")
    return log or f"{paths[0]}.log"


def add_key(log: str, name: str, role: str) -> str:
    """Make an API key for the collector of a log, and return it."""
    with _opened(log, existing=False) as store:
        return make_key(store, name, role)


def list_keys(log: str) -> list[dict[str, str]]:
    """Return names and roles of the API keys of a log."""
    with _opened(log) as store:
        return [{"name": each.name, "role": each.role} for each in store.all_keys()]


def revoke_key(log: str, name: str) -> None:
    """Revoke an API key."""
    with _opened(log) as store:
        if not store.remove_key(name):
            raise BadInput("the log has no key of this name; 'sottovoce key list' names them.")


def issue_tokens(path: str, log: str | None, group: str | None, count: int) -> list[str]:
    """Issue tokens to people of a group, for a study that takes reports with tokens alone."""
    study, _ = read_collected(path)
    if not 1 <= count <= MOST:
        raise BadInput(f"tokens are issued 1 to {MOST:,} at a time; give such a number.")
    number = owned(study.groups, group)
    if number is None:
        raise BadInput("the study has no such group; give one that its file names.")
    with _opened(log_of([path], log)) as store:
        kept = store.known(study.name)
        if kept is None or kept.secret is None:
            raise BadInput("the log holds no such study with tokens; start it with tokens = true below [devices].")
        return [token.hex() for token in issue(kept.secret, identity(kept.card), number, count)]


@contextmanager
def _opened(log: str, *, existing: bool = True) -> Iterator[CollectorStore]:
    """Open a log for a moment."""
    store = CollectorStore(log, existing=existing)
    try:
        yield store
    finally:
        store.close()


def replay_study(path: str, log: str | None) -> dict[str, Any]:
    """Fold the log of a study anew and compare."""
    study, _ = read_collected(path)
    with _opened(log_of([path], log)) as store:
        return check_replay(study, store)
