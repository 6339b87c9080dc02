"""A regression by devices: rounds that grow, letters booked as asked, and the same state after any restart."""

import math
from typing import Any

import pytest

from sottovoce.client.device import make_report
from sottovoce.collector.fold import AGAIN, AHEAD, ENDED, LATE, LETTER, REPLAYED, TAKEN, ClosedRound
from sottovoce.collector.regression_fold import RegressionFold
from sottovoce.collector.replaying import check_replay
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import collected_of
from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import card_text, identity, read_card
from sottovoce.sim import dice

ASKED: dict[str, Any] = {
    "response": "wait",
    "tau": 0.5,
    "epsilon": 4.0,
    "features": {"age": [18, 90], "distance": [0, 30]},
    "density": 0.08,
    "size": 20.0,
}
TERMS: dict[str, Any] = {
    "name": "waits",
    "people": 2000,
    "regression": ASKED,
    "rounds": {"grace": 0, "deadline": 100},
}
SEARCHES = {key: value for key, value in ASKED.items() if key not in ("density", "size")}


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dice(77)
    monkeypatch.setattr(SystemEntropy, "words", lambda _, n: source.words(n))


class Rows:
    """Rows of people: whole ages, distances of which a third is zero, waits in whole minutes."""

    def __init__(self, seed: int) -> None:
        self._generator = dice(seed).generator()

    def row(self) -> dict[str, float]:
        draw = self._generator
        age, far = int(draw.integers(18, 91)), round(float(draw.gamma(2, 5)), 1) * (draw.random() > 1 / 3)
        far = min(far, 30.0)
        return {"wait": float(round(5 + 0.2 * age + 1.5 * far + draw.exponential(6))), "age": age, "distance": far}


class Slow:
    """People of whom one in five answers some steps after being asked; the log is restarted at will."""

    def __init__(self, log: CollectorStore, seed: int, terms: dict[str, Any] = TERMS) -> None:
        self.terms, self._log, self._rows = terms, log, Rows(seed)
        self._lots = dice(seed + 1).generator()
        self.restart()
        self.under_way: list[bytes] = []
        self.sent = self.late = 0

    def restart(self) -> None:
        self.studies = CollectedStudies(self._log, lambda: 1000.0)
        self.one = self.studies.begin(collected_of(self.terms), self.terms)
        self.card = read_card(self.one.card)

    def send(self, report: bytes) -> Any:
        fold: Any = self.one.folds[0]
        late = fold.late is not None and int.from_bytes(report[32:36], "big") == fold.late.number
        said = self.one.upload(report)
        self.sent += said.accepted
        self.late += late * said.accepted
        return said

    def step(self) -> None:
        asked = self.one.asked(0)
        if asked is not None:
            query = {"study": self.one.identity.hex(), "group": 0, **asked}
            report = make_report(self.card, self.one.identity, query, self._rows.row())
            if self._lots.random() < 0.2:
                self.under_way.append(report)
            else:
                self.send(report)
        while len(self.under_way) > 6:
            self.send(self.under_way.pop(0))
        if self._lots.random() < 0.2:
            self.studies.commit()


def stands(fold: Any) -> Any:
    rounds = [each and (each.number, each.words, each.letters, each.segments) for each in (fold.round, fold.late)]
    return codec.to_bytes(fold.states), rounds, fold.reports, fold.estimate()


@pytest.mark.parametrize(
    "asked",
    [ASKED, SEARCHES, ASKED | {"tau": [0.25, 0.3]}, ASKED | {"tau": [0.3, 0.7]}],
    ids=["given", "searched", "split levels", "levels"],
)
def test_a_restart_and_a_replay_stand_where_the_log_does(log: CollectorStore, asked: dict[str, Any]) -> None:
    people = Slow(log, 5, TERMS | {"regression": asked})
    steps = 0
    while not people.one.over:
        people.step()
        steps += 1
        if steps % 400 == 0:
            people.studies.commit()
            before = stands(people.one.folds[0])
            people.restart()
            assert stands(people.one.folds[0]) == before
    fold: Any = people.one.folds[0]
    assert isinstance(fold, RegressionFold)
    found = people.one.estimate(0)
    assert found["over"]
    assert found["reports"] == people.sent >= 2000
    assert found["method"] == "regression"
    assert 0 < found["late"] <= people.late
    again = check_replay(people.one.study, log)
    assert (again["reports"], again["replayed"], again["rounds_taken_as_kept"]) == (people.sent, people.sent, 0)
    for level in found["levels"]:
        names = [each["name"] for each in level["coefficients"]]
        assert names == ["intercept", "age", "distance"]
        assert all(math.isfinite(each["estimate"]) for each in level["coefficients"])
        assert all((each["interval"] is None) == (each["why"] is not None) for each in level["coefficients"])


def test_scrubbed_letters_are_gone_and_the_state_stays(log: CollectorStore) -> None:
    people = Slow(log, 6)
    while people.sent < 900:
        people.step()
    people.studies.commit()
    before = stands(people.one.folds[0])
    assert 0 < sum(people.studies.scrub(people.one)) < people.sent
    people.restart()
    assert stands(people.one.folds[0]) == before
    while not people.one.over:
        people.step()
    assert sum(people.studies.scrub(people.one)) > 0
    assert not list(log.reports("waits"))
    assert check_replay(people.one.study, log)["reports"] == people.sent


