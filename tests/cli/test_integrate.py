"""`sottovoce integrate`: what it prints, as a table and as JSON, and who takes part."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app

N = 2_000
USUAL = {"--value": "delay", "--target": "north", "--tau": "0.5", "--epsilon": "3"}
TOLD = {"west": {"estimate": 16.9, "se": 0.2, "n": 400}, "east": {"estimate": 16.5, "interval": [16.1, 17.0]}}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the records of two sites, one file each and both in one: fewer than other commands get, many runs."""
    folder, tables = tmp_path_factory.mktemp("few"), []
    for seed, name in enumerate(("north", "south")):
        table = pa.table({"delay": sv.sim.dice(seed).generator().gamma(2.0, 10.0, size=N)})
        pq.write_table(table, folder / f"{name}.parquet")
        tables.append(table.append_column("clinic", pa.array([name] * N)))
    pq.write_table(pa.concat_tables(tables), folder / "both.parquet")
    return folder


def integrate(folder: Path, *options: str, files: tuple[str, ...] = ("north.parquet", "south.parquet")) -> Any:
    usual = [word for name, value in USUAL.items() if name not in options for word in (name, value)]
    return CliRunner().invoke(app, ["integrate", *(str(folder / name) for name in files), *usual, *options])


def as_json(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def told(tmp_path: Path) -> Callable[[Any], str]:
    """Write down what sites published."""

    def write(sites: Any) -> str:
        path = tmp_path / "told.json"
        path.write_text(json.dumps(sites))
        return str(path)

    return write


def names(found: dict[str, Any]) -> list[str]:
    return [site["name"] for site in found["sites"]]


def test_the_table_names_estimate_sites_and_promise(files: Path) -> None:
    done = integrate(files)
    assert done.exit_code == 0
    for word in ("Estimate:", "0.95 interval:", "Target's own:", "whatever the sources' differences", "Promise:"):
        assert word in done.stdout
    assert "Private:       yes" in done.stdout
    assert "Rows left out" not in done.stdout
    assert done.stderr == ""


def test_json_is_one_object_with_the_target_first(files: Path) -> None:
    found = as_json(integrate(files, "--target", "south", "--epsilon", "north=2,south=4", "--json"))
    assert names(found) == ["south", "north"]
    assert found["epsilon"] == pytest.approx({"north": 2.0, "south": 4.0}, abs=1e-8)
    assert found["interval"]["low"] < found["estimate"] < found["interval"]["high"]
    assert sum(found["weights"].values()) == pytest.approx(1.0)
    assert found["dropped"] == {"north": 0, "south": 0}
    assert "sensitivity" not in found


def test_one_file_with_a_site_column_reads_alike(files: Path) -> None:
    found = as_json(integrate(files, "--site", "clinic", "--json", files=("both.parquet",)))
    assert [site["records"] for site in found["sites"]] == [N, N]


def test_sources_restrict_who_helps_and_budgets_of_others_do_not_matter(
    files: Path, told: Callable[[Any], str]
) -> None:
    words = ("--sources", "west", "--epsilon", "north=3,south=1", "--summaries", told(TOLD))
    found = as_json(integrate(files, *words, "--json"))
    assert names(found) == ["north", "west"]
    assert found["reports"] == N


def test_summaries_help_records(files: Path, told: Callable[[Any], str]) -> None:
    found = as_json(integrate(files, "--summaries", told(TOLD), "--json"))
    assert names(found) == ["north", "south", "west", "east"]
    assert [site["kind"] for site in found["sites"]] == ["private", "private", "summary", "summary"]
    assert found["private"] is True


def test_records_help_a_summary(files: Path, told: Callable[[Any], str]) -> None:
    found = as_json(integrate(files, "--summaries", told(TOLD), "--target", "east", "--json"))
    assert names(found)[0] == "east"
    assert found["sites"][0]["estimate"] == 16.5


def test_summaries_alone_need_neither_files_nor_column_nor_budget(told: Callable[[Any], str]) -> None:
    words = ["integrate", "--target", "west", "--tau", "0.5", "--summaries", told(TOLD), "--json"]
    found = as_json(CliRunner().invoke(app, words))
    assert found["reports"] == 0
    assert found["promise"].startswith("No record was read")
    assert found["length_ratio"] < 1


def test_dates_and_durations_of_summaries_are_written_as_such(tmp_path: Path, told: Callable[[Any], str]) -> None:
    table = pa.table({"day": pa.array([i % 365 for i in range(9_000)], pa.int32()).cast(pa.date32())})
    pq.write_table(table, tmp_path / "ours.parquet")
    published = {"theirs": {"estimate": "1970-07-02", "se": "2 days"}, "x": {"estimate": 190, "interval": [180, 200]}}
    words = ("--value", "day", "--target", "ours", "--summaries", told(published), "--json")
    found = as_json(integrate(tmp_path, *words, files=("ours.parquet",)))
    theirs = found["sites"][1]
    assert (theirs["estimate"], theirs["error"]) == (182.0, 2.0)
    assert found["text"]["estimate"].startswith("1970-0")


@pytest.mark.parametrize("bound", ["0.5", "south=0.5", "south=0.5,west=7"])
def test_a_bound_is_for_all_or_for_each(files: Path, told: Callable[[Any], str], bound: str) -> None:
    told_too = ("--summaries", told(TOLD), "--sources", "south")
    found = as_json(integrate(files, "--method", "known-bound", "--bound", bound, *told_too, "--json"))
    assert found["bound"] == {"south": 0.5}
    assert found["length_ratio"] < 1


def test_a_bound_comes_from_a_file(files: Path, tmp_path: Path) -> None:
    (tmp_path / "bounds.csv").write_text("site,bound\nsouth,0.25\n")
    given = f"@{tmp_path / 'bounds.csv'}"
    found = as_json(integrate(files, "--method", "known-bound", "--bound", given, "--json"))
    assert found["bound"] == {"south": 0.25}


def test_the_papers_methods_take_their_settings(files: Path) -> None:
    settings = ("--variance", "theorem", "--quantile", "t", "--caution", "1", "--chains", "4", "--sites", "chains")
    done = integrate(files, "--method", "conservative-paper", *settings)
    assert done.exit_code == 0, done.output
    assert "conservative-paper (theorem variance, t, caution 1, 4 chains a site)" in " ".join(done.stdout.split())
    assert "not uniformly valid" in done.stdout


def test_sensitivity_is_printed_after_the_table_and_added_to_json(files: Path) -> None:
    done = integrate(files, "--sensitivity")
    assert done.exit_code == 0
    table, _, curve = done.stdout.partition("Sensitivity to the bound")
    assert "Promise:" in table
    assert "bound read" in curve.replace("\n", " ")
    found = as_json(integrate(files, "--sensitivity", "--json"))["sensitivity"]
    assert found["bound"][0] == 0
    assert found["length_ratio"][0] < found["length_ratio"][-1] < 1
    assert len(found["low"]) == len(found["high"]) == len(found["bound"])


def test_a_source_that_is_lost_costs_the_curve_and_not_the_answer(
    files: Path, told: Callable[[Any], str], tmp_path: Path
) -> None:
    few = {"few": {"estimate": 16.9, "se": 0.2, "n": 3}}
    words = ("--summaries", told(few), "--sources", "few", "--sensitivity")
    done = integrate(files, *words)
    assert done.exit_code == 0
    assert "left out" in done.stdout
    assert "Sensitivity:   there is no source" in done.stdout
    assert as_json(integrate(files, *words, "--json"))["sensitivity"] is None


def test_missing_values_and_further_rows_are_counted(tmp_path: Path) -> None:
    waits = [float(i % 97) + i / 1e6 for i in range(6_000)]
    clinics = ["north" if i % 2 else "south" for i in range(6_000)]
    table = pa.table({"delay": [None, *waits], "clinic": ["north", *clinics], "whose": [0, *range(6_000)]})
    pq.write_table(table, tmp_path / "all.parquet")
    words = ("--site", "clinic", "--drop-missing", "--person", "whose")
    found = as_json(integrate(tmp_path, *words, "--json", files=("all.parquet",)))
    assert found["dropped"]["north"] + found["further_rows"] == 1
    shown = integrate(tmp_path, "--site", "clinic", "--drop-missing", files=("all.parquet",)).stdout
    assert "Rows left out: 1 missing values, 0 without a site" in shown


def test_a_plot_is_drawn_and_named(files: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "forest.png"
    done = integrate(files, "--plot", str(path))
    assert done.exit_code == 0, done.output
    assert path.read_bytes().startswith(b"\x89PNG")
    assert f"Plot:          {path}" in done.stdout


def test_a_plot_that_cannot_be_written_does_not_cost_the_answer(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = pytest.importorskip("matplotlib.figure")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure.Figure, "savefig", full)
    done = integrate(files, "--plot", str(tmp_path / "forest.png"))
    assert done.exit_code == 2
    assert "Estimate:" in done.stdout
    assert "No space left" in done.stderr
