"""A session asks each question once, tells what it will cost, and says in a sentence what went wrong."""

import json
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.explore.conftest import MARKS, N, question

import sottovoce as sv
from sottovoce.api.explored import ExploredFile
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.explore.session import HELD, ExploreSession, NotNow, UnknownRun

ID, OTHER = "0" * 32, "1" * 32


def done(session: ExploreSession, id: str, asked: dict[str, Any]) -> dict[str, Any]:
    session.begin(id, asked)
    session.wait()
    return session.run(id).on_page()


def test_what_is_public_of_the_file(session: ExploreSession) -> None:
    about = session.about()
    assert (about["file"], about["rows"], about["limit"]) == ("marked.csv", 8000, None)
    assert [(each["name"], each["kind"], each["missing"]) for each in about["columns"]] == [
        ("wait", "numbers", 160),
        ("age", "whole numbers", 0),
        ("score", "numbers", 0),
        ("clinic", "categories", 0),
        ("name", "categories", 0),
        ("day", "dates", 0),
    ]
    assert not [mark for mark in MARKS if mark in json.dumps(about)]


def test_a_plan_is_that_of_the_planner_and_asks_nobody(session: ExploreSession, file: ExploredFile) -> None:
    asked = question(site="clinic", taus=[0.9, 0.5], method="staged", epsilon=4, guess={"kind": "sd", "sd": "14"})
    found = session.plan(asked)
    sizes = {
        name: sum(1 for k in range(N) if k % 50 and bool(k % 3) == north)
        for name, north in (("north", True), ("south", False))
    }
    by_hand = sv.plan(epsilon=4, people=sizes, tau=[0.5, 0.9], sd=14)
    assert [each["width"] for each in found["widths"]] == [each.value for each in by_hand.widths]
    assert [each["low"] for each in found["widths"]] == [each.low for each in by_hand.widths]
    assert [each["of"] for each in found["widths"]] == [0.5, 0.9]
    assert (found["records"], found["missing"], dict(found["sites"]["listed"])) == (7840, 160, sizes)
    assert found["cost"] == {"before": 0.0, "after": 4.0, "limit": None, "refused": None}
    assert found["truth"] == pytest.approx(0.98201, abs=1e-5)
    assert file.spent == 0.0


def test_without_a_guess_widths_are_in_levels(session: ExploreSession) -> None:
    (width,) = session.plan(question())["widths"]
    assert width["width"] is None
    assert 0.3 < width["low"] < 0.5 < width["high"] < 0.7


@pytest.mark.parametrize(
    ("value", "guess", "text"),
    [
        ("day", {"kind": "bounds", "low": "2013-01-01", "high": "2013-12-31"}, "days"),
        ("day", {"kind": "sd", "sd": "8d"}, "days"),
        ("day", {"kind": "sd", "sd": "8"}, "days"),
        ("age", {"kind": "sd", "sd": "20"}, ""),
        ("score", {"kind": "bounds", "low": "-5", "high": "5"}, ""),
    ],
)
def test_guesses_are_in_the_unit_of_the_column(
    session: ExploreSession, value: str, guess: dict[str, str], text: str
) -> None:
    (width,) = session.plan(question(value=value, guess=guess))["widths"]
    assert width["text"].endswith(text)
    assert width["width"] > 0


