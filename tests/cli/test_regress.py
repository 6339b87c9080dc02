"""`sottovoce regress`: what it prints, as a table and as JSON, and that its options reach the estimator."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.core.arrays import Words
from sottovoce.core.random_source import SystemEntropy

N, MANY = 3_000, 30_000
FAR = 5.2  # standard errors that one of three normal errors exceeds once in a million times
TRUTH = {"intercept": 5.0, "miles": 2.0, "hour": -0.5}
GUESSES = ("--density", "0.12", "--size", "30", "--start", "25")
USUAL = {"--response": "minutes", "--features": "miles,hour", "--tau": "0.5", "--epsilon": "6"}
BOUNDS = ("--bounds", "miles=0:30", "--bounds", "hour=0:24")
Restart = Callable[[], None]


def trip_table(n: int) -> Any:
    source = sv.sim.dice(1).generator()
    miles, hour = source.uniform(0, 30, n), source.integers(0, 25, n)
    minutes = 5.0 + 2.0 * miles - 0.5 * hour + source.logistic(0.0, 2.0, n)
    return pa.table({"note": ["x"] * n, "minutes": minutes, "miles": miles, "hour": hour})


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the same trips in every format, and many trips in one."""
    folder, table = tmp_path_factory.mktemp("trips"), trip_table(N)
    pq.write_table(table, folder / "trips.parquet")
    pyarrow.feather.write_feather(table, folder / "trips.arrow")
    pyarrow.csv.write_csv(table, folder / "trips.csv")
    pyarrow.csv.write_csv(table, folder / "trips.tsv", pyarrow.csv.WriteOptions(delimiter="\t"))
    pq.write_table(trip_table(MANY), folder / "many.parquet")
    return folder


@pytest.fixture
def restart(monkeypatch: pytest.MonkeyPatch) -> Restart:
    """Begin the system's words again from a seed."""

    def again() -> None:
        seeded = sv.sim.dice(11)

        def words(_: SystemEntropy, n: int) -> Words:
            return seeded.words(n)

        monkeypatch.setattr(SystemEntropy, "words", words)

    return again


def regress(folder: Path, *options: str, file: str = "trips.parquet") -> Any:
    usual = [word for name, value in USUAL.items() if name not in options for word in (name, value)]
    bounds = () if "--bounds" in options else BOUNDS
    return CliRunner().invoke(app, ["regress", str(folder / file), *usual, *bounds, *options])


