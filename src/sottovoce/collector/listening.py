"""Listens on a port, in one process or divided among several, each of which owns some groups of every study.

All take connections from the same port and hand on what is not theirs (`collector.peers`). A process that dies is
started again: its log is the truth.
"""

import gc
import logging
import multiprocessing
import os
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.collector.access import RATE, Access
from sottovoce.collector.peers import Part, Peers
from sottovoce.collector.service import CollectorService
from sottovoce.collector.store import ALONE, CollectorStore
from sottovoce.collector.studies import CollectedStudies, enrol
from sottovoce.collector.study import CollectedStudy
from sottovoce.core.errors import BadInput

CONNECTIONS = 4096  # at a time; more are told to come again
SHARE = CONNECTIONS // 8  # of one address, where no proxy stands before them
OWN_FILES = 256  # beside connections
MOST_WORKERS = 64
AGAIN = 0.5  # seconds before a process that died is started again


class Listening(NamedTuple):
    """Where a collector listens, by which certificate, whom it lets in, and among how many processes it is divided.

    ``part`` and ``parts`` divide groups among hosts that share one PostgreSQL log.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: str | None = None
    key: str | None = None
    proxy: str | None = None
    rate: float = RATE
    readers_only: bool = False
    workers: int = 1
    part: Part = ALONE


def listen(
    service: CollectorService, where: Listening, sockets: list[socket.socket] | None = None, ready: Any = None
) -> None:
    """Serve until stopped."""
    import uvicorn

    from sottovoce.collector.connections import allow_files, shared

    allow_files(CONNECTIONS + OWN_FILES)
    config = uvicorn.Config(
        service,
        host=where.host,
        port=where.port,
        http=shared(SHARE if where.proxy is None else 0),
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        proxy_headers=where.proxy is not None,
        forwarded_allow_ips=where.proxy,
        ssl_certfile=where.certificate,
        ssl_keyfile=where.key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError):
        raise BadInput("the certificate or its key cannot be read; give PEM files.") from None
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # a line for each sender that has gone would fill a disk
    own = [] if sockets else [bound(where)]
    if ready is not None:
        ready()
    gc.collect()
    gc.freeze()  # what is loaded stays: looking through it again and again held answers up for tens of milliseconds
    try:
        uvicorn.Server(config).run(sockets=sockets or own)
    except KeyboardInterrupt:
        return
    finally:
        for each in own:
            each.close()


def bound(where: Listening) -> socket.socket:
    """Return the socket of the port, or refuse one that is taken."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    # the protocol is named because asyncio sends small answers at once on such sockets alone
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((where.host, where.port))
        found.listen(2048)
    except OSError:
        found.close()
        raise BadInput(
            f"port {where.port} of {where.host} cannot be listened on; give another --port or --host."
        ) from None
    return found


def divide(
    given: Sequence[tuple[CollectedStudy, dict[str, Any]]], log: str, where: Listening, ready: Callable[[], None]
) -> None:
    """Run several processes on one port until stopped; those that die are started again."""
    parts = [Part(k, where.workers) for k in range(where.workers)]
    for part in parts:
        store = CollectorStore(log, part)
        store.claim(part)
        if part.number == 0:
            for study, said in given:
                enrol(store, study, said)
        store.close()
    port, stopped = bound(where), threading.Event()
    context = multiprocessing.get_context("spawn")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with tempfile.TemporaryDirectory(prefix="sottovoce-") as folder:

        def start(part: Part) -> BaseProcess:
            process = context.Process(target=_work, args=(log, where, part, folder, port), daemon=False)
            process.start()
            return process

        running = [start(part) for part in parts]
        ready()
        while not stopped.wait(0.1):
            for k, process in enumerate(running):
                if not process.is_alive():
                    time.sleep(AGAIN)
                    running[k] = start(parts[k])
        for process in running:
            process.terminate()
        for process in running:
            process.join(10)
            if process.is_alive():
                process.kill()
    port.close()


def _work(log: str, where: Listening, part: Part, folder: str, port: socket.socket) -> None:
    """Be one of the processes, as long as the first one lives."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        store = CollectorStore(log, part)
        store.claim(part)
        numbers = range(0 if store.shared else part.of)
        others = [CollectorStore(log, Part(k, part.of)) for k in numbers if k != part.number]
        base = store if store.shared or part.number == 0 else others[0]
        studies = CollectedStudies(store, part=part, base=base, others=others or [store])
        access = Access(base, where.rate / part.of, where.readers_only)
        Path(folder, f"{part.number}.sock").unlink(missing_ok=True)  # of a process that died
        listen(CollectorService(studies, access, Peers(part, Path(folder))), where, [port])
    except BadInput as error:
        sys.exit(str(error))


def _end_with_parent() -> None:
    """End in good order once the first process is gone: nobody would start what dies, and the port would stay taken."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
