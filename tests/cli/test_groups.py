"""`sottovoce groups` and `--weights`: what they print, and which columns of groups and weights are refused first."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.api.quantile import federated, groups
from sottovoce.cli import app
from sottovoce.server.quantile.groups import result

N = 3_000
SOURCE = sv.sim.dice(1).generator()
WAITS = SOURCE.gamma(2.0, 10.0, N).round(2).tolist()
NAMES, WEIGHTS = ["a", "b", "c"], ["0.5", "1", "2.5"]
BAD = 17  # the row with the cell that is looked at

Asked = Callable[..., Any]


def text(group: str | None = None, weight: str | None = None, mark: str = ",") -> str:
    """Write a file whose columns are parted by a mark, with another cell in one row."""
    rows = [[str(wait), NAMES[i % 3], WEIGHTS[i % 3]] for i, wait in enumerate(WAITS)]
    if mark == ";":
        rows = [[cell.replace(".", ",") for cell in row] for row in rows]
    rows[BAD] = [rows[BAD][0], rows[BAD][1] if group is None else group, rows[BAD][2] if weight is None else weight]
    return "\n".join(mark.join(row) for row in [["wait", "clinic", "w"], *rows])


@pytest.fixture
def ask(tmp_path: Path) -> Asked:
    def asked(content: str, *words: str, command: str = "groups") -> Any:
        (tmp_path / "waits.csv").write_text(content)
        usual = ["--value", "wait", "--tau", "0.5", "--epsilon", "3", "--no-progress"]
        return CliRunner().invoke(app, [command, str(tmp_path / "waits.csv"), *usual, *words])

    return asked


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test fail in which anybody is asked."""

    def spend(*_: Any) -> None:
        raise AssertionError

    for module in (groups, federated):
        monkeypatch.setattr(module, "spend", spend)


def test_the_table_the_picture_and_the_page(ask: Asked, tmp_path: Path) -> None:
    done = ask(text(), "--group", "clinic", "--plot", str(tmp_path / "g.svg"), "--report", str(tmp_path / "g.html"))
    assert done.exit_code == 0, done.output
    for word in ("by clinic", "All equal:", "all together", "Private:       yes", "Groups:"):
        assert word in done.stdout
    assert (tmp_path / "g.svg").stat().st_size > 1000
    assert "clinic" in (tmp_path / "g.html").read_text()


def test_json_is_one_object_with_the_comparison_that_was_asked_for(ask: Asked) -> None:
    found = json.loads(ask(text(), "--group", "clinic", "--weights", "w", "--compare", "b", "--json").stdout)
    assert [row["group"] for row in found["groups"]] == NAMES
    assert found["compared"]["to"] == "b"
    assert [row["group"] for row in found["compared"]["groups"]] == ["a", "c"]
    assert found["simultaneous"] is True


@pytest.mark.usefixtures("nobody")
def test_a_comparison_of_one_group_that_is_left_is_refused_first(ask: Asked, nobody: None) -> None:
    two = "wait,clinic\n" + "".join(f"{wait},{'a' if i > 12 else 'b'}\n" for i, wait in enumerate(WAITS))
    done = ask(two, "--group", "clinic", "--compare", "others")
    assert done.exit_code != 0
    assert "only one group to compare" in done.output


def test_a_comparison_that_fails_does_not_cost_the_answer(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: Any, *_: Any) -> None:
        if name == "b":
            raise sv.BadInput("no comparison")

    monkeypatch.setattr(result, "check_group", fail)
    done = ask(text(), "--group", "clinic", "--compare", "b", "--json")
    assert json.loads(done.stdout)["groups"]


def test_a_plan_asks_nobody(ask: Asked) -> None:
    found = json.loads(ask(text(), "--group", "clinic", "--weights", "w", "--explain", "--json").stdout)
    assert found["plan"] is True
    assert [group["name"] for group in found["groups"]] == NAMES