def as_json(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    assert "moved to the bounds" in done.stderr or done.stderr == ""
    assert "clip" not in done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def coefficients(found: dict[str, Any], at: int = 0) -> dict[str, float]:
    return {row["name"]: row["estimate"] for row in found["levels"][at]["coefficients"]}


def test_the_table_names_coefficients_channel_and_promise(trips: Path) -> None:
    done = regress(trips, *GUESSES)
    assert done.exit_code == 0
    for word in ("tau = 0.5", "Response:      minutes", "3,000", "std err", "[0.025", "intercept", "miles", "hour"):
        assert word in done.stdout
    assert "Private:       yes" in done.stdout
    assert "Promise:" in done.stdout
    assert all(len(line) <= 78 for line in done.stdout.splitlines())
    assert done.stderr == ""


def test_a_result_is_kept_audited_and_loaded(trips: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    done = regress(trips, *GUESSES, "--save", str(path))
    assert done.exit_code == 0
    assert f"Saved:         {path}" in done.stdout
    kept = sv.load(path)
    assert (kept.kind, kept.people, kept.private) == ("regression", N, True)
    audited = CliRunner().invoke(app, ["audit", str(path), "--samples", "0"])
    assert audited.exit_code == 0
    assert "Exact epsilon: 6, from the integers of" in audited.stdout
    assert regress(trips, *GUESSES, "--save", str(tmp_path / "kept.txt")).exit_code == 2
    refused = regress(trips, *GUESSES, "--save", str(path), "--explain")
    assert "--save keeps what records told" in refused.stderr


def test_json_has_errors_and_intervals_around_the_truth(trips: Path) -> None:
    found = as_json(regress(trips, *GUESSES, "--level", "0.9", "--json", file="many.parquet"))
    rows = {row["name"]: row for row in found["levels"][0]["coefficients"]}
    assert list(rows) == list(TRUTH)
    for name, row in rows.items():
        assert abs(row["estimate"] - TRUTH[name]) < FAR * row["error"]
        assert row["low"] < row["estimate"] < row["high"]
    assert (found["response"], found["people"], found["level"], found["private"]) == ("minutes", MANY, 0.9, True)
    assert found["epsilon"] == pytest.approx(6.0, abs=1e-7)


def test_without_guesses_the_first_people_tell_them(trips: Path) -> None:
    found = coefficients(as_json(regress(trips, "--json", file="many.parquet")))
    # the standard error of this slope is about .007
    assert abs(found["miles"] - 2.0) < 0.1


@pytest.mark.parametrize("file", ["trips.csv", "trips.tsv", "trips.arrow", "trip*.parquet"])
def test_every_format_reads_alike(trips: Path, restart: Restart, file: str) -> None:
    restart()
    one = as_json(regress(trips, *GUESSES, "--json"))
    restart()
    assert as_json(regress(trips, *GUESSES, "--json", file=file)) == one


WAYS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "usual": ((), {}),
    "in order": (("--in-order",), {"shuffle": False}),
    "levels": (("--tau", "0.75,0.25", "--density", "0.08,0.09"), {"tau": [0.75, 0.25], "density": [0.08, 0.09]}),
    "channel": (("--channel", "cq:2,1", "--epsilon", "4"), {"channel": "cq:2,1", "epsilon": 4.0}),
    "start": (("--start", "4,2,0"), {"start": [4.0, 2.0, 0.0]}),
    "size": (("--size", "60"), {"size": 60.0}),
    "paper": (("--inference", "self-normalised"), {"inference": "self-normalised"}),
    "groups": (("--inference", "groups"), {"inference": "groups"}),
    "tree": (("--inference", "higrad"), {"inference": "higrad"}),
    "clip": (("--clip", "--bounds", "miles=0:28", "--bounds", "0:24"), {"clip": True, "bounds": [(0, 28), (0, 24)]}),
    "one pair": (("--bounds", "0:30"), {"bounds": (0, 30)}),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_numbers_are_those_of_the_estimator(trips: Path, restart: Restart, way: str) -> None:
    options, parameters = WAYS[way]
    given = {"epsilon": 6.0, "bounds": [(0, 30), (0, 24)], "density": 0.12, "size": 30.0, "start": 25.0, **parameters}
    table = pq.read_table(trips / "trips.parquet")
    restart()
    model = sv.PrivateQuantileRegressor(**given).fit(table.select(["miles", "hour"]), table["minutes"])
    restart()
    kept = [word for at in range(0, 6, 2) if GUESSES[at] not in options for word in GUESSES[at : at + 2]]
    found = as_json(regress(trips, *kept, *options, "--json", "--level", "0.9"))
    assert found.pop("response") == "minutes"
    assert found == json.loads(json.dumps(model.result_.describe(0.9).values))


def test_levels_ascend_and_rows_that_were_clipped_are_counted_for_their_holder_alone(trips: Path) -> None:
    done = regress(trips, *GUESSES, "--tau", "0.75,0.25", "--clip", "--bounds", "0:20", "--json")
    found = as_json(done)
    assert [row["tau"] for row in found["levels"]] == [0.25, 0.75]
    table = pq.read_table(trips / "trips.parquet")
    beyond = (table["miles"].to_numpy() > 20) | (table["hour"].to_numpy() > 20)
    count = np.count_nonzero(beyond)
    assert f"{count:,} of 3,000 rows were moved to the bounds" in done.stderr
    assert f"{count:,}" not in done.stdout


def test_explain_asks_nobody(trips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def throw(*_: object) -> None:
        raise AssertionError("a die was thrown")

    monkeypatch.setattr(SystemEntropy, "words", throw)
    done = regress(trips, *GUESSES, "--explain")
    assert done.exit_code == 0
    assert "Predicted standard errors for 3,000 people at density 0.12" in done.stdout
    assert "nobody so far" in done.stdout
    assert "Expected:      intercept: about " in done.stdout
    plan = as_json(regress(trips, *GUESSES, "--explain", "--json"))
    chosen = next(each for each in plan["alternatives"] if each["channel"] == plan["channel"])
    assert chosen["people"] == 1.0
    # the same numbers, three digits of them, stand in the table
    starred = next(line for line in done.stdout.splitlines() if line.startswith("* "))
    assert f"{chosen['errors'][0][0]:.3g}" in starred
    assert plan["people"] == N


@pytest.mark.parametrize("tau", ["0.5", "0.25,0.5,0.75"])
def test_the_plot_is_written_and_named(trips: Path, tmp_path: Path, tau: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "slopes.svg"
    found = as_json(regress(trips, *GUESSES, "--tau", tau, "--plot", str(path), "--json"))
    assert found["plot"] == str(path)
    assert path.stat().st_size > 1000
    assert f"Plot:          {path}" in regress(trips, *GUESSES, "--tau", tau, "--plot", str(path)).stdout


def test_a_full_disk_does_not_cost_the_answer(trips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    done = regress(trips, *GUESSES, "--plot", str(tmp_path / "slopes.png"))
    assert done.exit_code == 2
    assert "intercept" in done.stdout
    assert "No space left" in done.stderr


def test_a_name_with_a_comma_stands_in_quotes(trips: Path, tmp_path: Path) -> None:
    table = pq.read_table(trips / "trips.parquet")
    pq.write_table(table.rename_columns(["note", "minutes", "miles, road", "a=b"]), tmp_path / "odd.parquet")
    options = ("--features", '"miles, road",a=b', "--bounds", '"miles, road=0:30"', "--bounds", "a=b=0:24")
    found = as_json(regress(tmp_path, *GUESSES, *options, "--json", file="odd.parquet"))
    assert list(coefficients(found)) == ["intercept", "miles, road", "a=b"]


def test_no_budget_is_said_to_be_no_privacy(trips: Path) -> None:
    found = as_json(regress(trips, *GUESSES, "--epsilon", "inf", "--json"))
    assert (found["epsilon"], found["private"]) == (None, False)


def test_the_command_does_not_wait_for_scikit_learn(trips: Path) -> None:
    words = [
        "sottovoce",
        "regress",
        str(trips / "trips.parquet"),
        *(w for pair in USUAL.items() for w in pair),
        *BOUNDS,
    ]
    code = (
        f"import sys, runpy; sys.argv = {[*words, *GUESSES, '--explain']!r}\n"
        "try: runpy.run_module('sottovoce', run_name='__main__')\n"
        "finally: print('loaded', 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("loaded False\n"), done.stderr


def test_files_categories_missing_rows_and_persons_reach_the_fit(tmp_path: Path) -> None:
    source = sv.sim.dice(2).generator()
    for name in ("east", "west"):
        miles, shift = source.uniform(0, 30, 1_500), source.choice(["day", "night", "odd"], 1_500)
        minutes = 5.0 + 2.0 * miles + np.where(shift == "day", 0.0, 6.0) + source.logistic(0.0, 2.0, 1_500)
        table = {
            "minutes": minutes,
            "miles": miles,
            "shift": shift,
            "driver": np.arange(1_500) // 2 + 1_500 * (name == "west"),
        }
        columns = {key: pa.array(value) for key, value in table.items()}
        columns["miles"] = pa.array([None, *miles[1:].tolist()])
        pyarrow.csv.write_csv(pa.table(columns), tmp_path / f"{name}.csv")
    words = ["regress", str(tmp_path / "*.csv"), "--response", "minutes", "--features", "miles", "--features", "shift"]
    words += ["--tau", ".5", "--epsilon", "6", "--bounds", "miles=0:30", *GUESSES]
    refused = CliRunner().invoke(app, words)
    assert "or --levels for a column of categories" in refused.stderr
    refused = CliRunner().invoke(app, [*words, "--bounds", "0:1"])
    assert refused.exit_code == 2
    assert "declare the levels of categories, which are public, with --levels" in refused.stderr
    words += ["--levels", "shift=day,night,other", "--drop-missing", "--person", "driver", "--json"]
    found = as_json(CliRunner().invoke(app, words))
    assert (found["people"], found["dropped"]) == (1_500, 2)
    assert found["further_rows"] == 3_000 - 2 - 1_500
    assert [row["name"] for row in found["levels"][0]["coefficients"]][1:] == ["miles", "shift=night", "shift=other"]


def test_what_is_known_of_the_rows_is_said_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr("sottovoce.api.regression.stream.RegressionStream.ask", ask)
    rows = "".join(f"{i % 9},{(i * 37) % 1000 / 100}\n" for i in range(1_000))
    (tmp_path / "a.csv").write_text("minutes,miles\n" + rows)
    words = ["regress", str(tmp_path / "a.csv"), "--response", "minutes", "--features", "miles", "--tau", ".5"]
    done = CliRunner().invoke(app, [*words, "--epsilon", "1", "--bounds", "0:10", "--density", ".1", "--size", "9"])
    assert isinstance(done.exception, AssertionError)
    assert "sottovoce: many responses are tied" in done.stderr
    assert "sottovoce: the regression is barely supported" in done.stderr
