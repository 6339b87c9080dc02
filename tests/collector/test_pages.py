"""The pages in a real browser: survey, dashboard, list and wizard, over a collector in a process of its own."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.browsing import SIZES, Watched, chromium, expect, violations

from sottovoce.client.device import Device, make_report
from sottovoce.collector.planning import planned
from sottovoce.collector.running import add_key, issue_tokens
from sottovoce.protocol.device import identity, read_card

STUDY = """
name = "age"
question = "How old are you?"
people = 4000
groups = ["a", "b"]
[quantile]
tau = 0.5
epsilon = 1.0
bounds = [0, 120]
[rounds]
grace = 0.0
"""
REGRESSION = """
name = "waits"
question = "How long did you wait?"
people = 20000
[regression]
response = "wait"
tau = 0.5
epsilon = 2.0
[regression.features]
age = [18, 90]
"""


class Collector(NamedTuple):
    """Where a collector runs, the path of its first study's page, and the key of its admin."""

    url: str
    page: str
    key: str

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.loads(answer.read())

    def answered(self, group: str, count: int, value: float) -> None:
        """Let many devices answer what is asked now."""
        with urllib.request.urlopen(f"{self.url}/v1{self.page}/card", timeout=10) as answer:
            text = answer.read().decode()
        card, study = read_card(text), identity(text)
        query = self.get(f"/v1{self.page}/query?group={group}")
        reports = [make_report(card, study, query, value)[16:] for _ in range(count)]
        urllib.request.urlopen(f"{self.url}/v1/reports", data=study + b"".join(reports), timeout=10).close()

    def until_known(self) -> Any:
        """Let devices answer until both groups have an interval; return what the first is known by."""
        for _ in range(40):
            told = [self.get(f"/v1{self.page}/estimate?group={group}") for group in "ab"]
            if all(each["interval"] and None not in each["interval"] for each in told):
                return told[0]
            for group in "ab":
                self.answered(group, 120, 44.0)
        raise AssertionError("there is no interval after thousands of answers")


@contextmanager
def collecting(*words: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "sottovoce", "collect", *words, "--port", str(port)]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    study = tmp_path_factory.mktemp("pages") / "study.toml"
    study.write_text(STUDY)
    key = add_key(f"{study}.log", "me", "admin")
    with collecting(str(study)) as url:
        yield Collector(url, first_page(url), key)


def first_page(url: str) -> str:
    with urllib.request.urlopen(f"{url}/v1/studies", timeout=10) as answer:
        return f"/studies/{json.loads(answer.read())[0]['study']}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def test_an_answer_by_keyboard_alone_leaves_as_41_bytes_and_again_as_the_same(
    collector: Collector, browser: Any
) -> None:
    watched = Watched(browser)
    page = watched.page
    page.goto(f"{collector.url}{collector.page}/survey")
    page.wait_for_selector("#send:enabled")
    assert page.inner_text("#question") == "How old are you?"
    before = page.inner_text("#bytes")
    assert before.count("drawn when you answer") == 4
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    page.keyboard.type("not a number")
    page.keyboard.press("Enter")
    assert page.inner_text("#told") == "Please give one number; nothing has left this device."
    assert page.evaluate("document.activeElement.id") == "value"
    page.keyboard.press("Control+A")
    page.keyboard.type("73.4921")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "group"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("#told")).to_contain_text("Thank you")
    assert page.evaluate("document.activeElement.id") == "told"
    shown = bytes.fromhex("".join(page.locator("td.bytes").all_inner_texts()))
    page.reload()
    page.wait_for_selector("#send:enabled")
    assert page.locator("#value").is_hidden()
    page.click("#send")
    expect(page.locator("#told")).to_contain_text("Thank you")
    sent = [each.post_data_buffer for each in watched.requests if each.method == "POST"]
    assert sent == [shown, shown]
    assert len(shown) == 41
    assert shown[:16].hex() == collector.page.rpartition("/")[2]
    assert shown[36:38] == b"\x00\x01"
    for each in watched.requests:
        assert "73" not in each.url.partition("?")[2]
    assert collector.get(f"/v1{collector.page}")["reports"] == 1
    watched.check(collector.url)


def test_a_browser_with_a_lower_limit_refuses(collector: Collector, browser: Any) -> None:
    watched = Watched(browser)
    watched.page.goto(f"{collector.url}{collector.page}/survey")
    watched.page.wait_for_selector("#send:enabled")
    watched.page.click("summary")
    watched.page.fill("#cap", "0.5")
    watched.page.press("#cap", "Tab")
    watched.page.wait_for_selector("#send:disabled")
    assert "more than the limit of this browser, 0.5; nothing was answered" in watched.page.inner_text("#told")
    assert not [each for each in watched.requests if each.method == "POST"]
    watched.check(collector.url)