ONE = "every weight must be a positive number"
REFUSED = {  # the cell, and what is said of it
    "nothing": ("", "a missing value"),
    "NA": ("NA", "a missing value"),
    "text": ("heavy", ONE),
    "zero": ("0", "not positive and finite"),
    "negative": ("-1", "not positive and finite"),
    "infinite": ("inf", "an infinite number"),
    "too large for a double": ("1e400", "an infinite number"),
    "a symbol": ("<5", ONE),
    "a truth value": ("true", ONE),
    "with its unit": ("3 kg", "a number with a unit"),
    "a date": ("2020-01-01", "a date"),
    "far from the others": ("1e12", "differ by more than a factor"),
}


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("limits", [(), ("--censored", "<5,>40")], ids=["", "limits"])
@pytest.mark.parametrize("command", ["groups", "quantile"])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_weight_that_does_not_count_is_refused_in_one_sentence(
    ask: Asked, kind: str, command: str, limits: tuple[str, ...]
) -> None:
    cell, said = REFUSED[kind]
    group = ("--group", "clinic") if command == "groups" else ()
    done = ask(text(weight=cell), *group, "--weights", "w", *limits, command=command)
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    assert line.startswith("sottovoce: Column 'w' of ")
    assert said in line
    assert f"in row {BAD + 1}: " in line or "differ by" in line
    assert str(WAITS[BAD]) not in line
    assert not cell or f" {cell} " not in line
    assert "--censored" not in line


@pytest.mark.usefixtures("nobody")
def test_weights_are_read_as_the_file_writes_numbers(ask: Asked) -> None:
    words = ("--group", "clinic", "--weights", "w", "--explain", "--json")
    point, comma = (json.loads(ask(text(mark=mark), *words).stdout) for mark in ",;")
    assert point["groups"] == comma["groups"]
    limited = json.loads(ask(text(mark=";"), *words, "--censored", "<5").stdout)
    assert [group["records"] for group in limited["groups"]] == [N / 3] * 3
    mixed = ask(text(weight='"1,5"'), *words)
    assert mixed.exit_code == 2
    assert "a number with a decimal comma in row 18" in mixed.stderr


def test_rows_without_a_weight_or_a_group_are_dropped_and_counted(ask: Asked) -> None:
    for content in (text(weight=""), text(group="")):
        done = ask(content, "--group", "clinic", "--weights", "w", "--drop-missing")
        assert done.exit_code == 0, done.output
        assert "1 rows without a site, group or weight" in " ".join(done.stdout.split())
        assert "2,999 records" in done.stdout


GROUPS = {
    "nothing": ("", "holds a missing value in row 18"),
    "blank": ("  ", "group 1 has a blank name"),
    "invisible": ("a​", "invisible character in its name"),
    "control": ("\x07", "control or invisible character"),
    "long": ("é" * 400, "a name of 400 characters"),
}


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("kind", GROUPS)
def test_a_group_that_cannot_be_named_is_refused_in_one_sentence(ask: Asked, kind: str) -> None:
    cell, said = GROUPS[kind]
    done = ask(text(group=cell), "--group", "clinic")
    assert done.exit_code == 2, done.output
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--group", "w", "--weights", "w"), "named twice"),
        (("--group", "nowhere"), "has no column 'nowhere'"),
        (("--group", "wait"), "named twice"),
        (("--group", "clinic", "--compare", "d"), "there is no group 'd'"),
        (("--group", "clinic", "--censored", "<5", "--compare", "a"), "values below 5 are known as <5 only"),
        (("--group", "clinic", "--shrinkage", "much"), "shrinkage"),
        (("--group", "clinic", "--shrinkage", "average"), "--each"),
        (("--group", "clinic", "--flag", "w"), "--censored"),
    ],
)
def test_bad_input_is_one_sentence(ask: Asked, words: tuple[str, ...], said: str) -> None:
    done = ask(text(), *words)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("sottovoce: ")
    assert said in done.stderr


@pytest.mark.usefixtures("nobody")
def test_a_group_whose_values_are_all_missing_is_named(ask: Asked) -> None:
    rows = [f"{'' if i % 3 == 1 else wait},{NAMES[i % 3]}" for i, wait in enumerate(WAITS)]
    done = ask("\n".join(["wait,clinic", *rows]), "--group", "clinic", "--drop-missing")
    assert done.exit_code == 2
    assert "group 'b' has no records that can be used: leave it out" in done.stderr


def test_values_beyond_limits_are_symbols_in_every_group(ask: Asked) -> None:
    low = np.array(WAITS)
    rows = [f"{'<8' if wait < 8 else wait},{'b' if i % 2 else 'a'}" for i, wait in enumerate(low * 1.0)]
    rows += [f"{'<8' if wait < 24 else wait},few" for wait in low.tolist()]
    done = ask("\n".join(["wait,clinic", *rows]), "--group", "clinic", "--censored", "<8", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    told = {row["group"]: (row["low"], row["estimate"], row["high"]) for row in found["groups"]}
    assert told["few"] == (None, None, 8.0)
    assert all(None not in told[name] for name in "ab")
    assert {row["method"] for row in found["groups"]} == {"certified"}
    assert found["equal"]["pvalue"] < 0.05
    assert found["compared"] is None
