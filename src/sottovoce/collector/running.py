"""Starts a collector: studies are checked, the log opened and folded, and then the port is."""

import gc
from collections.abc import Callable, Sequence
from typing import Any

from sottovoce.collector.replaying import check_replay
from sottovoce.collector.service import CollectorService
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import read_collected
from sottovoce.core.errors import BadInput


def collect_studies(
    paths: Sequence[str],
    log: str | None,
    host: str,
    port: int,
    certificate: str | None = None,
    key: str | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Run the collector of some studies until it is stopped."""
    import uvicorn

    given = [read_collected(path) for path in paths]
    if (certificate is None) != (key is None):
        raise BadInput("a certificate and its key belong together; give both --certificate and --key, or neither.")
    if log is None and not paths:
        raise BadInput("a collector needs a study or a log; give the TOML file of a study, or --log.")
    store = CollectorStore(log or f"{paths[0]}.log")
    try:
        studies = CollectedStudies(store)
        for study, said in given:
            studies.begin(study, said)
        service: Any = CollectorService(studies)
        gc.collect()
        ready()
        gc.freeze()  # what is loaded stays: looking through it again and again held answers up for tens of milliseconds
        try:
            uvicorn.run(
                service,
                host=host,
                port=port,
                http="httptools",
                log_level="warning",
                access_log=False,
                server_header=False,
                ssl_certfile=certificate,
                ssl_keyfile=key,
            )
        except OSError:
            raise BadInput("the certificate or its key cannot be read; give PEM files.") from None
    finally:
        store.close()


def replay_study(path: str, log: str | None) -> dict[str, Any]:
    """Fold the log of a study anew and compare."""
    study, _ = read_collected(path)
    store = CollectorStore(log or f"{path}.log", existing=True)
    try:
        return check_replay(study, store)
    finally:
        store.close()
