"""What a device has answered, in a folder of its own: the card and the one report of each study, for its owner alone.

A lock lets one answer at a time draw a letter, so that neither processes nor threads draw two for one study, nor pass
together what all studies may cost.
"""

import fcntl
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import IDENTITY, SIZE, read_card


class KeptAnswers:
    """The folder of a device."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def report(self, study: bytes) -> bytes | None:
        """Return the upload that was kept of a study; None where none was."""
        path = self._folder / f"{study.hex()}.report"
        if not path.exists():
            return None
        body = path.read_bytes()
        if len(body) != IDENTITY + SIZE or body[:IDENTITY] != study:
            raise BadInput("the report that this device has kept is damaged; it answers this study no more.")
        return body

    def keep(self, study: bytes, card: str, draw: Callable[[], bytes], total: float | None) -> bytes:
        """Return the upload of a study, drawn now if none is kept; refuse what all studies together may not cost."""
        with self._alone():
            if (kept := self.report(study)) is not None:
                return kept
            self._check_total(study, card, total)
            body = draw()
            self._write(f"{study.hex()}.card", card.encode())
            self._write(f"{study.hex()}.report", body)
            return body

    def _check_total(self, study: bytes, card: str, total: float | None) -> None:
        """Refuse a study that would bring all studies of this device above what they may cost together."""
        if total is None:
            return
        paths = (path for path in self._folder.glob("*.card") if path.stem != study.hex())
        spent = [read_card(path.read_text(encoding="utf-8")).epsilon for path in paths]
        if not math.fsum([*spent, read_card(card).epsilon]) <= total:
            raise BadInput("all studies of this device would cost more epsilon than it allows; nothing was answered.")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other answer is being drawn; the system lets go of the lock however a process ends."""
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _write(self, name: str, data: bytes) -> None:
        """Write a file so that it lasts, whole or not at all."""
        number, draft = tempfile.mkstemp(prefix=".draft-", dir=self._folder)  # which its owner alone can read
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(self._folder / name)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise BadInput("this device cannot keep its report, so it sends none; make room in its folder.") from None
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
