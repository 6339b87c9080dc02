"""`sottovoce quantile`: what it prints, as a table and as JSON."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sottovoce.server.load import load

Ask = Callable[..., Any]
N = 12_000


def as_json(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_table_names_estimate_sites_and_promise(ask: Ask, files: Path) -> None:
    done = ask(files)
    assert done.exit_code == 0
    for word in ("Estimate:", "0.95 interval:", "north", "south", "Private:       yes", "Promise:"):
        assert word in done.stdout
    assert done.stderr == ""


def test_a_result_is_kept(ask: Ask, files: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    found = as_json(ask(files, "--save", str(path), "--json"))
    assert found["saved"] == str(path)
    assert load(path).estimate == found["estimate"]


def test_json_is_one_object_with_a_budget_for_each_site(ask: Ask, files: Path) -> None:
    found = as_json(ask(files, "--epsilon", "north=2,south=4", "--json"))
    assert found["epsilon"] == pytest.approx({"north": 2.0, "south": 4.0}, abs=1e-8)
    assert found["interval"]["low"] < found["estimate"] < found["interval"]["high"]
    assert found["records"] == {"north": N, "south": N}
    assert found["private"] is True


def test_a_sequence_stops_at_a_width(ask: Ask, files: Path) -> None:
    found = as_json(ask(files, "--method", "sequence", "--until", "5", "--json"))
    assert found["method"] == "sequence"
    assert found["interval"]["high"] - found["interval"]["low"] <= 5
    assert found["reports"] < 2 * N
    refused = ask(files, "--until", "5")
    assert refused.exit_code == 2
    assert "belong to method 'sequence'" in refused.stderr


def test_what_json_cannot_say_is_null(ask: Ask, files: Path) -> None:
    found = as_json(ask(files, "--epsilon", "inf", "--json"))
    assert found["epsilon"] == {"north": None, "south": None}
    assert found["private"] is False


def test_one_file_with_a_site_column_and_a_glob_read_alike(ask: Ask, files: Path) -> None:
    one = as_json(ask(files, "--site", "clinic", "--json", files=("both.parquet",)))
    two = as_json(ask(files, "--json", files=("[ns]o*.parquet",)))
    assert one["records"] == two["records"] == {"north": N, "south": N}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("budgets.csv", "site,epsilon\nnorth,2\nsouth,4\n"),
        ("budgets.json", '{"north": 2, "south": 4}'),
        ("budgets.toml", "[epsilon]\nnorth = 2\nsouth = 4.0\n"),
    ],
)
def test_budgets_come_from_a_file(ask: Ask, files: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = as_json(ask(files, "--epsilon", f"@{tmp_path / name}", "--json"))
    assert found["epsilon"] == pytest.approx({"north": 2.0, "south": 4.0}, abs=1e-8)


def test_several_levels_do_not_cross(ask: Ask, files: Path) -> None:
    found = as_json(ask(files, "--tau", "0.4,0.5,0.6", "--epsilon", "6", "--json"))
    estimates = [row["estimate"] for row in found["joint"]]
    assert estimates == sorted(estimates)
    assert [row["tau"] for row in found["joint"]] == [0.4, 0.5, 0.6]


def test_a_level_and_a_share_for_each_site(ask: Ask, files: Path) -> None:
    found = as_json(ask(files, "--tau", "north=0.4,south=0.6", "--shares", "north=0.25,south=0.75", "--json"))
    assert found["tau"] == pytest.approx(0.55)
    assert found["shares"] == {"north": 0.25, "south": 0.75}


@pytest.mark.parametrize("schedule", ["every:5", "log", "1,1,2,4,500,900"])
def test_the_recursion_takes_a_schedule(ask: Ask, files: Path, schedule: str) -> None:
    found = as_json(ask(files, "--method", "regression", "--schedule", schedule, "--json"))
    assert found["method"] == "regression"


def test_a_far_value_is_rejected_and_a_side_can_be_chosen(ask: Ask, files: Path) -> None:
    found = as_json(ask(files, "--test", "100", "--alternative", "less", "--json"))
    assert found["test"]["pvalue"] < 1e-6
    assert "p = " in ask(files, "--test", "16.8").stdout


def test_the_plot_is_written_and_named(ask: Ask, files: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = as_json(ask(files, "--plot", str(tmp_path / "run.svg"), "--json"))
    assert Path(found["plot"]).stat().st_size > 1000


def test_a_person_column_draws_one_record_each(ask: Ask, files: Path) -> None:
    done = ask(files, "--person", "whose", "--epsilon", "6", "--json")
    found = as_json(done)
    assert sum(found["records"].values()) == N
    assert found["left_out"] == N


def test_public_knowledge_is_passed_on(ask: Ask, files: Path) -> None:
    found = as_json(ask(files, "--bounds", "-5,60", "--scale", "10", "--resolution", "0.5", "--json"))
    assert found["resolution"] == 0.5
    assert math.isclose(found["estimate"] % 0.5, 0)