def fold_of(terms: dict[str, Any] = TERMS) -> tuple[Any, Any]:
    study = collected_of(terms)
    fold = study.fold(b"", 0.0, "ab")
    assert isinstance(fold, RegressionFold)
    card = study.card("ab")

    def report() -> tuple[bytes, int, int, int]:
        query = {"study": identity(card_text(card)).hex(), "group": 0, **(fold.asked or {})}
        body = make_report(card, identity(card_text(card)), query, rows.row())[16:]
        return body[:16], int.from_bytes(body[16:20], "big"), int.from_bytes(body[22:24], "big"), body[24]

    rows = Rows(9)
    return fold, report


def test_rounds_are_sixteen_people_and_then_three_percent() -> None:
    fold, report = fold_of(TERMS | {"people": 1500})
    sizes: list[int] = []
    while not fold.over:
        assert fold.asked is not None
        needs = fold.asked["needs"][0]
        for _ in range(needs):
            assert fold.take(*report(), 0.0) == TAKEN
        assert fold.asked is None
        assert fold.close(0.0) is not None
        sizes.append(needs)
    assert sizes[:33] == [16] * 33
    so_far = 0
    for size in sizes:
        assert size in (max(16, int(0.03 * so_far)), 1500 - so_far)
        so_far += size
    assert so_far == 1500
    assert fold.take(bytes(16), len(sizes), 0, 0, 0.0) == ENDED


def test_a_report_is_taken_once_and_only_of_its_alphabet() -> None:
    fold, report = fold_of()
    id, round, point, letter = report()
    assert fold.take(id, round, 255, 255, 0.0) == LETTER
    assert fold.take(id, round, point, letter, 0.0) == TAKEN
    assert fold.take(id, round, point, letter, 0.0) == AGAIN
    assert fold.take(id, round, point, letter ^ 1, 0.0) in (REPLAYED, LETTER)
    assert fold.take(id, round + 1, point, letter, 0.0) == AHEAD
    assert fold.take(id, 0, point, letter, 0.0) == LATE
    assert fold.reports == 1
    assert fold.close(0.0) is None
    assert fold.close(100.0) is not None  # its deadline, with one answer
    assert fold.take(id, round, point, letter, 0.0) == AGAIN
    other = report()
    assert other[1] == round + 1
    assert fold.take(*other, 0.0) == TAKEN
    assert fold.close(1000.0) is not None
    assert fold.take(id, round, point, letter, 0.0) == LATE


def test_a_deadline_never_closes_a_round_that_nobody_answered() -> None:
    fold, _ = fold_of()
    assert fold.close(1e9) is None


def test_what_a_round_cannot_have_come_to_is_refused() -> None:
    fold, report = fold_of()
    other, _ = fold_of(TERMS | {"regression": ASKED | {"features": {"age": [18, 90]}}})
    fold.take(*report(), 0.0)
    closed = fold.close(100.0)
    assert closed is not None
    fresh, _ = fold_of()
    for sums in ("", "[]", "7", '["x"]', '[0, "!!"]', '[-1, "' + closed.sums.split('"')[1] + '"]'):
        with pytest.raises(BadInput, match="does not ask"):
            fresh.follow(ClosedRound(closed.round, sums), 0.0)
    with pytest.raises(BadInput, match="does not ask"):
        fresh.follow(ClosedRound(7, closed.sums), 0.0)
    with pytest.raises(BadInput, match="another study"):
        other.follow(closed, 0.0)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (7, "must be a table"),
        ({}, "no response"),
        (ASKED | {"features": []}, "table of up to"),
        (ASKED | {"features": {}}, "table of up to"),
        (ASKED | {"features": {"wait": [0, 1]}}, "one of its features"),
        (ASKED | {"features": {"a\nb": [0, 1]}}, "names of up to"),
        (ASKED | {"features": {"age": [90, 18]}}, "low < high"),
        (ASKED | {"features": {"age": [18]}}, "age"),
        (ASKED | {"epsilon": math.inf}, "finite"),
        (ASKED | {"epsilon": 0.0}, "epsilon"),
        (ASKED | {"tau": 1.0}, "tau"),
        (ASKED | {"taus": 0.5}, "did you mean 'tau'"),
        (ASKED | {"channel": "open"}, "not private"),
        (ASKED | {"inference": "higrad"}, "does not know"),
        (ASKED | {"epsilon": 0.001}, "needs about"),
        (SEARCHES | {"epsilon": 1.0}, "location and scale"),
        (
            ASKED | {"epsilon": 16.0, "channel": "cq:4,14", "features": {f"x{k}": [0, 1] for k in range(14)}},
            "room for 16,777,216 letters",
        ),
    ],
    ids=str,
)
def test_a_regression_that_cannot_be_is_refused_before_anybody_is_asked(asked: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        collected_of(TERMS | {"regression": asked})


def test_a_study_asks_one_thing() -> None:
    quantile = {"tau": 0.5, "epsilon": 1.0}
    for other in ({"quantile": quantile}, {"regression": None}):
        with pytest.raises(BadInput):
            collected_of(TERMS | other)
    with pytest.raises(BadInput, match="needs one table"):
        collected_of({"name": "x", "people": 100})