def test_what_records_show_goes_to_their_holder_alone(tmp_path: Path) -> None:
    (tmp_path / "ties.csv").write_text("price\n" + "".join(f"{k % 40 / 4}\n" for k in range(8000)))
    hints: list[str] = []
    session = ExploreSession(ExploredFile(tmp_path / "ties.csv"), hints.append)
    asked = question(value="price", method="staged")
    found = [session.plan({**asked, "taus": [tau]}) for tau in (0.5, 0.6)]
    assert hints == [
        "column price: many records are tied, and ties spoil the interval: fill in “Rounded to”, the step they are "
        "rounded to."
    ]
    assert "tied" not in json.dumps(found)
    assert "tied" not in json.dumps(done(session, ID, asked))


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"x": [4.25] * 5000}, "all 5,000 records have one and the same value"),
        ({"x": [*range(4999), float("inf")]}, "holds an infinite number in row 5000"),
        ({"x": list(range(5000)), "s": ["a"] * 4999 + ["b"]}, "site 'b' has only one record"),
        ({"x": [*range(2500)] * 2, "s": ["a"] * 2500 + ["b"] * 2500}, "sites 'a' and 'b' share records"),
    ],
)
def test_a_refusal_that_says_what_records_hold_goes_to_their_holder(
    tmp_path: Path, columns: dict[str, Any], why: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    hints: list[str] = []
    session = ExploreSession(ExploredFile(tmp_path / "x.parquet"), hints.append)
    asked = question(value="x", site="s" if "s" in columns else None)
    assert session.plan(asked) == {"refused": HELD}
    for order in (session.sites, lambda given: session.begin(ID, given)):
        with pytest.raises(BadInput) as refused:
            order(asked)
        assert str(refused.value) == HELD
    assert len(hints) == 1
    assert why in hints[0]


def test_a_run_is_asked_once_whoever_sends_it_again(session: ExploreSession, file: ExploredFile) -> None:
    first = done(session, ID, question())
    assert first["state"] == "done"
    (answer,) = first["result"]["estimates"]
    assert answer["low"] < 16.8 < answer["high"]  # certified: wrong with probability far below .05 for loaded dice
    assert session.begin(ID, question()).on_page() == first
    assert file.spent == 2.0
    with pytest.raises(BadInput, match="has asked something else"):
        session.begin(ID, question(epsilon=1.0))
    assert session.plan(question())["asked_before"] == 1
    assert session.plan(question(epsilon=1.0))["asked_before"] is None
    second = done(session, OTHER, question())
    assert (second["number"], second["result"]["in_all"]) == (2, 4.0)
    assert [each["id"] for each in session.runs()["runs"]] == [ID, OTHER]
    assert len(session.headlines()) == 2


def test_many_clicks_at_once_are_one_run(session: ExploreSession, file: ExploredFile) -> None:
    threads = [threading.Thread(target=session.begin, args=(ID, question())) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.wait()
    assert len(session.runs()["runs"]) == 1
    assert file.spent == 2.0


def test_one_question_is_asked_at_a_time(session: ExploreSession, monkeypatch: pytest.MonkeyPatch) -> None:
    go, run = threading.Event(), ExploredFile.run

    def slow(*args: Any) -> Any:
        assert go.wait(20)
        return run(*args)

    monkeypatch.setattr(ExploredFile, "run", slow)
    session.begin(ID, question())
    assert session.run(ID).on_page()["state"] == "asking"
    with pytest.raises(NotNow, match="another question is being asked"):
        session.begin(OTHER, question())
    with pytest.raises(UnknownRun, match="has no result"):
        session.result(ID)
    go.set()
    session.wait()
    assert done(session, OTHER, question())["number"] == 2


def test_beyond_the_limit_nothing_is_asked(session: ExploreSession, file: ExploredFile) -> None:
    with sv.limit(epsilon=3):
        assert session.about()["limit"] == 3.0
        done(session, ID, question())
        plan = session.plan(question(value="age"))
        assert plan["cost"]["before"] == 2.0
        assert "would have cost epsilon 4 in all" in plan["cost"]["refused"]
        assert plan["cost"]["refused"].endswith("or start again with a higher --limit.")
        with pytest.raises(BadInput, match="the limit is 3"):
            session.begin(OTHER, question(value="age"))
    assert file.spent == 2.0
    assert [each["id"] for each in session.runs()["runs"]] == [ID]


@pytest.mark.parametrize(
    ("error", "state", "said"),
    [
        (SearchFailed("the search is lost"), "failed", "the search is lost (the records that answered are spent)."),
        (BadInput("give public bounds= for it."), "refused", "give public limits for it."),
        (KeyError("Zebulon 987654"), "failed", "an unexpected KeyError at "),
        (MemoryError(), "failed", "an unexpected MemoryError at "),
    ],
)
def test_what_goes_wrong_on_the_way_is_a_sentence(
    session: ExploreSession, monkeypatch: pytest.MonkeyPatch, error: Exception, state: str, said: str
) -> None:
    def failing(*_: Any) -> None:
        raise error

    monkeypatch.setattr(ExploredFile, "run", failing)
    found = done(session, ID, question())
    assert found["state"] == state
    assert found["why"].startswith(said)
    assert not [mark for mark in MARKS if mark in json.dumps(found)]
    assert session.headlines() == []


BAD: tuple[Any, ...] = (
    None, [], "x", 5, {}, {"value": "wait"}, question(value=5), question(value=None), question(value=""),
    question(value="x" * 300), question(value="name"), question(value="nowhere"), question(extra=1),
    question(taus=[]), question(taus=[0.1] * 6), question(taus=[0.5, 0.5]), question(taus=["0.5"]),
    question(taus=[2.0]), question(taus=[0.0001], epsilon=0.1, method="staged"),
    question(taus=[0.2, 0.5], method="sequence"),
    question(epsilon=0), question(epsilon=-1), question(epsilon=50), question(epsilon="1"), question(epsilon=None),
    question(epsilon=1e-300), question(method="regression"), question(level=2), question(level=0), question(kind="x"),
    question(site="wait"), question(site="nowhere"), question(only="nowhere"), question(site="clinic", only="west"),
    question(resolution="-1"), question(resolution="x"), question(resolution="1e-320"),
    question(value="day", kind="counts"), question(value="day", guess={"kind": "sd", "sd": "8x"}),
    question(guess={"kind": "density"}), question(guess={"kind": "sd", "sd": ""}),
    question(guess={"kind": "sd", "sd": "-4"}), question(guess={"kind": "sd", "sd": "nan"}),
    question(guess={"kind": "bounds", "low": "1", "high": ""}),
    question(guess={"kind": "bounds", "low": "9", "high": "1"}),
)  # fmt: skip


@pytest.mark.parametrize("asked", BAD, ids=range(len(BAD)))
def test_what_cannot_be_asked_is_one_sentence_and_costs_nothing(
    session: ExploreSession, file: ExploredFile, asked: Any
) -> None:
    said = session.plan(asked)
    assert set(said) == {"refused"}
    assert said["refused"]
    assert "\n" not in said["refused"]
    assert "=" not in said["refused"]
    assert not [mark for mark in MARKS if mark in said["refused"]]
    with pytest.raises(BadInput):
        session.begin(ID, asked)
    assert session.runs() == {"runs": [], "spent": 0.0}
    assert file.spent == 0.0


@pytest.mark.parametrize("id", [None, 7, "", "x", "../../etc/passwd", "0" * 65, "Z" * 32])
def test_a_run_has_an_id_of_its_own(session: ExploreSession, id: Any) -> None:
    with pytest.raises(BadInput, match="needs an id"):
        session.begin(id, question())


def test_a_result_is_kept_as_json_and_as_a_report(session: ExploreSession, tmp_path: Path) -> None:
    done(session, ID, question(taus=[0.25, 0.75], site="clinic"))
    (tmp_path / "result.json").write_text(session.result(ID))
    again = sv.load(tmp_path / "result.json")
    assert again.headline == session.headlines()[0]
    assert again.epsilon_in_all == {"north": 2.0, "south": 2.0}
    page = session.report(ID)
    assert page.startswith("<!DOCTYPE html>")
    assert "Privacy statement" in page
    with pytest.raises(UnknownRun):
        session.report(OTHER)


def test_a_plan_is_quick(session: ExploreSession) -> None:
    session.plan(question())
    took = []
    for k in range(20):
        begun = time.perf_counter()
        session.plan(question(taus=[0.3 + k / 100], guess={"kind": "sd", "sd": "14"}))
        took.append(time.perf_counter() - begun)
    assert sorted(took)[10] < 0.2


KINDS: dict[str, Any] = {
    "wait": pa.array([k % 500 for k in range(N)], pa.duration("s")),
    "clock": pa.array([k % 80_000 for k in range(N)], pa.time32("s")),
    "at": pa.array([1_700_000_000 + 7 * k for k in range(N)], pa.timestamp("s", "Europe/Berlin")),
    "price": pa.array([Decimal(k % 900) / 4 for k in range(N)], pa.decimal128(9, 2)),
    "short": pa.array([None if k % 9 else k / 8 for k in range(N * 9)][:N], pa.float32()),
    "count": pa.array([k % 60 for k in range(N)], pa.uint64()),
    "yes": pa.array([k % 3 > 0 for k in range(N)]),
    "grade": pa.DictionaryArray.from_arrays([k % 4 for k in range(N)], ["E", "D", "C", "A"], ordered=True),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_value_is_planned_asked_and_told(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({name: KINDS[name]}), tmp_path / "x.parquet")
    session = ExploreSession(ExploredFile(tmp_path / "x.parquet"))
    timed = name in ("wait", "clock", "at")
    guess = {} if name in ("yes", "grade") else {"guess": {"kind": "sd", "sd": "100s" if timed else "100"}}
    asked = question(value=name, epsilon=5, taus=[0.7], **guess)
    plan = session.plan(asked)
    assert plan["widths"][0]["low"] < 0.7 < plan["widths"][0]["high"]
    assert (plan["widths"][0]["width"] is not None) == bool(guess)
    found = done(session, ID, asked)
    assert found["state"] == "done", found["why"]
    (answer,) = found["result"]["estimates"]
    assert answer["low"] <= answer["estimate"] <= answer["high"]
    assert answer["text"]["estimate"] in session.report(ID)
    json.dumps(found, allow_nan=False)