def test_the_dashboard_moves_while_devices_answer(collector: Collector, browser: Any, tmp_path: Path) -> None:
    watched = Watched(browser)
    page = watched.page
    page.goto(collector.url + collector.page)
    page.wait_for_selector("#rows tr")
    assert page.locator("#rows td").first.inner_text() == "none yet"
    reports = int(collector.get(f"/v1{collector.page}")["reports"])
    for k in range(3):
        assert Device(tmp_path / str(k), cap=1.0).answer(f"{collector.url}/v1{collector.page}", 40 + k, "a").accepted
    expect(page.locator("#facts dd").first).to_have_text(f"{reports + 3}")
    told = collector.until_known()
    page.wait_for_selector("#chart .trace", state="attached")
    cells = page.locator("#rows tr").first.locator("td")
    expect(cells.nth(3)).to_have_text(str(told["rounds"]))
    expect(cells.first).to_have_text(f"{told['estimate']:.5g}")
    expect(cells.nth(1)).to_have_text(f"{told['interval'][0]:.5g} to {told['interval'][1]:.5g}")
    watched.check(collector.url)


def test_whoever_runs_a_study_pauses_opens_and_closes_it(collector: Collector, browser: Any) -> None:
    given = {"name": "short", "people": 2000, "quantile": {"tau": 0.5, "epsilon": 2.0, "method": "certified"}}
    allowed = {"authorization": f"Bearer {collector.key}"}
    asked = urllib.request.Request(f"{collector.url}/v1/studies", data=json.dumps(given).encode(), headers=allowed)
    with urllib.request.urlopen(asked, timeout=10) as answer:
        path = f"/studies/{json.loads(answer.read())['study']}"
    watched = Watched(browser)
    page = watched.page
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(collector.url + path)
    page.wait_for_selector("#rows tr")
    assert page.locator("#rows td").nth(1).inner_text() == "after the last round"
    page.click("summary")
    page.fill("#key", collector.key)
    for button, state in (("Pause", "paused"), ("Open", "open"), ("Close for good", "closed")):
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.locator("#state")).to_have_text(state)
        assert collector.get(f"/v1{path}")["state"] == state
    expect(page.locator("#rows td").first).to_have_text("none: the study was closed before")
    watched.check(collector.url)


def test_the_wizard_says_what_comes_and_starts_it(collector: Collector, browser: Any) -> None:
    watched = Watched(browser)
    page = watched.page
    page.goto(f"{collector.url}/new")
    expect(page.locator("#refused")).to_contain_text("Type the admin key")
    page.fill("#key", collector.key)
    page.fill("#tau", "0.999")
    expect(page.locator("#refused")).to_contain_text("quantile needs about")
    assert page.locator("#start").is_disabled()
    for name, text in (("name", "wait, \"today\""), ("tau", "0.9"), ("people", "40,000"), ("groups", "x, y"),
                       ("bounds-low", "0"), ("bounds-high", "240"), ("resolution", "1"), ("grace", "0.5")):  # fmt: skip
        page.fill(f"#{name}", text)
    page.check("[value=staged]")
    page.wait_for_selector("#start:enabled")
    rounds = {"deadline": 3600, "grace": 0.5}
    terms = {"tau": 0.9, "epsilon": 1, "level": 0.95, "method": "staged", "bounds": [0, 240], "resolution": 1}
    given = {"name": 'wait, "today"', "groups": ["x", "y"], "people": 40000, "quantile": terms, "rounds": rounds}
    plan = planned(given)
    expect(page.locator("#toml")).to_have_text(plan["toml"])
    assert plan["expected"][0]["text"] in page.inner_text("#reach")
    assert f"about {float(format(plan['expected'][0]['width'], '.2g')):g}" in page.inner_text("#plan")
    page.click("#start")
    page.wait_for_url("**/studies/*")
    expect(page.locator("h1")).to_have_text('wait, "today"')
    assert [each["name"] for each in collector.get("/v1/studies")][-1] == 'wait, "today"'
    page.get_by_role("link", name="Studies").click()
    page.get_by_role("link", name='wait, "today"').wait_for()
    watched.check(collector.url)


