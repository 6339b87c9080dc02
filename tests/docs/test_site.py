"""The documentation site: built without a warning, whole, and asking nothing of any other host, in a browser either."""

import functools
import importlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv

ROOT = Path(__file__).parents[2]
LOADED = {**dict.fromkeys(("script", "img", "iframe", "source", "video", "audio"), "src"), "link": "href"}
PLAIN = {"canonical", "next", "prev", "edit"}  # links that a browser does not follow by itself
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SEEN = ("", "start/", "choose/", "tutorials/", "tutorials/hospital/", "theory/selections/", "limits/", "peers/", "cli/")
WIDTHS = (360, 1400)  # of a phone, and of a desk


class Loads(HTMLParser):
    """What a page makes a browser fetch, and what can be linked to on it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.ids.add(given.get("id", ""))
        if tag in LOADED and given.get("rel") not in PLAIN:
            self.fetched += [given.get(LOADED[tag], ""), *given.get("srcset", "").split(",")]


def build(folder: Path) -> None:
    """Build the site as `make docs` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "WARNING" not in done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


def test_the_site_is_built_without_a_warning_whole_and_alone(site: Path) -> None:
    pages = {page.relative_to(site).as_posix(): Loads(page) for page in sorted(site.rglob("*.html"))}
    assert len(pages) > 100
    fetched = {(name, link) for name, page in pages.items() for link in page.fetched}
    assert {link for _, link in fetched if link.endswith(".js")}
    assert [each for each in fetched if re.match(r"\s*(https?:)?//", each[1])] == []
    styles = "".join(sheet.read_text(encoding="utf-8") for sheet in site.rglob("*.css"))
    assert re.findall(r"url\(\s*['\"]?(?:https?:)?//[^)]*|@import[^;]*", styles) == []
    drawn = [name for name in pages if 'class="mermaid"' in (site / name).read_text(encoding="utf-8")]
    assert drawn == []  # the theme would fetch a script to draw them

    known = set().union(*(page.ids for name, page in pages.items() if name.startswith("reference/")))
    assert [name for name in sv.__all__ if name != "__version__" and f"sottovoce.{name}" not in known] == []
    commands = (site / "cli" / "index.html").read_text(encoding="utf-8")
    options = set(re.findall(r"`(--[a-z-]+)", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")))
    assert len(options) > 50
    assert [option for option in options if option not in commands] == []
    assert (site / "search" / "search_index.json").stat().st_size > 500_000


def test_it_begins_with_a_home_page_and_has_every_kind(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    for link in ("start/", "choose/", "tutorials/hospital/", "theory/", "limits/", "peers/", "audit/"):
        assert f'href="{link}"' in home
    assert "<svg" in home  # icons are drawn into the page
    assert (site / "pages" / "index.html").exists()
    assert len(list((site / "tutorials").glob("*.ipynb"))) == 4
    assert len(list((site / "theory").glob("*/index.html"))) >= 10
    assert len(list((site / "how-to").glob("*/index.html"))) >= 14


class Quiet(SimpleHTTPRequestHandler):
    """Hands out the site and says nothing."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_in_a_browser_it_asks_nobody_else_and_fits_phone_and_desk(served: str) -> None:
    drive = importlib.import_module("playwright.sync_api").sync_playwright
    asked: list[str] = []
    wrong: list[str] = []
    with drive() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: wrong.append(str(error)))
            for name in SEEN:
                page.goto(served + name)
                beyond = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert beyond <= 0, f"{name} is {beyond} pixels wider than a window of {width}"
        page.fill("input.md-search__input", "certified")
        page.wait_for_selector(".md-search-result__item")
        browser.close()
    assert wrong == []
    assert len(asked) > 50
    assert [url for url in asked if not url.startswith((served, "data:", "blob:"))] == []
