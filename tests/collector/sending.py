"""Sends reports in the background as devices do: fresh ones, each upload again and again until it is kept."""

import http.client
import threading
import time
from typing import Any

from tests.collector.test_service import Running

from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import ID, IDENTITY, SIZE


class Sending:
    """A thread that sends; what it was told, in order, and how many uploads were kept."""

    def __init__(self, running: Running, like: bytes) -> None:
        self.told: list[tuple[int, Any]] = []
        self.sent: list[bytes] = []
        self._running, self._like, self._stop = running, like, threading.Event()
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _fresh(self) -> bytes:
        """Return the same answers under new ids."""
        starts = range(IDENTITY, len(self._like), SIZE)
        rows = (SystemEntropy().words(2).tobytes() + self._like[at + ID : at + SIZE] for at in starts)
        return self._like[:IDENTITY] + b"".join(rows)

    def _send(self) -> None:
        while not self._stop.wait(0.01):
            self.sent.append(self._fresh())
            while not self._kept(self.sent[-1]):
                time.sleep(0.05)

    def _kept(self, body: bytes) -> bool:
        """Send an upload; tell whether it is kept."""
        try:
            self.told.append(self._running.post(body))
        except (OSError, http.client.HTTPException):  # whoever had the connection was killed
            return False
        return self.told[-1][0] == 200

    def stop(self) -> None:
        """Stop once the last upload is kept."""
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
