"""The words of `sottovoce reproduce`: what is refused before anything is run, and what there is."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce_papers.harness import catalogue


def asked(*words: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", *words], env={"SOTTOVOCE_DATA": ""})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--scale", "medium"), "--scale is 'medium'; choose small or full."),
        (("--replications", "1"), "--replications is 1; give 2 or more."),
        (("--replications", "many"), "--replications is 'many', which is not a whole number; correct it."),
        (("--jobs", "0"), "--jobs is 0; give 1 or more."),
        (("--seed", "-1"), "--seed is -1; give 0 or more."),
        (("--scale", "full", "--replications", "5"), "--scale and --replications both say how often cells are run"),
        (("--data", "no/such/folder"), "there is no folder no/such/folder of data sets"),
        (("newton",), "paper 'newton' is not one of the papers here"),
    ],
)
def test_bad_options_end_with_one_sentence(
    words: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = asked(*words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"sottovoce: {sentence}")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_every_item_of_the_checkout_is_listed() -> None:
    done = asked("--list")
    assert done.exit_code == 0
    items = catalogue.items(catalogue.papers_folder())
    papers = {item.paper for item in items}
    assert len(done.stdout.splitlines()) == 2 + len(papers) + len(items)
    assert all(f"  {item.name} " in done.stdout for item in items)
