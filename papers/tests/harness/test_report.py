"""The report: one file that needs no other, says everything that was found, and takes no word for markup."""

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sottovoce_papers.harness import catalogue, draw, report, report_item, study
from sottovoce_papers.harness.study import Outcome

VOID = {"meta", "img", "br"}


@pytest.fixture
def outcomes(papers: Path, tmp_path: Path) -> list[Outcome]:
    return study.reproduce(catalogue.items(papers.parent), tmp_path / "cells", replications=40)


@pytest.fixture
def page(outcomes: list[Outcome]) -> str:
    return report.page(outcomes, report.Run(1, "40 replications of each cell", {("coin-tossing", "table-1"): 75.0}))


class Balanced(HTMLParser):
    """Checks that every element is closed by its own end, and keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.ids |= {str(value) for name, value in attrs if name == "id"}
        self.links |= {str(value) for name, value in attrs if name == "href"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Balanced:
    parsed = Balanced()
    parsed.feed(page)
    assert parsed.open == []
    return parsed


def test_the_page_needs_nothing_from_elsewhere(page: str) -> None:
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)
    sources = re.findall(r'src="([^"]{0,30})', page)
    assert len(sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert read(page).links <= {f"#{name}" for name in read(page).ids}


def test_pictures_are_pictures_with_a_text_for_whoever_does_not_see_them(page: str) -> None:
    for inside, words in re.findall(r'<img src="data:image/png;base64,([^"]*)"[^>]* alt="([^"]*)"', page):
        assert base64.b64decode(inside).startswith(b"\x89PNG")
        assert len(words) > 20


def test_words_are_not_markup(page: str) -> None:
    assert "<b>tossed" not in page
    assert "<twice>" not in page
    text = "".join(read(page).text)
    assert "Table 1. Coins <b>tossed</b>" in text
    assert "The print's coin was bent <twice>." in text
    assert "faces & edges" in text


def test_the_page_says_what_was_found(page: str) -> None:
    text = "".join(read(page).text)
    assert "agree: 1 of 1 comparable numbers" in text
    assert "1 min 15 s of computing" in text
    assert "seed 1" in text
    assert "Not run: needs the data set coins" in text
    assert "fixed (held against the print): the same coin" in text
    assert len(re.findall(r'<td class="[^"]*known"', page)) == 1
    assert not re.search(r'<td class="[^"]*off', page)
    assert len(re.findall(r'<th scope="col" class="default"', page)) == 3  # two quantities of table-1, one of figure-1


def test_the_table_has_a_row_for_the_print_and_for_each_reading(page: str) -> None:
    table = page.partition("<table style")[2].partition("</table>")[0]
    assert re.findall(r'<th class="which" scope="row">(\w+)', table) == ["print", "fixed", "fresh"] * 2
    assert table.count("<tbody>") == 2
    widths = {len(re.findall(r"<td", row)) for row in re.findall(r"<tr.*?</tr>", table.partition("</thead>")[2])}
    assert widths == {5}  # heads: tossed, other, default; length: tossed, default


def test_a_paper_is_called_as_its_readme_calls_it(papers: Path, outcomes: list[Outcome]) -> None:
    item = outcomes[0].item
    assert report.paper_title(item) == "Coin tossing"
    (papers / "README.md").write_text("# On `coins` & faces\n\nText.\n")
    assert report.paper_title(item) == "On coins & faces"


def test_without_matplotlib_the_page_says_what_pictures_need(
    outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw, "available", lambda: False)
    page = report.page(outcomes, report.Run(1, "few", {}))
    assert "<img" not in page
    assert "Pictures need matplotlib" in page


def test_a_picture_that_fails_costs_only_itself(outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Outcome) -> None:
        raise KeyError("n")

    monkeypatch.setattr(draw, "draw", broken)
    said = report_item.section(outcomes[0], 1.0, pictures=True)
    assert "could not be drawn: KeyError" in said
    assert "<table" in said
