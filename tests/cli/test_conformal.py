"""`sottovoce conformal`: every option reaches its effect on the threshold, with sites by file and by column."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app

PRIVATE = ("--epsilon", "2", "--maximum", "5")
Conformal = Callable[..., Any]
Drawn = tuple[dict[str, list[float]], dict[str, list[float]]]


def as_json(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    assert done.stderr == "" or done.stderr.startswith("sottovoce: noise alone makes the set infinite")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_table_names_threshold_coverage_and_sites(conformal: Conformal, score_files: Path) -> None:
    done = conformal(score_files)
    assert done.exit_code == 0
    for word in ("Promise:", "Threshold:", "Coverage:", "north", "Private:       no", "--coverage shows which"):
        assert word in done.stdout
    for word in ("Coverage by site", "Left out", "Person", "Plot"):
        assert word not in done.stdout
    assert done.stderr == ""


OPTIONS: dict[tuple[str, ...], dict[str, Any]] = {
    (): {},
    ("--alpha", "0.2"): {"alpha": 0.2},
    ("--guarantee", "training-conditional"): {"guarantee": "training-conditional"},
    ("--guarantee", "training-conditional", "--delta", "0.3"): {"guarantee": "training-conditional", "delta": 0.3},
    ("--rule", "paper"): {"rule": "paper"},
    ("--statistics", "3"): {"statistics": 3},
}


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_without_privacy_the_command_finds_what_the_function_finds(
    conformal: Conformal, score_files: Path, scores: Drawn, words: tuple[str, ...]
) -> None:
    expected = dict(sv.conformal_threshold(scores[0], **OPTIONS[words]).describe().values)
    found = as_json(conformal(score_files, *words, "--json"))
    assert found == expected | {"unplaced": 0, "further_rows": 0, "column": "residual"}
    if words:
        assert expected != sv.conformal_threshold(scores[0]).describe().values


def test_exact_coverage_is_drawn(conformal: Conformal, score_files: Path) -> None:
    found = as_json(conformal(score_files, "--exact", "--json"))
    assert found["exact"] is True
    assert found["coverage"] == pytest.approx(0.9)
    assert "(drawn, with probability" in conformal(score_files, "--exact").stdout


def test_a_site_column_reads_like_a_file_a_site(conformal: Conformal, score_files: Path) -> None:
    one = as_json(conformal(score_files, "--site", "clinic", "--json", files=("made.parquet",)))
    assert one == as_json(conformal(score_files, "--json"))
    assert {site["name"]: site["scores"] for site in one["sites"]} == {"east": 40, "north": 60, "south": 40}


def test_the_files_may_follow_a_double_dash(conformal: Conformal, score_files: Path) -> None:
    paths = sorted(str(path) for path in (score_files / "made").iterdir())
    done = CliRunner().invoke(app, ["conformal", "--score", "residual", "--json", "--", *paths])
    assert as_json(done) == as_json(conformal(score_files, "--json"))


@pytest.mark.parametrize(
    ("words", "bins"),
    [
        (("--mechanism", "sparse-vector"), 100),
        (("--bins", "20"), 20),
        (("--mechanism", "sparse-vector", "--minimum", "-3"), 100),
        (("--mechanism", "exponential"), 100),
        (("--mechanism", "local", "--epsilon", "6"), 16),
        (("--mechanism", "aggregate", "--bins", "4"), 4),
        (("--bins", "50", "--guarantee", "training-conditional", "--delta", "0.4"), 50),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_private_threshold_is_an_edge_of_the_grid(
    conformal: Conformal, score_files: Path, words: tuple[str, ...], bins: int
) -> None:
    usual = PRIVATE if "--epsilon" not in words else [word for word in PRIVATE if word not in ("--epsilon", "2")]
    found = as_json(conformal(score_files, *usual, *words, "--json"))
    assert (found["private"], found["bins"], found["grid_end"]) == (True, bins, 5.0)
    given = dict(zip(words[::2], words[1::2], strict=True))
    budget = float(given.get("--epsilon", 2))
    assert all(site["epsilon"] == pytest.approx(budget, abs=1e-6) for site in found["sites"])
    start = float(given.get("--minimum", 0))
    steps = (found["value"] - start) / (5.0 - start) * bins
    assert steps == pytest.approx(round(steps))
    for name in ("mechanism", "guarantee", "delta"):
        assert str(found[name]) == given.get(f"--{name}", str(found[name]))


def test_unless_told_otherwise_a_mechanism_and_edges_in_equal_ratios_are_chosen(
    conformal: Conformal, score_files: Path
) -> None:
    found = as_json(conformal(score_files, *PRIVATE, "--json"))
    assert found["mechanism"] == "sparse-vector"  # few large sites
    edges = np.geomspace(5.0 / 64, 5.0, found["bins"])
    assert np.min(abs(edges - found["value"])) < 1e-12
    counted = as_json(conformal(score_files, *PRIVATE, "--mechanism", "counts", "--json"))
    assert counted["mechanism"] == "counts"
    assert counted["bins"] <= len(counted["sites"])


def test_the_papers_mechanism_takes_sites_of_one_size(conformal: Conformal, tmp_path: Path) -> None:
    scores = abs(sv.sim.dice(4).generator().normal(size=1_600))
    table = pa.table({"residual": scores, "clinic": [f"s{i % 4}" for i in range(1_600)]})
    pq.write_table(table, tmp_path / "a.parquet")
    words = ("--site", "clinic", "--epsilon", "30", "--maximum", "5", "--bins", "10", "--mechanism", "paper", "--json")
    assert as_json(conformal(tmp_path, *words, files=("a.parquet",)))["mechanism"] == "paper"


GRIDS = {"edges.csv": "grid\n1\n2\n4\n", "edges.txt": "1 2\n4\n", "edges.json": "[1, 2.0, 4]"}


@pytest.mark.parametrize("given", ["1,2, 4", *GRIDS])
def test_the_edges_may_be_given(conformal: Conformal, score_files: Path, tmp_path: Path, given: str) -> None:
    if given in GRIDS:
        (tmp_path / given).write_text(GRIDS[given])
        given = f"@{tmp_path / given}"
    found = as_json(conformal(score_files, "--epsilon", "4", "--grid", given, "--json"))
    assert (found["bins"], found["grid_end"]) == (3, 4.0)
    assert found["value"] in (1.0, 2.0, 4.0)


@pytest.mark.parametrize("given", ["east=3,north=2,south=inf", "@budgets.csv"])
def test_every_site_may_have_a_budget_of_its_own(
    conformal: Conformal, score_files: Path, tmp_path: Path, given: str
) -> None:
    (tmp_path / "budgets.csv").write_text("site,epsilon\neast,3\nnorth,2\nsouth,inf\n")
    given = given.replace("@", f"@{tmp_path}/")
    found = as_json(conformal(score_files, "--epsilon", given, "--maximum", "5", "--json"))
    spent = [site["epsilon"] for site in found["sites"]]
    assert spent[:2] == pytest.approx([3.0, 2.0], abs=1e-6)
    assert spent[2] is None
    assert found["private"] is False


def test_scores_beyond_the_grid_are_told_and_do_no_harm(conformal: Conformal, score_files: Path) -> None:
    words = ("--epsilon", "2", "--maximum", "1")
    done = conformal(score_files, *words)
    assert "lie above the grid, which ends at 1" in done.stderr  # exact, so for the site's own eyes alone
    shown = " ".join(done.stdout.split())
    assert "above the grid" not in shown
    assert "Threshold: infinite" in shown
    done = conformal(score_files, *words, "--json")
    assert "above the grid" not in done.stdout
    found = json.loads(done.stdout)
    assert (found["value"], found["infinite"]) == (None, True)


def test_missing_values_and_rows_without_a_site_are_counted(
    conformal: Conformal, score_files: Path, tmp_path: Path
) -> None:
    rows = pq.read_table(score_files / "made.parquet")
    lost = pa.table({"residual": [None, None], "clinic": ["north", None], "whose": [900, 901]}, schema=rows.schema)
    pq.write_table(pa.concat_tables([rows, lost]), tmp_path / "a.parquet")
    words = ("--site", "clinic", "--drop-missing")
    found = as_json(conformal(tmp_path, *words, "--json", files=("a.parquet",)))
    assert (found["dropped"], found["unplaced"], found["further_rows"]) == (1, 1, 0)
    for mechanism in ("sparse-vector", "aggregate"):
        private = (*PRIVATE, "--bins", "4", "--mechanism", mechanism)
        shown = conformal(tmp_path, *words, *private, files=("a.parquet",)).stdout
        assert "Left out:      1 missing values" in shown
        assert "Left out:      1 rows without a site" in shown


@pytest.mark.parametrize("mechanism", ["sparse-vector", "aggregate"])
def test_a_person_answers_once(conformal: Conformal, score_files: Path, mechanism: str) -> None:
    words = (*PRIVATE, "--bins", "4", "--site", "clinic", "--person", "whose", "--mechanism", mechanism)
    found = as_json(conformal(score_files, *words, "--json", files=("made.parquet",)))
    assert sum(site["scores"] for site in found["sites"]) == 30
    assert found["further_rows"] == 110
    shown = " ".join(conformal(score_files, *words, files=("made.parquet",)).stdout.split())
    assert "Person: one score each, drawn at random; 110 further rows left out" in shown
    assert "nother score of one person shifts" in shown


def test_one_score_a_site_is_enough(conformal: Conformal, tmp_path: Path) -> None:
    table = pa.table({"residual": [i / 20 for i in range(20)], "clinic": [f"s{i}" for i in range(20)]})
    pq.write_table(table, tmp_path / "a.parquet")
    found = as_json(conformal(tmp_path, "--site", "clinic", "--json", files=("a.parquet",)))
    assert found["value"] == 0.9
    assert {site["scores"] for site in found["sites"]} == {1}
