"""Starts a collector: the study is checked, the log opened and folded, and then the port is."""

import gc
from typing import Any

from sottovoce.collector.gathering import Gathering, check_replay
from sottovoce.collector.service import CollectorService
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.study import read_collected
from sottovoce.core.errors import BadInput


def collect_study(
    path: str, log: str | None, host: str, port: int, certificate: str | None = None, key: str | None = None
) -> None:
    """Run the collector of a study until it is stopped."""
    import uvicorn

    study = read_collected(path)
    if (certificate is None) != (key is None):
        raise BadInput("a certificate and its key belong together; give both --certificate and --key, or neither.")
    store = CollectorStore(log or f"{path}.log", study.name)
    try:
        service: Any = CollectorService(Gathering(study, store))
        gc.collect()
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
    study = read_collected(path)
    store = CollectorStore(log or f"{path}.log", study.name)
    try:
        return check_replay(study, store)
    finally:
        store.close()
