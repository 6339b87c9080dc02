"""Names of any kind are texts on every page: no markup, no formula, and none hides the numbers."""

import json
import urllib.parse
from pathlib import Path
from typing import Any

from tests.browsing import Watched, chromium
from tests.collector.test_pages import Collector, collecting, first_page

NAMES = ["<script>alert(1)</script>", "g" * 200, "$x^2$ %{y}", "n" + "m" * 60]
STUDY = f"""
name = "<b>{"X" * 200}"
question = "<img src=x onerror=alert(1)>"
groups = {json.dumps(NAMES)}
people = 2000
[quantile]
tau = 0.5
epsilon = 2.0
bounds = [0, 120]
[rounds]
grace = 0.0
"""
FITS = "document.documentElement.scrollWidth <= innerWidth"
IN_SIGHT = "(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('.wide'))"


def answered(collector: Collector) -> None:
    """Let devices of one group answer until it has an estimate."""
    for _ in range(60):
        if any(each["estimate"] is not None for each in collector.get(f"/v1{collector.page}/trajectory")):
            return
        collector.answered(urllib.parse.quote(NAMES[2]), 20, 40.0)
    raise AssertionError("there is no estimate after hundreds of answers")


def look(browser: Any, collector: Collector) -> None:
    """Open every page that shows a name."""
    watched = Watched(browser, viewport={"width": 1000, "height": 800})
    page = watched.page
    page.on("dialog", lambda dialog: watched.said.append(dialog.message))
    page.goto(collector.url)
    page.wait_for_selector("#studies li")
    assert page.evaluate(FITS)
    page.goto(collector.url + collector.page)
    page.wait_for_selector("#chart .trace", state="attached")
    assert page.locator("#rows th").all_inner_texts() == NAMES
    assert page.evaluate(FITS)
    assert page.evaluate(IN_SIGHT)
    page.goto(f"{collector.url}{collector.page}/survey")
    page.wait_for_selector("#bytes tr")
    assert page.evaluate(FITS)
    watched.check(collector.url)


def test_names_are_texts_and_leave_the_numbers_in_sight(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    with collecting(str(study)) as url, chromium() as browser:
        collector = Collector(url, first_page(url), "")
        answered(collector)
        look(browser, collector)
