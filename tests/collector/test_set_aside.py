"""A study of which a round cannot be closed is set aside, and the other studies of its collector go on."""

import pytest
from tests.collector.test_gathering import TERMS, Alone, People, Time, begun

from sottovoce.collector.gathering import ASIDE
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.study import collected_of


def test_a_study_that_fails_is_set_aside_and_no_other_stops(
    log: CollectorStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gathering, people = begun(log), People(7)
    other = gathering.all.begin(collected_of(TERMS | {"name": "weight"}), TERMS | {"name": "weight"})
    rest = Alone.__new__(Alone)
    rest.all, rest.one = gathering.all, other

    def fails(now: float) -> None:
        raise ArithmeticError("40 years")

    monkeypatch.setattr(gathering.folds[0], "close", fails)
    body = people.upload(gathering, 0, 30)
    assert gathering.upload(body).accepted == 30
    gathering.commit()  # what was taken is kept
    assert gathering.asked(0) is None
    assert {why for _, why in gathering.upload(body).refused} == {ASIDE}
    assert "ArithmeticError" in caplog.text
    assert "40 years" not in caplog.text
    people.answer(rest, most=200)
    assert other.reports == 200
    again = Alone(TERMS, log, Time())
    assert again.one.reports == 30  # a program that can close the round goes on
    again.commit()
    assert again.estimate(0)["rounds"] == 1
