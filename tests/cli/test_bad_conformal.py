"""`sottovoce conformal`: whatever is wrong costs one sentence and no site its message."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
from sottovoce.core.random_source import SystemEntropy

PRIVATE = ("--epsilon", "2", "--maximum", "5")
MECHANISMS = ("sparse-vector", "local", "aggregate")
CONDITIONAL = ("--guarantee", "training-conditional")
Conformal = Callable[..., Any]


def sentence(done: Any) -> str:
    """Return the one sentence on stderr, having checked that it is one and that nothing else was said."""
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("sottovoce: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


@pytest.fixture(autouse=True)
def no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("a site answered before all input was checked")

    for home in (CalibrationSite, SharingSite, CoverageSite):
        monkeypatch.setattr(home, "answer", spend)
    monkeypatch.setattr(SystemEntropy, "words", spend)


@pytest.mark.parametrize("words", [(), *((*PRIVATE, "--bins", "4", "--mechanism", name) for name in MECHANISMS)])
def test_the_guard_would_notice_an_answer(conformal: Conformal, score_files: Path, words: tuple[str, ...]) -> None:
    assert isinstance(conformal(score_files, *words).exception, AssertionError)


BAD_OPTIONS = {
    ("--score", "error"): "has no column 'error'",
    ("--score", "word"): "'word'",
    ("--site", "clinic"): "has no column 'clinic'",
    ("--person", "whose"): "has no column 'whose'",
    ("--alpha", "0"): "alpha must lie strictly between 0 and 1",
    ("--alpha", "1.5"): "alpha must lie strictly between 0 and 1",
    ("--alpha", "nan"): "not nan",
    ("--alpha", "few"): "--alpha is 'few', which is not a number; give 0.1",
    ("--alpha", "0.001"): "no finite set can cover 0.999 from 140 scores in all; at least 999 are needed",
    (*CONDITIONAL, "--alpha", "0.01"): "at least 230 are needed",
    ("--guarantee", "always"): "guarantee must be 'marginal' or 'training-conditional', not 'always'",
    ("--delta", "0.2"): "--delta belongs to --guarantee training-conditional",
    (*CONDITIONAL, "--delta", "2"): "delta must lie strictly between 0 and 1",
    (*CONDITIONAL, "--delta", "x"): "--delta is 'x'",
    (*CONDITIONAL, "--exact"): "leave --exact out",
    ("--rule", "mine"): "rule must be 'closest' or 'paper', not 'mine'",
    ("--statistics", "0"): "statistics must be between 1 and 5",
    ("--statistics", "1.5"): "--statistics is '1.5', which is not a whole number",
    ("--statistics", "3", "--rule", "paper"): "one statistic a site",
    ("--statistics", "3", *PRIVATE): "--statistics 3 would have a private site answer 3 times",
    ("--exact", *PRIVATE): "leave --exact out",
    ("--epsilon", "1"): "a public maximum of the scores is needed, chosen without a look at them; give --maximum",
    ("--epsilon", "1", "--maximum", "much"): "--maximum is 'much', which is not a number",
    ("--epsilon", "1", "--maximum", "inf"): "maximum must be finite",
    ("--epsilon", "1", "--maximum", "nan"): "maximum must be a number, not nan",
    ("--epsilon", "1", "--maximum", "1e999"): "--maximum is '1e999', which is beyond any number",
    (*PRIVATE, "--minimum", "5"): "above the minimum 5",
    (*PRIVATE, "--minimum", "-inf"): "finite and above the minimum -inf",
    (*PRIVATE, "--bins", "0"): "bins must be between 1 and",
    (*PRIVATE, "--bins", "many"): "--bins is 'many'",
    (*PRIVATE, "--grid", "1,2"): "grid gives all edges",
    ("--epsilon", "1", "--grid", "1,2", "--minimum", "-1"): "grid gives all edges",
    ("--epsilon", "1", "--grid", "2,1"): "each larger than the one before",
    ("--epsilon", "1", "--grid", "1,nan"): "finite edges",
    ("--epsilon", "1", "--grid", "1,,2"): "an edge of --grid is ''",
    ("--epsilon", "1", "--grid", "@absent.csv"): "--grid names the file absent.csv, which cannot be read",
    ("--maximum", "5"): "maximum belongs to a private study, and epsilon is not given",
    ("--minimum", "-1"): "minimum belongs to a private study",
    ("--bins", "20"): "bins belongs to a private study",
    ("--grid", "1,2"): "grid belongs to a private study",
    ("--mechanism", "local"): "mechanism 'local' is for privacy, and epsilon is not given",
    (*PRIVATE, "--mechanism", "noise"): "not 'noise'; choose one",
    (*PRIVATE, "--mechanism", "paper"): "needs sites of one size with one budget",
    (*PRIVATE, "--mechanism", "aggregate", "--rule", "paper"): "mechanism 'aggregate' has one rule of its own",
    ("--epsilon", "0", "--maximum", "5"): "epsilon must be positive",
    ("--epsilon", "inf", "--maximum", "5"): "epsilon is infinite everywhere",
    ("--epsilon", "north=1", "--maximum", "5"): "says nothing of site 'east'",
    ("--epsilon", "north=1,east=1,south=1,west=1", "--maximum", "5"): "names 'west', which is not a site",
    ("--epsilon", "little", "--maximum", "5"): "--epsilon is 'little'",
    ("--test", "fresh.csv"): "--test is about the coverage by site; add --coverage",
    ("--coverage-epsilon", "1"): "--coverage-epsilon is about the coverage by site",
    ("--weights", "records"): "--weights is about the coverage by site",
    ("--level", "0.9"): "--level is about the coverage by site",
    ("--coverage", "--test"): "--test names no file",
    ("--coverage", "--test", "--level", "0.9"): "--test names no file",
    ("--coverage", "--test", "absent.csv"): "there is no file absent.csv",
    ("--coverage", "--coverage-epsilon", "0"): "--coverage-epsilon 0.0 makes no noisy count",
    ("--coverage", "--coverage-epsilon", "inf"): "give a finite budget",
    ("--coverage", "--coverage-epsilon", "north=1"): "--coverage-epsilon says nothing of site 'east'",
    ("--coverage", "--coverage-epsilon", "some"): "--coverage-epsilon is 'some'",
    ("--coverage", "--weights", "half"): "weights must be 'sites', 'records'",
    ("--coverage", "--weights", "north=1"): "weights says nothing of site 'east'",
    ("--coverage", "--weights", "north=1,east=1,south=1"): "the weights sum to 3, not to 1",
    ("--coverage", "--level", "1"): "level must lie strictly between 0 and 1",
    ("--coverage", "--level", "high"): "--level is 'high'",
    ("--plot", "absent-folder/law.png"): "there is no folder absent-folder",
    ("--plot", "law.jpeg"): "law.jpeg",
    (*PRIVATE, "--mechanism", "local", "--plot", "law.png"): "no distribution to draw; add --coverage",
}


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=" ".join)
def test_a_bad_option_costs_no_site_its_message(
    conformal: Conformal, score_files: Path, options: tuple[str, ...]
) -> None:
    assert BAD_OPTIONS[options] in sentence(conformal(score_files, *options))


BAD_FILES = {
    "nan.csv": ("residual\n1\nnan\n3\n", "row 2"),
    "infinite.csv": ("residual\n1\n2\ninf\n", "row 3"),
    "missing.csv": ('residual\n1\n""\n3\n', "--drop-missing"),
    "empty.csv": ("residual\n", "empty"),
    "nothing.csv": ("", "nothing.csv"),
    "text.csv": ("residual\n1\ntwo\n", "'residual'"),
    "dates.csv": ("residual\n2013-05-01\n2013-05-02\n", "dates"),
    "all-dates.csv": (
        "residual\n2013-05-01\n2013-05-02\n",
        "column 'residual' holds dates, and scores must be numbers",
    ),
}


@pytest.mark.parametrize("fresh", [False, True], ids=["made", "fresh"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_costs_no_site_its_message(
    conformal: Conformal, score_files: Path, tmp_path: Path, name: str, fresh: bool
) -> None:
    text, said = BAD_FILES[name]
    (tmp_path / name).write_text(text)
    others = () if name == "all-dates.csv" else (str(score_files / "fresh" / "north.parquet"),)
    if fresh:
        done = conformal(score_files, "--coverage", "--test", str(tmp_path / name), *others)
    else:
        done = conformal(tmp_path, files=(str(tmp_path / name), *others))
    assert said in sentence(done)


BAD_GRIDS: dict[str, tuple[str | bytes, str]] = {
    "empty.txt": ("\n", "holds no edges"),
    "title.csv": ("grid\n", "holds no edges"),
    "words.csv": ("1\ntwo\n", "an edge in "),
    "other.csv": ("edge\n1\n", "is no number, the one at place 1"),
    "object.json": ('{"a": 1}', "does not list edges"),
    "broken.json": ("[1, 2", "is not JSON"),
    "nested.json": ("[" * 100_000, "is not JSON"),
    "nulls.json": ("[1, null]", "is no number, the one at place 2"),
    "binary.csv": (b"\xff\xfe\x00", "is not text in UTF-8"),
}


@pytest.mark.parametrize("name", BAD_GRIDS)
def test_a_bad_grid_costs_no_site_its_message(
    conformal: Conformal, score_files: Path, tmp_path: Path, name: str
) -> None:
    text, said = BAD_GRIDS[name]
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert said in sentence(conformal(score_files, "--epsilon", "1", "--grid", f"@{tmp_path / name}"))


def test_scores_that_make_a_threshold_are_no_fresh_ones(conformal: Conformal, score_files: Path) -> None:
    fresh, made = score_files / "fresh" / "north.parquet", score_files / "made" / "south.parquet"
    said = sentence(conformal(score_files, "--coverage", "--test", str(fresh), str(made)))
    assert f"{made} is to judge the threshold that it makes" in said


def test_budgets_and_weights_of_a_report_are_those_of_the_fresh_sites(conformal: Conformal, score_files: Path) -> None:
    fresh = ("--coverage", "--test", str(score_files / "fresh" / "north.parquet"))
    assert "names 'east', which is not a site" in sentence(
        conformal(score_files, *fresh, "--weights", "north=0.5,east=0.5")
    )
    assert "--coverage-epsilon names 'south'" in sentence(
        conformal(score_files, *fresh, "--coverage-epsilon", "north=1,south=1")
    )


def test_files_and_a_column_are_needed(score_files: Path) -> None:
    for words in (["--score", "residual"], [str(score_files / "made.parquet")]):
        done = CliRunner().invoke(app, ["conformal", *words])
        assert done.exit_code == 2
        assert "missing" in done.stderr


FORMER = {
    ("--report",): "for the coverage by site write --coverage",
    ("--report", "--json"): "for the coverage by site write --coverage",
    ("--report", "--test", "fresh.csv"): "for the coverage by site write --coverage",
    ("--coverage", "--report-epsilon", "1"): "--report-epsilon is called --coverage-epsilon now",
    ("--coverage", "--report-epsilon=1"): "--report-epsilon is called --coverage-epsilon now",
    ("--report", "page.pdf"): "writes a page to a .html file",
    ("--report=page.pdf",): "a report is written to a file that ends in .html",
    ("--report", "absent/page.html"): "there is no folder",
}


@pytest.mark.parametrize("words", FORMER, ids=" ".join)
def test_former_names_and_paths_of_a_report_are_refused_at_once(
    conformal: Conformal, score_files: Path, words: tuple[str, ...]
) -> None:
    done = conformal(score_files, *words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert FORMER[words] in done.stderr
    assert done.stderr.count("\n") == 1
