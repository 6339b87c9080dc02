"""`sottovoce conformal --coverage` and `--plot`: by which scores the threshold is judged, and what that costs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.server.conformal import plot as conformal_plot

PRIVATE = ("--epsilon", "2", "--maximum", "5")
Conformal = Callable[..., Any]
Drawn = tuple[dict[str, list[float]], dict[str, list[float]]]


def as_json(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def reported(conformal: Conformal, score_files: Path) -> Callable[..., dict[str, Any]]:
    def ask(*words: str) -> dict[str, Any]:
        found: dict[str, Any] = as_json(conformal(score_files, "--coverage", "--json", *words))["coverage_by_site"]
        return found

    return ask


Reported = Callable[..., dict[str, Any]]


def test_a_report_is_judged_by_the_scores_themselves(
    conformal: Conformal, reported: Reported, score_files: Path, scores: Drawn
) -> None:
    expected = dict(sv.conformal_threshold(scores[0]).coverage_by_site(scores[0]).describe().values)
    report = reported()
    assert {name: report[name] for name in expected} == expected
    assert report["judged_by"] == "calibration"
    table, _, below = conformal(score_files, "--coverage").stdout.partition("Judged by the 140 scores that made it:")
    assert "Threshold:" in table
    assert "Coverage by site" in below
    assert "This report is not private" in below


WAYS: dict[str, Callable[[list[str]], list[str]]] = {
    "as a shell writes a glob": lambda paths: ["--test", *paths, "--alpha", "0.2"],
    "one by one": lambda paths: ["--alpha", "0.2", *(word for path in paths for word in ("--test", path))],
    "glob in the home": lambda _: ["--alpha", "0.2", "--test", "~/fresh/*.parquet"],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_report_is_judged_by_fresh_scores_however_they_are_named(
    reported: Reported, score_files: Path, scores: Drawn, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("HOME", str(score_files))
    expected = dict(sv.conformal_threshold(scores[0], 0.2).coverage_by_site(scores[1]).describe().values)
    report = reported(*WAYS[way](sorted(map(str, (score_files / "fresh").iterdir()))))
    assert {name: report[name] for name in expected} == expected
    assert report["judged_by"] == "test"


def test_fresh_scores_have_the_same_columns(conformal: Conformal, score_files: Path, scores: Drawn) -> None:
    words = ("--site", "clinic", "--coverage", "--test", str(score_files / "fresh.parquet"))
    expected = dict(sv.conformal_threshold(scores[0]).coverage_by_site(scores[1]).describe().values)
    found = as_json(conformal(score_files, *words, "--json", files=("made.parquet",)))
    assert found["coverage_by_site"]["sites"] == expected["sites"]
    shown = conformal(score_files, *words, "--person", "whose", files=("made.parquet",)).stdout
    assert "Judged by 30 fresh scores:" in shown
    assert shown.count("one score each, drawn at random; 110 further rows left out") == 2


def test_weights_and_level_change_the_report(reported: Reported) -> None:
    by_size = reported("--weights", "records")
    assert {site["name"]: site["weight"] for site in by_size["sites"]}["north"] == 60 / 140
    own = reported("--weights", "east=0,north=1,south=0", "--level", "0.8")
    north, before = (next(site for site in found["sites"] if site["name"] == "north") for found in (own, reported()))
    assert own["mixture"]["estimate"] == pytest.approx(north["coverage"])
    assert before["low"] < north["low"] < north["high"] < before["high"]


def test_a_private_report_adds_to_the_cost(conformal: Conformal, reported: Reported, score_files: Path) -> None:
    found = reported(*PRIVATE, "--coverage-epsilon", "east=1,north=0.5,south=1")
    assert found["private"] is True
    assert found["spread"] is None
    assert found["epsilon_of_both_rounds"] == pytest.approx({"east": 3.0, "north": 2.5, "south": 3.0}, abs=1e-6)
    shown = conformal(score_files, *PRIVATE, "--coverage", "--coverage-epsilon", "1").stdout
    assert "Judged by the 140 scores that made it; both rounds cost a score up to epsilon 3:" in shown
    fresh = reported(*PRIVATE, "--coverage-epsilon", "1", "--test", str(score_files / "fresh" / "*.parquet"))
    assert fresh["epsilon_of_both_rounds"] is None


def test_an_open_report_on_a_private_threshold_says_so(conformal: Conformal, score_files: Path) -> None:
    shown = " ".join(conformal(score_files, *PRIVATE, "--coverage").stdout.split())
    assert "That the threshold is private does not make it so." in shown
    found = as_json(conformal(score_files, *PRIVATE, "--coverage", "--json"))
    assert (found["private"], found["coverage_by_site"]["private"]) == (True, False)


@pytest.mark.parametrize(
    ("words", "artist"),
    [
        ((), "draw_distribution"),
        (("--coverage",), "draw"),
        ((*PRIVATE, "--bins", "4", "--mechanism", "aggregate", "--coverage"), "draw"),
    ],
    ids=["law", "report", "report on a pooled threshold"],
)
def test_the_plot_is_the_law_or_the_coverage_by_site(
    conformal: Conformal,
    score_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    artist: str,
) -> None:
    pytest.importorskip("matplotlib")
    seen: list[Any] = []
    draw = getattr(conformal_plot, artist)

    def watched(*given: Any) -> Any:
        seen.append(given)
        return draw(*given)

    monkeypatch.setattr(conformal_plot, artist, watched)
    path = tmp_path / "picture.png"
    assert as_json(conformal(score_files, *words, "--plot", str(path), "--json"))["plot"] == str(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(seen) == 1
    assert f"Plot:          {path}" in conformal(score_files, *words, "--plot", str(path)).stdout


def test_a_law_of_sets_that_are_often_infinite_is_drawn(conformal: Conformal, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = "".join(f"0.{i:03},s{i % 5}\n" for i in range(1000))
    (tmp_path / "a.csv").write_text(f"residual,clinic\n{rows}")
    words = ("--site", "clinic", "--epsilon", "0.03", "--maximum", "1", "--plot")
    done = conformal(tmp_path, *words, str(tmp_path / "law.png"), files=("a.csv",))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "law.png").stat().st_size > 10_000


def test_a_plot_that_cannot_be_written_does_not_cost_the_answer(
    conformal: Conformal, score_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = pytest.importorskip("matplotlib.figure")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure.Figure, "savefig", full)
    done = conformal(score_files, "--coverage", "--plot", str(tmp_path / "law.png"))
    assert done.exit_code == 2
    assert "Threshold:" in done.stdout
    assert "Coverage by site" in done.stdout
    assert "No space left" in done.stderr
