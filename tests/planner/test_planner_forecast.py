"""A plan as a result: one line, a table, strict JSON, a picture; and nothing of a record in any of them."""

import json
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.planner.search import least, rounded_up


def test_one_line_and_a_table() -> None:
    found = sv.plan(epsilon=1, width=2, sd=15)
    assert repr(found).count("\n") == 0
    assert f"{found.people:,} people at epsilon 1, about" in repr(found)
    text = found.summary()
    assert max(map(len, text.splitlines())) <= 78
    assert f"{found.people:,}  <- found" in text
    assert "by other shapes" in text
    assert "nobody so far" in text
    assert "central: about" in text
    assert str(found) == text
    assert found._repr_html_().startswith("<pre>")


def test_plain_values_are_strict_json() -> None:
    found = sv.plan(tau=0.9, epsilon={"north": 1.0, "south": 2.0}, people={"north": 2_000, "south": 9_000}, sd=15)
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (read["plan"], read["people"], read["found"]) == (True, 11_000, "width")
    assert read["people_by_site"] == {"north": 2_000, "south": 9_000}
    assert len(read["table"]["widths"]) == len(read["table"]["people"])
    assert read["table"]["epsilon"] == ["x 0.5", "x 1", "x 2"]


@pytest.mark.parametrize("question", ["quantile", "conformal"])
def test_the_picture(question: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    known = {"sd": 15.0} if question == "quantile" else {"sites": 5}
    found = sv.plan(question, epsilon=1.0, people=1_000 if question == "conformal" else 3_000, **known)
    path = found.plot(tmp_path / "plan.svg")
    text = path.read_text()
    assert "<svg" in text
    left, right = found.draw().axes
    assert len([line for line in left.lines if len(line.get_xdata()) > 1]) == len(found.table.people)
    assert len(right.patches) == 1 + len(found.yardsticks)


def test_an_open_plan_is_drawn_too(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = sv.plan(tau=0.99, epsilon=1.0, people=200_000, method="certified", sd=15.0)
    assert found.plot(tmp_path / "open.png").stat().st_size > 5_000


def test_a_search_finds_the_least_in_few_steps() -> None:
    asked: list[float] = []

    def enough(n: float) -> bool:
        asked.append(n)
        return n >= 123_456

    found = least(enough, 10.0, 1e12)
    assert found is not None
    assert 123_456 <= found <= 123_456 * 1.002
    assert len(asked) < 25
    assert least(lambda n: n >= 1e13, 10.0, 1e12) is None
    assert rounded_up(123_456.0, 1.0) == 124_000


def test_columns_of_the_table_never_touch() -> None:
    text = sv.plan("regression", people=20_000, width=0.1, features={"age": (18, 90)}).summary()
    head = next(line for line in text.splitlines() if "people  " in line)
    assert head.count("   epsilon") + head.count("  epsilon") >= 5
    assert "1epsilon" not in head
    assert max(map(len, text.splitlines())) <= 78