@pytest.mark.parametrize("size", SIZES, ids=("phone", "dark"))
def test_every_page_is_accessible_and_fits(collector: Collector, browser: Any, size: dict[str, Any]) -> None:
    collector.until_known()
    watched = Watched(browser, **size)
    for path, there in (
        ("/", "#studies li"),
        ("/new", "#refused"),
        (collector.page, "#chart .trace"),
        (f"{collector.page}/survey", "#bytes tr"),
    ):
        watched.page.goto(collector.url + path)
        watched.page.wait_for_selector(there, state="attached")
        for details in watched.page.locator("summary").all():
            details.click()
        if path == "/new":
            watched.page.fill("#key", collector.key)
            watched.page.wait_for_selector("#plan div")
        assert violations(watched.page) == []
        assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    watched.check(collector.url)


def test_an_open_end_goes_to_the_edge_and_is_said(collector: Collector, browser: Any) -> None:
    watched = Watched(browser)
    watched.page.goto(f"{collector.url}/new")
    found = watched.page.evaluate("""async () => {
      const { estimatesOf, interval, rangeOf, tracesOf } = await import("/chart.js");
      const way = [{ reports: 5, estimate: 4, interval: [1, null] }, { reports: 9, estimate: 4, interval: [3, 6] }];
      const ways = new Map([["a <b> $c$", way]]);
      const range = rangeOf(ways, null);
      const levels = estimatesOf({ levels: [{ tau: 0.5, estimate: 1, interval: null }] });
      const fitted = [{ name: "age", estimate: 1, interval: [0, 2] }];
      const coefficients = estimatesOf({ levels: [{ tau: 0.5, coefficients: fitted }] });
      const words = [[1, null], [null, 2], [null, null], [1000, 2000.5]].map(interval);
      return { range, traces: tracesOf(ways, range, false), words, labels: [levels[0].label, coefficients[0].label] };
    }""")
    low, high = found["range"]
    assert low < 3 < 6 < high
    assert found["traces"][2]["name"] == "a &lt;b> &#36;c&#36;"
    upper = found["traces"][0]["y"]
    assert upper[0] > high
    assert upper[1] == 6
    assert found["words"] == [
        "from 1, upper end open", "up to 2, lower end open", "both ends open", "1,000 to 2,000.5",
    ]  # fmt: skip
    assert found["labels"] == ["0.5", "age, 0.5"]
    watched.check(collector.url)


def test_a_collector_without_studies_says_what_to_do(browser: Any, tmp_path: Path) -> None:
    with collecting("--log", str(tmp_path / "empty.log")) as url:
        watched = Watched(browser)
        watched.page.goto(url)
        expect(watched.page.locator("#told")).to_contain_text("There is no study")
        assert watched.page.inner_text("#told").count(".") == 1
        watched.check(url)


def test_where_results_are_for_readers_people_answer_with_a_token_and_no_password(browser: Any, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(f"{STUDY}[devices]\ntokens = true\n")
    key = add_key(f"{study}.log", "you", "reader")
    with collecting(str(study), "--readers-only") as url:
        (token,) = issue_tokens(str(study), None, "a", 1)
        watched = Watched(browser)
        watched.page.goto(f"{url}{first_page(url)}/survey#{token}")
        watched.page.wait_for_selector("#send:enabled")
        watched.page.fill("#value", "40")
        watched.page.press("#value", "Enter")
        expect(watched.page.locator("#told")).to_contain_text("Thank you")
        assert watched.page.locator("td.bytes").nth(1).inner_text() == token
        watched.check(url)
        reader = Watched(browser, http_credentials={"username": "anyone", "password": key})
        reader.page.goto(url + first_page(url))
        expect(reader.page.locator("#facts dd").first).to_have_text("1")
        expect(reader.page.locator("#told")).to_have_text("This page follows every round.")
        reader.context.close()


def test_a_row_of_a_regression_leaves_as_41_bytes(browser: Any, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(REGRESSION)
    with collecting(str(study)) as url:
        watched = Watched(browser)
        page = watched.page
        page.goto(f"{url}{first_page(url)}/survey")
        page.wait_for_selector("#send:enabled")
        page.get_by_label("How long did you wait? (wait)").fill("31")
        page.get_by_label("age", exact=True).press("Enter")
        assert page.inner_text("#told") == "Please give a number in each field; nothing has left this device."
        page.get_by_label("age", exact=True).fill("44")
        assert violations(page) == []
        page.click("#send")
        expect(page.locator("#told")).to_contain_text("Thank you")
        shown = bytes.fromhex("".join(page.locator("td.bytes").all_inner_texts()))
        assert [each.post_data_buffer for each in watched.requests if each.method == "POST"] == [shown]
        page.goto(url + first_page(url))
        expect(page.locator("#columns")).to_contain_text("Coefficient, quantile")
        expect(page.locator("#facts dd").first).to_have_text("1")
        watched.check(url)
