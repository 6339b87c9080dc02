"""A real browser for tests of pages: the Chromium of the system, what a page asked for, and axe.

Whoever imports this without Playwright or a Chromium is skipped.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = playwright.expect
if CHROMIUM is None:
    pytest.skip("there is no Chromium here", allow_module_level=True)

FLAGS = [
    f"--{flag}"
    for flag in (
        "headless", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update",
        "disable-sync", "no-first-run",
    )
]  # fmt: skip
SIZES: tuple[dict[str, Any], ...] = (
    {"viewport": {"width": 375, "height": 700}},
    {"viewport": {"width": 1200, "height": 800}, "color_scheme": "dark"},
)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser for a while."""
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


class Watched:
    """A page, all that it asked for, and all that its console was told."""

    def __init__(self, browser: Any, **settings: Any) -> None:
        self.context = browser.new_context(**settings)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.requests: list[Any] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def check(self, url: str) -> None:
        """Nothing left for another host, and the console is silent."""
        own = (f"{url}/", "data:", f"blob:{url}/")
        assert {each.url for each in self.requests if not each.url.startswith(own)} == set()
        assert self.said == []
        self.context.close()


def violations(page: Any) -> list[str]:
    """Return what axe finds wrong with a page, a line each."""
    script = (files("axe_playwright_python") / "axe.min.js").read_text()
    found = page.evaluate(f"async () => {{ {script}; return (await axe.run()).violations; }}")
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found]
