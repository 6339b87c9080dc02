"""Starts the page: the file is read, the port opened, the browser sent there; and ends it."""

import os
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress

from sottovoce.api.explored import ExploredFile, warm
from sottovoce.explore.server import ExploreServer
from sottovoce.explore.session import ExploreSession

Say = Callable[[str], None]


def explore_file(file: ExploredFile, port: int, browser: bool, say: Say, hint: Say) -> list[str]:
    """Serve the page of a file until it is ended; return what was found, a line each."""
    session = ExploreSession(file, hint)
    server = ExploreServer(session, port, lambda url: say(f"a fresh address: {url}"))
    say(f"exploring {file.name} on {server.url} (stop with Ctrl-C)")
    threading.Thread(target=warm, daemon=True).start()
    if browser and has_screen():
        threading.Thread(target=_open, args=(server.url,), daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.serve()
    if session.asking:
        say("a question is being asked; its answer is waited for")
        session.wait()
    return session.headlines()


def has_screen() -> bool:
    """Tell whether a browser would have a window: without one some would take over the terminal."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(url: str) -> None:
    with suppress(webbrowser.Error, OSError):
        webbrowser.open(url)
