"""`sottovoce reproduce` on a paper that is not one: what is printed, kept, gone on with, and written."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce_papers.harness import files
from sottovoce_papers.harness.cell import Row, Setting

Ask = Callable[..., Any]
Run = Callable[[Setting, int, int, Path | None], list[Row]]
CELLS = 4  # of table-1


@pytest.fixture
def ask(papers: Path) -> Ask:
    def asked(*words: str, code: int = 0, **env: str) -> Any:
        done = CliRunner().invoke(app, ["reproduce", *words], env={"SOTTOVOCE_DATA": "", **env})
        assert done.exit_code == code, done.output + done.stderr
        return done

    return asked


def kept_rows(folder: Path) -> dict[str, Any]:
    found = {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    for cell in found.values():
        del cell["seconds"]
    return found


def counting(run: Run, seen: list[Setting]) -> Run:
    """Return the recipe's function, noting every setting that it is run with."""

    def noted(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
        seen.append(dict(setting))
        return run(setting, replications, seed, data)

    return noted


def test_the_table_has_print_ours_and_their_difference(ask: Ask) -> None:
    said = ask("coin", "Table 1", "--jobs", "1", "--seed", "3").stdout
    first, second = (next(line for line in said.splitlines() if line.startswith(n)) for n in ("10", "20"))
    assert first.split()[:3] == ["10", "tossed", "0.50"]
    assert second.split()[:3] == ["20", "tossed", "0.90"]
    assert "·" in second
    assert "·" not in first
    assert "!" not in first
    assert sum(line.split()[:1] == ["default"] for line in said.splitlines()) == 2
    assert "1 of 1 numbers agrees with the print (100 %), 1 is explained, 1 was not run." in said
    assert "· 1 number: The print's coin was bent <twice>." in said
    assert "fixed (held against the print): the same coin" in said
    assert "40 replications" in said  # small, a tenth, unless told
    assert "Report:   reproduction/report.html" in said


def test_what_does_not_agree_and_is_not_explained_has_a_sign(papers: Path, ask: Ask) -> None:
    toml = papers / "table-1.toml"
    toml.write_text(toml.read_text().partition("[[explained]]")[0])
    said = ask("coin", "table-1", "--no-report").stdout
    assert [line.count("!") for line in said.splitlines() if line.startswith(("10", "20"))] == [0, 1]
    assert "1 of 2 numbers agrees with the print (50 %), 1 is neither, 1 was not run." in said


def test_a_narrow_window_has_no_line_that_is_too_long(ask: Ask) -> None:
    wide = ask("coin", "table-1", "--no-report", COLUMNS="100").stdout
    narrow = ask("coin", "table-1", "--no-report", COLUMNS="48").stdout
    assert max(map(len, narrow.splitlines())) <= 48 < max(map(len, wide.splitlines())) <= 100
    table = wide.splitlines()[5:]
    assert "fresh" in next(line for line in table if line.startswith("n "))
    heads = [line for line in narrow.splitlines() if line.startswith("n ")]
    assert heads
    assert not any("fresh" in line for line in heads)
    assert "No room for: fresh." in narrow


def test_many_items_are_a_line_each(papers: Path, ask: Ask) -> None:
    (papers / "figure-2.toml").write_text((papers / "figure-1.toml").read_text())
    lines = ask("--jobs", "2", "--no-report").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["coin-tossing", "table-1", "table-2", "figure-1", "figure-2"]
    row = next(line.split() for line in lines if line.strip().startswith("table-1"))
    assert row[1:4] == ["3", "1", "1"]  # printed, agree, of
    assert lines[3].split()[-1] == "skipped"
    assert any(line.startswith("Skipped: coin-tossing table-2: needs the data set coins") for line in lines)


def test_an_item_without_its_data_is_skipped_and_runs_with_them(ask: Ask, tmp_path: Path) -> None:
    assert "skipped, needs the data set coins" in ask("coin", "table-2", "--no-report").stdout
    (tmp_path / "real" / "coins").mkdir(parents=True)
    assert "skipped" not in ask("coin", "table-2", "--data", "real", "--no-report").stdout
    assert "skipped" not in ask("coin", "table-2", "--no-report", SOTTOVOCE_DATA="real").stdout


def test_numbers_do_not_depend_on_the_number_of_jobs(ask: Ask) -> None:
    for jobs in ("1", "2"):
        ask("--jobs", jobs, "--out", jobs, "--no-report")
    one, two = kept_rows(Path("1/cells")), kept_rows(Path("2/cells"))
    assert len(one) == 12
    assert one == two
    for name in ("table-1", "figure-1"):
        first, second = (Path(jobs, "coin-tossing", f"{name}.csv").read_text() for jobs in ("1", "2"))
        assert first == second
    ask("--jobs", "1", "--out", "3", "--seed", "2", "--no-report")
    assert Path("3/coin-tossing/table-1.csv").read_text() != Path("1/coin-tossing/table-1.csv").read_text()


def test_an_interrupted_study_goes_on_where_it_was(ask: Ask, coin: SimpleNamespace) -> None:
    tossing: Run = coin.run
    tossed: list[Setting] = []

    def stopped(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
        if len(tossed) == 2:
            raise KeyboardInterrupt
        tossed.append(dict(setting))
        return tossing(setting, replications, seed, data)

    coin.run = stopped
    done = ask("coin", "table-1", "--jobs", "1", code=130)
    assert done.stderr == (
        f"sottovoce: stopped: 2 of {CELLS} cells are kept in reproduction/cells; the same command goes on from there.\n"
    )
    assert done.stdout == ""
    before = tossed.copy()
    tossed.clear()
    coin.run = counting(tossing, tossed)
    ask("coin", "table-1", "--jobs", "1", "--no-report")
    assert len(tossed) == CELLS - 2
    assert not [setting for setting in tossed if setting in before]
    resumed = Path("reproduction/coin-tossing/table-1.csv").read_text()
    ask("coin", "table-1", "--jobs", "1", "--out", "whole", "--no-report")
    assert Path("whole/coin-tossing/table-1.csv").read_text() == resumed


def test_fresh_forgets_the_cells_of_the_request_alone(ask: Ask, coin: SimpleNamespace) -> None:
    ask("--no-report")
    tossed: list[Setting] = []
    coin.run = counting(coin.run, tossed)
    ask("--no-report")
    assert tossed == []
    ask("coin", "table-1", "--fresh", "--no-report")
    assert len(tossed) == CELLS


def test_a_cell_of_another_version_or_number_is_run_again(ask: Ask, coin: SimpleNamespace) -> None:
    ask("coin", "table-1", "--no-report")
    coin.VERSION = 2
    ask("coin", "table-1", "--no-report")
    ask("coin", "table-1", "--no-report", "--replications", "7")
    assert len(list(Path("reproduction/cells").glob("*.json"))) == 3 * CELLS


def test_json_has_every_number(ask: Ask) -> None:
    found = json.loads(ask("coin", "table-1", "--json", "--seed", "5").stdout)
    (item,) = found["items"]
    assert found["seed"] == 5
    assert item["tally"]["printed"] == found["tally"]["printed"] == len(item["numbers"]) == 3
    number = item["numbers"][1]
    assert number["where"] == {"side": "left", "n": "20", "method": "tossed"}
    assert number["print"] == "0.90"
    assert number["agrees"] is False
    assert set(number["found"]) == set(number["differences"]) == {"fixed", "fresh"}
    assert number["why"] == "The print's coin was bent <twice>."
    assert item["numbers"][2]["agrees"] is None
    assert len(item["rows"]) == 2 * CELLS
    assert {row["where"]["method"] for row in item["rows"]} == {"tossed", "default"}
    assert "curves" not in item["rows"][0]
    assert found["files"] == ["reproduction/coin-tossing/table-1.csv", "reproduction/report.html"]


def test_the_list_says_what_there_is(ask: Ask, papers: Path) -> None:
    (papers / "table-1.ours.csv").touch()
    said = ask("--list").stdout
    assert said.splitlines()[2] == "coin-tossing"
    assert said.splitlines()[3].split()[:4] == ["table-1", "400", "yes", "Table"]
    assert said.splitlines()[4].split()[:4] == ["table-2", "40", "coins", "no"]
    narrow = ask("--list", COLUMNS="62").stdout
    assert max(map(len, narrow.splitlines())) <= 62
    assert "…" in narrow
    assert not Path("reproduction").exists()
    items = json.loads(ask("coin", "tables", "--list", "--json").stdout)["items"]
    assert [(one["item"], one["replications"], one["recorded"]) for one in items] == [
        ("table-1", 400, True),
        ("table-2", 40, False),
    ]


def test_record_writes_ours_beside_the_print(ask: Ask, papers: Path) -> None:
    ask("coin", "table-1", "--no-report")
    assert not (papers / "table-1.ours.csv").exists()
    ask("coin", "table-1", "--record", "--no-report")
    assert (papers / "table-1.ours.csv").read_text() == Path("reproduction/coin-tossing/table-1.csv").read_text()


def test_no_report_writes_none(ask: Ask) -> None:
    assert "Report" not in ask("coin", "table-1", "--no-report").stdout
    assert not Path("reproduction/report.html").exists()


def test_a_broken_cell_is_run_again(ask: Ask) -> None:
    ask("coin", "table-1", "--no-report")
    broken = min(Path("reproduction/cells").glob("*.json"))
    whole = json.loads(broken.read_text())["rows"]
    broken.write_text("{")
    ask("coin", "table-1", "--no-report")
    assert json.loads(broken.read_text())["rows"] == whole


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("coins",), "paper 'coins' is not one of the papers here; choose one of coin-tossing."),
        (("coin", "table-9"), "coin-tossing has no 'table-9' here; choose one of table-1, table-2, figure-1."),
        (("--out", "papers/coin-tossing/table-1.toml"), "the folder papers/coin-tossing/table-1.toml cannot be made"),
    ],
)
def test_bad_names_end_with_one_sentence(ask: Ask, words: tuple[str, ...], sentence: str) -> None:
    done = ask(*words, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith(f"sottovoce: {sentence}")
    assert done.stderr.count("\n") == 1


def test_a_file_that_cannot_be_written_is_one_sentence(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "record", full)
    done = ask("coin", "table-1", code=2)
    assert "table-1.csv cannot be written (No space left on device)" in done.stderr
    assert "1 of 1 numbers agrees" in done.stdout  # what was found is told all the same
    assert len(list(Path("reproduction/cells").iterdir())) == CELLS
