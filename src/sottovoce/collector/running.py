"""Starts a collector: studies are checked, the log opened and folded, and then the port is."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from sottovoce.collector.access import Access
from sottovoce.collector.gathering import owned
from sottovoce.collector.keys import make_key
from sottovoce.collector.listening import MOST_WORKERS, Listening, divide, listen
from sottovoce.collector.log_connection import is_server
from sottovoce.collector.peers import Part
from sottovoce.collector.replaying import check_replay
from sottovoce.collector.service import CollectorService
from sottovoce.collector.store import ALONE, CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import read_collected
from sottovoce.collector.tokens import MOST, issue
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import identity


def collect_studies(
    paths: Sequence[str], log: str | None, where: Listening, ready: Callable[[], None] = lambda: None
) -> None:
    """Run the collector of some studies until it is stopped."""
    given = [read_collected(path) for path in paths]
    place = log_of(paths, log)
    _check(where, place)
    if where.workers > 1:
        divide(given, place, where, ready)
        return
    store = CollectorStore(place, where.part)
    try:
        store.claim(where.part)
        shared = [store] if where.part.of > 1 else []
        studies = CollectedStudies(store, part=where.part, others=shared)
        for study, said in given:
            studies.begin(study, said)
        listen(CollectorService(studies, Access(store, where.rate, where.readers_only)), where, ready=ready)
    finally:
        store.close()


def part_of(text: str | None) -> Part:
    """Return which part of the groups a host owns, from K/N.

    >>> part_of("2/3")
    Part(number=1, of=3)
    """
    if text is None:
        return ALONE
    found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text, re.ASCII)
    if found is None or int(found[1]) > int(found[2]):
        raise BadInput("--part is written K/N, such as 2/3: the second of three hosts; correct it.")
    return Part(int(found[1]) - 1, int(found[2]))


def _check(where: Listening, log: str) -> None:
    """Refuse what cannot be listened on, before the log is touched."""
    if (where.certificate is None) != (where.key is None):
        raise BadInput("a certificate and its key belong together; give both --certificate and --key, or neither.")
    if any(path is not None and not Path(path).is_file() for path in (where.certificate, where.key)):
        raise BadInput("the certificate or its key cannot be read; give PEM files.")
    if not 0 <= where.rate < math.inf:
        raise BadInput("--rate is requests a second from one address; give a number, or 0 for no limit.")
    if not 1 <= where.workers <= MOST_WORKERS:
        raise BadInput(f"--workers is a number of processes from 1 to {MOST_WORKERS}; give such a number.")
    if where.part.of > 1 and (where.workers > 1 or not is_server(log)):
        raise BadInput("--part divides groups among hosts with one PostgreSQL log; give that log, and no --workers.")


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
    place = log_of([path], log)
    with ExitStack() as stack:
        first = stack.enter_context(_opened(place))
        files = 1 if first.shared else first.parts
        rest = (CollectorStore(place, Part(k, files), existing=True) for k in range(1, files))
        return check_replay(study, first, *(stack.enter_context(closing(each)) for each in rest))
