"""The documentation site: built without a warning, whole, and asking nothing of any other host."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import sottovoce as sv

ROOT = Path(__file__).parents[2]
LOADED = {**dict.fromkeys(("script", "img", "iframe", "source", "video", "audio"), "src"), "link": "href"}
PLAIN = {"canonical", "next", "prev", "edit"}  # links that a browser does not follow by itself


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


def test_the_site_is_built_without_a_warning_whole_and_alone(tmp_path: Path) -> None:
    build(tmp_path)
    pages = {page.relative_to(tmp_path).as_posix(): Loads(page) for page in sorted(tmp_path.rglob("*.html"))}
    assert len(pages) > 100
    fetched = {(name, link) for name, page in pages.items() for link in page.fetched}
    assert {link for _, link in fetched if link.endswith(".js")}
    assert [each for each in fetched if re.match(r"\s*(https?:)?//", each[1])] == []
    styles = "".join(sheet.read_text(encoding="utf-8") for sheet in tmp_path.rglob("*.css"))
    assert re.findall(r"url\(\s*['\"]?(?:https?:)?//[^)]*|@import[^;]*", styles) == []
    drawn = [name for name in pages if 'class="mermaid"' in (tmp_path / name).read_text(encoding="utf-8")]
    assert drawn == []  # the theme would fetch a script to draw them

    known = set().union(*(page.ids for name, page in pages.items() if name.startswith("reference/")))
    assert [name for name in sv.__all__ if name != "__version__" and f"sottovoce.{name}" not in known] == []
    commands = (tmp_path / "cli" / "index.html").read_text(encoding="utf-8")
    options = set(re.findall(r"`(--[a-z-]+)", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")))
    assert len(options) > 50
    assert [option for option in options if option not in commands] == []
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 500_000
