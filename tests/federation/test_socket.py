"""The site's door on its own machine: whose it is, what it takes, and what it leaves alone."""

import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.federation import words
from sottovoce.federation.serving import stay
from sottovoce.federation.site.socket import HEAD, SocketDoor, answer_on, ask


class Echo:
    def handle(self, data: bytes) -> bytes:
        return data[::-1]


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory(prefix="sv") as folder:  # a socket's path is short
        yield Path(folder) / "site.sock"


@pytest.fixture
def door(path: Path) -> Iterator[Path]:
    stop = threading.Event()
    served = SocketDoor(path, Echo())
    worker = threading.Thread(target=served.serve, args=(stop,))
    worker.start()
    yield path
    stop.set()
    worker.join()
    assert not path.exists()


def test_orders_are_answered_on_a_socket_of_the_owner(door: Path) -> None:
    assert stat.S_IMODE(door.stat().st_mode) == 0o600
    large = bytes(range(256)) * 4_000
    assert ask(door, large) == large[::-1]
    assert ask(door, b"") == b""


def test_an_order_that_is_too_large_is_refused_unread(door: Path) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(door))
        line.sendall((words.MOST + 1).to_bytes(HEAD, "big"))
        reply = words.reply_of(line.recv(1 << 12)[HEAD:])
        assert isinstance(reply, words.Refused)
        assert line.recv(1) == b""
    with pytest.raises(BadInput, match="no site answers"):
        ask(door, bytes(words.MOST + 1))


def test_a_line_that_breaks_off_hurts_nobody(door: Path) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(door))
        line.sendall(b"\0\0\1")
    assert ask(door, b"ab") == b"ba"


def test_with_once_the_end_of_a_study_ends_the_site(path: Path) -> None:
    worker = threading.Thread(target=answer_on, args=(path, Echo(), threading.Event()), kwargs={"once": True})
    worker.start()
    while not path.exists():
        threading.Event().wait(0.01)
    for order in (b"rubbish", words.encode(words.Who("waits")), words.encode(words.Over(bytes(16)))):
        while True:
            try:
                assert ask(path, order) == order[::-1]
                break
            except BadInput:  # bound, and not yet listening
                threading.Event().wait(0.01)
    worker.join(10)
    assert not worker.is_alive()


def test_a_socket_left_behind_is_replaced_and_nothing_else(path: Path, door: Path) -> None:
    with pytest.raises(BadInput, match=r"answers at .* already"):
        SocketDoor(door, Echo())
    left = path.with_name("left.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    stop = threading.Event()
    stop.set()
    SocketDoor(left, Echo()).serve(stop)
    file = path.with_name("file")
    file.write_text("mine")
    for wrong, why in [
        (file, "no socket"),
        (path.parent / "no" / "x", "no folder"),
        (path.with_name("x" * 120), "long"),
    ]:
        with pytest.raises(BadInput, match=why):
            SocketDoor(wrong, Echo())
    assert file.read_text() == "mine"
    with pytest.raises(BadInput, match="no site answers"):
        ask(left, b"x")


def test_a_site_has_one_carrier(tmp_path: Path) -> None:
    for given in ({}, {"coordinator": "https://localhost", "socket": "s"}):
        with pytest.raises(BadInput, match="one of them"):
            stay(tmp_path / "policy.toml", [], **given)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="leave out what is for HTTPS"):
        stay(tmp_path / "policy.toml", [], socket="s", insecure=True)
