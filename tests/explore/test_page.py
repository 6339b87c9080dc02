"""The page in a real browser, over the command in a process of its own: choose, slide, ask, see, save, end."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.browsing import SIZES, Watched, chromium, expect, violations
from tests.explore.conftest import MARKS, write_file

import sottovoce as sv


class Exploring(NamedTuple):
    """The command as it runs, and the address that it printed."""

    process: Any
    url: str

    @property
    def origin(self) -> str:
        return self.url.partition("/#")[0]

    def ended(self) -> tuple[int, str, str]:
        """Press Ctrl-C where it still runs; return its code, and what it said in the end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@contextmanager
def exploring(*words: str) -> Iterator[Exploring]:
    line = [sys.executable, "-m", "sottovoce", "explore", *words, "--no-browser"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/#[0-9a-f]{64}", process.stderr.readline())
            assert found is not None
            yield Exploring(process, found[0])
        finally:
            process.kill()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_file(tmp_path_factory.mktemp("page") / "marked.csv"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


class Visit(Watched):
    """A visit to the page, by the address that the command printed."""

    def __init__(self, browser: Any, run: Exploring, **settings: Any) -> None:
        super().__init__(browser, **settings)
        self.run = run
        self.page.goto(run.url)
        self.page.wait_for_selector("#form:not([hidden])")

    def choose(self, value: str = "wait", site: str = "clinic") -> None:
        self.page.select_option("#value", value)
        self.page.select_option("#site", site)
        self.page.check("[value=certified]")

    def ask(self, number: int) -> None:
        """Ask the question that stands there, and wait for the answer of this number."""
        self.page.wait_for_selector("#ask:enabled")
        self.page.click("#ask")
        expect(self.page.locator("#answered")).to_have_text(f"Answer {number}")

    def posted(self, path: str) -> int:
        return sum(each.method == "POST" and each.url.endswith(path) for each in self.requests)

    def leave(self) -> None:
        """No address showed the token, no record is shown, nothing left for another host, and the console is silent."""
        token = self.run.url.partition("#")[2]
        assert token not in self.page.url
        assert not [each for each in self.requests if token in each.url.partition("#")[0]]
        text = self.page.content()
        assert not [mark for mark in MARKS if mark in text]
        self.check(self.run.origin)


def test_choose_slide_see_the_plan_ask_and_see_the_answer(path: str, browser: Any, tmp_path: Path) -> None:
    with exploring(path, "--limit", "9") as run:
        visit = Visit(browser, run, accept_downloads=True)
        page = visit.page
        expect(page.locator("#file")).to_have_text("marked.csv")
        expect(page.locator("#refused")).to_contain_text("Choose a column")
        assert page.locator("#ask").is_disabled()
        visit.choose()
        expect(page.locator("#widths")).to_contain_text("From about the 4")
        expect(page.locator("#value-hint")).to_contain_text("160 missing ones are left out")
        page.locator(".tau [type=range]").fill("0.75")
        expect(page.locator(".tau .hint")).to_have_text("The upper quartile: 75 % of the values lie below it.")
        expect(page.locator(".tau [inputmode]")).to_have_value("0.75")
        page.locator("#epsilon-slide").fill("80")
        expect(page.locator("#epsilon")).to_have_value("4")
        expect(page.locator("#epsilon-hint")).to_contain_text("about 98 of 100 do")
        expect(page.locator("#epsilon-hint")).to_contain_text("here 55")
        page.check("[value=sd]")
        page.fill("#sd", "14")
        width = sv.plan(epsilon=4, people=7840, tau=0.75, sd=14, method="certified").width
        expect(page.locator("#widths .big")).to_have_text(f"About {width:.2g} wide")
        expect(page.locator("#facts")).to_contain_text("7,840")
        expect(page.locator("#cost")).to_have_text(
            "These rows have paid nothing so far; this question costs epsilon 4, of at most 9."
        )
        assert visit.posted("/v1/runs") == 0
        visit.ask(1)
        with page.expect_download() as saved:
            page.click("#save-result")
        saved.value.save_as(tmp_path / "result.json")
        result = sv.load(tmp_path / "result.json")
        low, high = map(result.format, result.interval)
        expect(page.locator("#said")).to_have_text(
            f"The 0.75 quantile of wait is about {result.format(result.estimate)}. "
            f"With 95 % confidence it lies between {low} and {high}."
        )
        expect(page.locator("#numbers td").nth(1)).to_have_text(f"{low} to {high}")
        expect(page.locator("#numbers td").nth(3)).to_have_text(f"{width:.2g}")
        expect(page.locator("#promise")).to_contain_text("randomised before it left its site")
        assert (
            page.locator("#picture svg").get_attribute("aria-label")
            == f"0.75 quantile: {result.format(result.estimate)}, {low} to {high}"
        )
        assert page.locator("#picture .planned").count() == page.locator("#picture .obtained").count() == 1
        with page.expect_download() as saved:
            page.click("#save-report")
        assert saved.value.suggested_filename == "marked-wait-1.html"
        saved.value.save_as(tmp_path / "report.html")
        assert "Privacy statement" in (tmp_path / "report.html").read_text()
        expect(page.locator("#warnings")).to_contain_text("Question 1 of this session was the same")
        visit.leave()
        code, out, err = run.ended()
        assert (code, out) == (0, f"{result.headline}\n")
        assert err == "sottovoce: 1 question was answered; a row has paid up to epsilon 4 in all\n"


def test_costs_add_up_over_columns_until_the_limit(path: str, browser: Any) -> None:
    with exploring(path, "--limit", "3") as run:
        visit = Visit(browser, run)
        page = visit.page
        visit.choose()
        page.fill("#epsilon", "2")
        visit.ask(1)
        visit.choose("age", "")
        expect(page.locator("#cost")).to_contain_text(
            "would have cost epsilon 4 in all, of which 2 is spent already, and the limit is 3"
        )
        assert page.locator("#ask").is_disabled()
        page.fill("#epsilon", "1")
        expect(page.locator("#cost")).to_have_text(
            "These rows have paid epsilon 2 so far; this question makes it 3, of at most 3."
        )
        visit.ask(2)
        expect(page.locator("#spent")).to_contain_text("has paid epsilon 3 in all; the limit is 3")
        assert page.locator("#runs tr").count() == 2
        page.get_by_role("button", name="0.5 quantile of wait by clinic").click()
        expect(page.locator("#answered")).to_have_text("Answer 1")
        assert page.evaluate("document.activeElement.id") == "answered"
        visit.leave()


def test_two_clicks_and_a_reload_ask_once(path: str, browser: Any) -> None:
    with exploring(path) as run:
        visit = Visit(browser, run)
        page = visit.page
        visit.choose()
        page.wait_for_selector("#ask:enabled")
        page.evaluate("() => { const ask = document.getElementById('ask'); ask.click(); ask.click(); }")
        page.reload()
        expect(page.locator("#answered")).to_have_text("Answer 1")
        assert visit.posted("/v1/runs") == 1
        assert page.locator("#runs tr").count() == 1
        expect(page.locator("#spent")).to_contain_text("has paid epsilon 1 in all")
        assert page.input_value("#value") == "wait"
        assert page.input_value("#site") == "clinic"
        visit.leave()


def test_several_quantiles_one_site_and_a_sequence(path: str, browser: Any) -> None:
    with exploring(path) as run:
        visit = Visit(browser, run)
        page = visit.page
        visit.choose()
        page.select_option("#only", "north")
        expect(page.locator("#facts")).to_contain_text("5,2")
        for _ in range(4):
            page.click("#add")
        assert page.locator(".tau").count() == 5
        assert page.locator("#add").is_hidden()
        assert page.locator("[value=sequence]").is_disabled()
        for _ in range(3):
            page.locator(".tau button").last.click()
        page.fill("#epsilon", "4")
        expect(page.locator("#widths li")).to_have_count(2)
        visit.ask(1)
        assert [page.locator("#numbers th").nth(k).inner_text() for k in (0, 1)] == ["0.5", "0.9"]
        expect(page.locator("#said")).to_contain_text("all of them together")
        page.locator(".tau button").last.click()
        page.check("[value=sequence]")
        page.fill("#epsilon", "2")
        visit.ask(2)
        expect(page.locator("#assumptions")).to_contain_text("Nothing is assumed of the distribution")
        visit.leave()


def test_dates_have_no_axis_and_widths_in_days(path: str, browser: Any) -> None:
    with exploring(path) as run:
        visit = Visit(browser, run)
        page = visit.page
        visit.choose("day", "")
        assert page.locator("#resolution-of").is_hidden()
        assert page.locator("#kind-of").is_hidden()
        page.check("[value=bounds]")
        expect(page.locator("#refused")).to_contain_text("Fill in what everybody knows")
        page.fill("#low", "2013-01-01")
        page.fill("#high", "2013-12-31")
        expect(page.locator("#widths .big")).to_contain_text("days wide")
        visit.ask(1)
        expect(page.locator("#said")).to_contain_text("With 95 % confidence it lies between 2013-0")
        assert page.locator("#picture .soft").count() == 0
        visit.leave()


def test_what_is_wrong_is_one_sentence(path: str, browser: Any) -> None:
    with exploring(path) as run:
        visit = Visit(browser, run)
        page = visit.page
        visit.choose("wait", "age")
        expect(page.locator("#refused")).to_have_text(
            "Column 'age' holds more than 30 different numbers, as records do; "
            "choose the column that says where a record is held."
        )
        page.select_option("#site", "clinic")
        page.fill(".tau [inputmode]", "0.9999")
        expect(page.locator("#refused")).to_contain_text("The 0.9999 quantile needs about")
        page.fill(".tau [inputmode]", "2")
        expect(page.locator("#refused")).to_have_text("A quantile lies between 0 and 1: correct its number.")
        page.fill(".tau [inputmode]", "0,5")
        page.fill("#epsilon", "0,8")
        expect(page.locator("#ask")).to_have_text("Ask 7,840 records at epsilon 0.8")
        page.fill("#epsilon", "50")
        expect(page.locator("#refused")).to_contain_text("Epsilon must lie above 0 and be at most 20")
        assert page.locator("#ask").is_disabled()
        visit.said.clear()
        visit.leave()


def test_by_keyboard_alone(path: str, browser: Any) -> None:
    with exploring(path) as run:
        visit = Visit(browser, run)
        page = visit.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        for _ in range(2):
            page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "value"
        page.keyboard.type("wait")
        expect(page.locator("#plan")).to_be_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        before = page.input_value(".tau [inputmode]")
        page.keyboard.press("ArrowRight")
        assert page.input_value(".tau [inputmode]") != before
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Tab")
        page.wait_for_selector("#ask:enabled")
        page.keyboard.press("Enter")  # in a field it asks nobody
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "ask":
                break
        assert visit.posted("/v1/runs") == 0
        page.keyboard.press("Enter")
        expect(page.locator("#answered")).to_have_text("Answer 1")
        assert visit.posted("/v1/runs") == 1
        assert page.evaluate("document.activeElement.id") == "answered"
        visit.leave()


def test_the_address_lets_one_page_in_and_the_page_ends_the_program(path: str, browser: Any) -> None:
    with exploring(path) as run:
        visit = Visit(browser, run)
        other = browser.new_context()
        stranger = other.new_page()
        stranger.goto(run.url)
        expect(stranger.locator("#told")).to_contain_text(
            "This address was used already; the terminal shows a fresh one."
        )
        assert stranger.locator("#form").is_hidden()
        assert "marked" not in stranger.content()
        fresh = re.search(r"http\S+", run.process.stderr.readline())
        assert fresh is not None
        stranger.goto("about:blank")
        stranger.goto(fresh[0])
        expect(stranger.locator("#file")).to_have_text("marked.csv")
        stranger.goto(run.origin)
        expect(stranger.locator("#file")).to_have_text("marked.csv")
        other.close()
        blank = browser.new_context()
        nobody = blank.new_page()
        nobody.goto(run.origin)
        expect(nobody.locator("#told")).to_have_text("Open the address that the terminal shows: it lets one page in.")
        blank.close()
        visit.page.on("dialog", lambda dialog: dialog.accept())
        visit.page.click("#end")
        expect(visit.page.locator("#told")).to_contain_text("The program has ended")
        visit.leave()
        run.process.wait(20)
        assert run.ended()[0] == 0


@pytest.mark.parametrize("size", SIZES, ids=("phone", "dark"))
def test_it_is_accessible_and_fits(path: str, browser: Any, size: dict[str, Any]) -> None:
    with exploring(path, "--limit", "5") as run:
        visit = Visit(browser, run, **size)
        page = visit.page
        assert violations(page) == []
        visit.choose()
        page.click("#add")
        page.check("[value=sd]")
        page.fill("#sd", "14")
        page.fill("#epsilon", "3")
        visit.ask(1)
        for details in page.locator("summary").all():
            details.click()
        expect(page.locator("#cost")).to_contain_text("would have cost")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        visit.leave()


def test_what_the_pictures_are_made_of(path: str, browser: Any) -> None:
    with exploring(path) as run:
        visit = Visit(browser, run)
        found = visit.page.evaluate("""async () => {
          const { intervalOf, pictureOf, rangeOf, ticksOf } = await import("/picture.js");
          const { reach, costInWords } = await import("/plan.js");
          const { epsilonInWords } = await import("/controls.js");
          const text = (low, high) => ({ estimate: "5", low: `${low}`, high: `${high}` });
          const ends = (low, high) => ({ of: 0.5, estimate: 5, low, high, text: text(low, high) });
          const all = [ends(4, 6), ends(null, 6), ends(4, null), ends(null, null), ends(5, 5)];
          const widths = all.map((_, k) => ({ width: k ? null : 8 }));
          const run = { plan: { kind: "number", widths }, result: { estimates: all } };
          const levels = [[0.4, 0.6], [0, 0.6], [0.4, 1], [0, 1], [0.4991, 0.5009]];
          const svg = pictureOf(run, 600);
          return {
            words: all.map(intervalOf), range: rangeOf([ends(4, 6)], [{ width: 8 }]), ticks: ticksOf([-1, 11], 5),
            frames: svg.querySelectorAll(".planned").length, bars: svg.querySelectorAll(".obtained").length,
            reach: levels.map(([low, high]) => reach({ low, high })),
            cost: costInWords({ before: 1, after: 2, limit: null }), odds: epsilonInWords(1),
          };
        }""")
        assert found["words"] == [
            "4 to 6",
            "up to 6, lower end open",
            "from 4, upper end open",
            "both ends open",
            "exactly 5",
        ]
        assert found["range"] == pytest.approx([1 - 0.96, 9 + 0.96])
        assert found["ticks"] == [0, 5, 10]
        assert (found["frames"], found["bars"]) == (1, 5)
        assert found["reach"] == [
            "From about the 40 % point to the 60 % point of the values.",
            "Up to about the 60 % point of the values; the lower end may stay open.",
            "From about the 40 % point of the values on; the upper end may stay open.",
            "Both ends may stay open: nothing is sure to be known.",
            "From about the 49.91 % point to the 50.09 % point of the values.",
        ]
        assert found["cost"] == "These rows have paid epsilon 1 so far; this question makes it 2; no limit is set."
        assert "about 73 of 100 do" in found["odds"]
        assert "exp(epsilon), here 2.7" in found["odds"]
        visit.leave()


def test_hints_are_said_in_the_terminal_alone(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "ties.csv"
    path.write_text("price\n" + "".join(f"{k % 40 / 4}\n" for k in range(8000)))
    with exploring(str(path)) as run:
        visit = Visit(browser, run)
        visit.page.select_option("#value", "price")
        expect(visit.page.locator("#plan")).to_be_visible()
        assert "tied" not in visit.page.locator("#plan").inner_text()
        visit.leave()
        assert "hint, for you alone: column price: many records are tied" in run.ended()[2]


def test_names_of_columns_are_texts(browser: Any, tmp_path: Path) -> None:
    names = ["a<img src=x onerror=alert(1)>", "b&amp;\"'", "c" * 150]
    path = tmp_path / "x<b>.csv"
    path.write_text(
        ",".join('"' + name.replace('"', '""') + '"' for name in names)
        + "\n"
        + "".join(f"{k},{k % 7},{'<i>x' if k % 2 else 'y'}\n" for k in range(4000))
    )
    with exploring(str(path)) as run:
        visit = Visit(browser, run, viewport={"width": 375, "height": 700})
        page = visit.page
        page.on("dialog", lambda dialog: visit.said.append(dialog.message))
        visit.choose(names[0], names[2])
        visit.ask(1)
        page.click("#columns-of summary")
        assert page.locator("#columns th").all_inner_texts() == names
        assert page.locator("#file").inner_text() == "x<b>.csv"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        visit.leave()
        assert json.dumps(names[0]) not in run.ended()[2]


def test_categories_need_no_guess_and_have_no_axis(browser: Any, tmp_path: Path) -> None:
    grades = pa.DictionaryArray.from_arrays([k % 4 for k in range(8000)], ["E", "D", "C", "A"], ordered=True)
    pq.write_table(pa.table({"grade": grades, "wait": [k / 7 for k in range(8000)]}), tmp_path / "grades.parquet")
    with exploring(str(tmp_path / "grades.parquet")) as run:
        visit = Visit(browser, run)
        page = visit.page
        visit.choose("wait", "")
        page.check("[value=sd]")
        page.fill("#sd", "300")
        page.select_option("#value", "grade")
        assert page.locator("#known-of").is_hidden()
        page.locator(".tau [type=range]").fill("0.6")
        page.fill("#epsilon", "4")
        visit.ask(1)
        expect(page.locator("#said")).to_contain_text("The 0.6 quantile of grade is about C.")
        assert page.locator("#picture .soft").count() == 0
        assert violations(page) == []
        visit.leave()
