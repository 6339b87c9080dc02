"""A study that people answer: every report once, kept before it counts, the same state after any restart."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from sottovoce.collector.fold import AHEAD, ENDED, LATE, LETTER, NOWHERE, REPLAYED
from sottovoce.collector.gathering import CLOSED, NO_GROUP, PAUSED, Gathering, Uploaded
from sottovoce.collector.log_connection import LogAway, engine_of
from sottovoce.collector.replaying import check_replay
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import CollectedStudy, collected_of, read_collected
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import drawn, letter_of, pack
from sottovoce.sim import dice

TERMS: dict[str, Any] = {
    "name": "age",
    "groups": ["a", "b"],
    "people": 3000,
    "quantile": {"tau": 0.5, "epsilon": 1.0, "bounds": [0, 120]},
    "rounds": {"grace": 0, "deadline": 100},
}


class Alone:
    """The only study of a log, as one object: what is folded, and what is kept."""

    def __init__(self, terms: dict[str, Any], store: CollectorStore, clock: "Time") -> None:
        self.all = CollectedStudies(store, clock)
        self.one: Gathering = self.all.begin(collected_of(terms), terms)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.one, name)

    def upload(self, body: bytes) -> Uploaded:
        return self.all.upload(body)

    def commit(self) -> None:
        self.all.commit()

    def set_state(self, state: str) -> None:
        self.all.set_state(self.one, state)

    def scrub(self) -> int:
        return sum(self.all.scrub(self.one))


class Time:
    """A clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class People:
    """People who answer whatever is asked, in uploads of some."""

    def __init__(self, seed: int, centre: float = 40.0) -> None:
        self._dice, self._centre = dice(seed), centre

    def words(self, n: int) -> list[int]:
        return [int(word) for word in self._dice.words(n)]

    def upload(self, gathering: Alone, group: int, count: int) -> bytes:
        asked = gathering.asked(group)
        assert asked is not None
        plan: Any = gathering.one.study.plan
        body = gathering.one.identity
        for _ in range(count):
            lot, die, dither, one, two = self.words(5)
            point = drawn(asked["needs"], lot)
            uniform = [(word >> 11) * 2.0**-53 + 2.0**-54 for word in (one, two)]
            value = round(self._centre + 10 * math.sqrt(-2 * math.log(uniform[0])) * math.cos(2 * math.pi * uniform[1]))
            letter = letter_of(
                value, asked["points"][point], plan.flips[0], (die, dither), plan.resolution, asked["periods"][point]
            )
            body += pack(self._dice.words(2).tobytes(), asked["round"], group, point, letter)
        return body

    def answer(self, gathering: Alone, count: int = 50, most: int = 1 << 30) -> None:
        """Let people answer until nobody is asked, or so many have."""
        while not gathering.over and most > 0:
            for group in range(len(gathering.folds)):
                if gathering.asked(group) is not None:
                    uploaded = gathering.upload(self.upload(gathering, group, count))
                    assert (uploaded.accepted, uploaded.refused) == (count, ())
                    most -= count
                gathering.commit()


@contextmanager
def disposed(engine: sa.Engine) -> Iterator[sa.Engine]:
    """Close what an engine has opened."""
    yield engine
    engine.dispose()


def begun(log: CollectorStore, clock: Time | None = None, **other: Any) -> Alone:
    return Alone(TERMS | other, log, clock or Time())


def stands(gathering: Alone) -> list[Any]:
    return [
        (fold.reports, fold.log.rounds, fold.round and (fold.round.number, fold.round.counts, fold.round.ones))
        for fold in gathering.folds
    ] + [gathering.estimate(group) for group in range(len(gathering.folds))]


def test_people_answer_to_the_end_and_the_interval_holds(log: CollectorStore) -> None:
    gathering = begun(log)
    People(1).answer(gathering)
    for group in (0, 1):
        found = gathering.estimate(group)
        low, high = found["interval"]
        assert found["over"]
        assert low < 40 < high
        assert low <= found["estimate"] <= high
        assert found["epsilon"] <= 1.0
        assert found["reports"] >= 3000
    reports = sum(fold.reports for fold in gathering.folds)
    assert check_replay(gathering.study, log)["reports"] == reports
    noted = [json.loads(each) for each in gathering.trajectory]
    assert [each["rounds"] for each in noted if each["group"] == "a"] == list(
        range(1, gathering.folds[0].log.rounds + 1)
    )


@pytest.mark.parametrize("method", ["sequence", "staged", "certified"])
@pytest.mark.parametrize("most", [0, 100, 700, 2500])
def test_a_restart_stands_where_the_log_does(log: CollectorStore, method: str, most: int) -> None:
    other = {"quantile": TERMS["quantile"] | {"method": method}}
    people, gathering = People(2), begun(log, **other)
    people.answer(gathering, most=most)
    again = begun(log, **other)
    assert stands(again) == stands(gathering)
    assert again.card == gathering.card
    people.answer(again)
    assert stands(begun(log, **other)) == stands(again)


def test_what_is_not_committed_is_not_known_after_a_restart(log: CollectorStore) -> None:
    gathering = begun(log)
    gathering.upload(People(3).upload(gathering, 0, 10))
    assert gathering.folds[0].reports == 10
    assert begun(log).folds[0].reports == 0
    gathering.commit()
    assert begun(log).folds[0].reports == 10


def test_the_same_report_again_is_known_and_counts_once(log: CollectorStore) -> None:
    gathering = begun(log)
    body = People(4).upload(gathering, 0, 5)
    first, second = gathering.upload(body), gathering.upload(body)
    assert (first.accepted, first.new) == (5, 5)
    assert (second.accepted, second.refused, second.new) == (5, (), 0)
    gathering.commit()
    again = begun(log)
    assert again.upload(body).new == 0
    assert again.folds[0].reports == 5


def test_each_report_is_refused_for_itself(log: CollectorStore) -> None:
    gathering = begun(log)
    people = People(5)
    asked = gathering.asked(0)
    assert asked is not None
    good = people.upload(gathering, 0, 1)[16:]
    other = good[:-1] + bytes([1 - good[-1]])
    last = len(asked["points"])
    strange = [
        pack(bytes(15) + b"1", asked["round"] + 1, 0, 0, 1),
        pack(bytes(15) + b"2", asked["round"], 0, last, 1),
        pack(bytes(15) + b"3", asked["round"], 0, 0, 2),
        pack(bytes(15) + b"4", asked["round"], 2, 0, 1),
        pack(bytes(15) + b"5", 0, 0, 0, 1),
    ]
    said = gathering.upload(gathering.identity + b"".join([good, other, *strange]))
    assert said.accepted == 1
    assert said.refused == ((1, REPLAYED), (2, AHEAD), (3, NOWHERE), (4, LETTER), (5, NO_GROUP), (6, LATE))
    assert gathering.folds[0].reports == 1
    gathering.commit()
    assert sum(len(reports) for _, reports in log.reports("age")) == 1


def test_a_round_with_all_its_answers_waits_for_those_under_way(log: CollectorStore) -> None:
    clock = Time()
    gathering = begun(log, clock, groups=["a"], rounds={"grace": 2, "deadline": 100})
    people, early = People(6), People(7)
    under_way = early.upload(gathering, 0, 3)
    while gathering.asked(0) is not None:
        gathering.upload(people.upload(gathering, 0, 20))
        gathering.commit()
    clock.now += 1.9
    gathering.commit()
    assert gathering.upload(under_way).accepted == 3
    first = gathering.folds[0].round
    assert first is not None
    assert first.number == 1
    clock.now += 1.9
    gathering.commit()
    assert gathering.folds[0].round is first
    clock.now += 0.2
    gathering.commit()
    second = gathering.folds[0].round
    assert second is not None
    assert second.number == 2
    assert gathering.folds[0].log.reports == gathering.folds[0].reports


def test_a_deadline_closes_with_what_came_but_never_without_an_answer(log: CollectorStore) -> None:
    clock = Time()
    gathering = begun(log, clock, groups=["a"])
    clock.now += 1000
    gathering.commit()
    open_ = gathering.folds[0].round
    assert open_ is not None
    assert open_.number == 1
    people = People(8)
    while not all(open_.counts):
        gathering.upload(people.upload(gathering, 0, 1))
    came = list(open_.counts)
    assert max(open_.needs) > 0
    gathering.commit()
    assert gathering.folds[0].log.rounds == 1
    assert gathering.folds[0].log.reports == sum(came)
    assert gathering.folds[0].log.answered[0][1].tolist() == [came]


def test_a_paused_study_takes_nothing_and_a_closed_one_stays_closed(log: CollectorStore) -> None:
    gathering = begun(log)
    body = People(9).upload(gathering, 0, 1)
    gathering.set_state("paused")
    assert gathering.upload(body).refused == ((0, PAUSED),)
    assert begun(log).asked(0) is None
    gathering.set_state("open")
    assert gathering.upload(body).accepted == 1
    gathering.set_state("closed")
    assert gathering.upload(body).refused == ((0, CLOSED),)
    with pytest.raises(BadInput, match="closed for good"):
        gathering.set_state("open")


def test_scrubbed_letters_are_gone_and_ids_and_sums_stay(log: CollectorStore, place: str) -> None:
    gathering = begun(log)
    People(10).answer(gathering, most=1500)
    before, reports = stands(gathering), sum(len(each) for _, each in log.reports("age"))
    scrubbed = gathering.scrub()
    assert 0 < scrubbed <= reports
    assert sum(len(each) for _, each in log.reports("age")) == reports - scrubbed
    assert stands(begun(log)) == before
    with disposed(engine_of(place)) as engine, engine.connect() as base:
        bodies = base.execute(sa.text("SELECT body FROM reports WHERE scrubbed")).scalars().all()
    assert sum(map(len, bodies)) == 16 * scrubbed


def test_after_the_end_nothing_is_taken(log: CollectorStore) -> None:
    gathering = begun(log, groups=["a"])
    People(11).answer(gathering)
    assert gathering.asked(0) is None
    assert gathering.upload(gathering.identity + pack(bytes(16), 1, 0, 0, 1)).refused == ((0, ENDED),)


def test_a_log_that_was_changed_is_noticed(log: CollectorStore) -> None:
    gathering = begun(log, groups=["a"])
    People(12).answer(gathering, most=500)
    asked = gathering.study.groups
    assert asked == ("a",)
    log.append("age", pack(b"x" * 16, 1, 0, 0, 1))
    log.commit()
    with pytest.raises(BadInput, match="other sums than its reports"):
        check_replay(gathering.study, log)


def test_a_store_that_fails_stops_the_study(log: CollectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    gathering = begun(log)
    body = People(13).upload(gathering, 0, 1)
    gathering.upload(body)

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(log, "append", full)
    with pytest.raises(OSError, match="disk full"):
        gathering.commit()
    monkeypatch.undo()  # there is room again, but what was folded and not kept would leave a gap
    for again in (gathering.commit, lambda: gathering.upload(body)):
        with pytest.raises(LogAway, match="send the same again later"):
            again()
    gathering.all.reopen()
    with pytest.raises(LogAway):
        gathering.upload(body)
    gathering.all.refold()
    (after,) = gathering.all
    assert after.reports == 0
    assert gathering.upload(body).new == 1
    gathering.commit()
    assert begun(log).folds[0].reports == 1


def test_other_terms_under_the_same_name_are_refused(log: CollectorStore) -> None:
    begun(log)
    with pytest.raises(BadInput, match="other terms"):
        begun(log, people=4000)


@pytest.mark.usefixtures("log")
def test_a_log_of_another_version_is_refused(place: str) -> None:
    with disposed(engine_of(place)) as engine, engine.begin() as base:
        base.execute(sa.text("UPDATE about SET version = 99"))
    with pytest.raises(BadInput, match="version 99"):
        CollectorStore(place)


def test_coverage_of_people_who_come_as_they_like(tmp_path: Path) -> None:
    """Rounds close after a deadline with 70 to 110 % of their answers; a certified interval of 95 % covers."""
    study: CollectedStudy = collected_of(TERMS | {"quantile": TERMS["quantile"] | {"method": "certified"}})
    rate, missed = math.tanh(0.5), 0
    source = np.array(dice(14).words(400_000) >> np.uint64(11), dtype=np.float64) * 2.0**-53
    place = 0

    def uniforms(n: int) -> Any:
        nonlocal place
        place = place + n if place + n < len(source) else n
        return source[place - n : place]

    for run in range(40):
        fold: Any = study.fold(bytes([run]), 0.0)
        method = fold.method
        log = method.init()
        while (queries := method.query(log)) is not None:
            asked: Any = queries.messages
            came = np.maximum((asked.counts * (0.7 + 0.4 * uniforms(1)[0])).astype(np.int64), asked.counts > 0)
            ones = np.zeros_like(came)
            for k, point in enumerate(asked.points):
                values = np.floor(80 * uniforms(int(came[0, k])) ** 2)  # whole ages, whose median is 20
                ones[0, k] = int(((values > point) ^ (uniforms(len(values)) < (1 - rate) / 2)).sum())
            log = method.arrive(log, ones, came)
        interval = method.outcome(log).interval
        missed += not interval.low <= 20 <= interval.high
    assert missed <= 10  # binomial(40, .05) is above it with probability 3e-6


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"name": ""}, "no name"),
        ({"name": "a\nb"}, "printable"),
        ({"names": "x"}, "did you mean 'name'"),
        ({"groups": []}, "must be names"),
        ({"groups": ["a", "north\u202e"]}, "printable"),
        ({"groups": ["a\nb"]}, "printable"),
        ({"groups": ["\ud800"]}, "printable"),
        ({"groups": ["g" * 301]}, "printable"),
        ({"groups": ["a", "a"]}, "different names"),
        ({"people": 0}, "whole number"),
        ({"people": True}, "whole number"),
        ({"people": 3}, "3"),
        ({"quantile": {"tau": 0.5}}, "no epsilon"),
        ({"quantile": None}, "must be a table"),
        ({"quantile": {"tau": 1.5, "epsilon": 1.0}}, "tau"),
        ({"quantile": {"tau": 0.5, "epsilon": math.inf}}, "finite"),
        ({"quantile": {"tau": 0.5, "epsilon": -1.0}}, "epsilon"),
        ({"quantile": {"tau": 0.5, "epsilon": 1.0, "method": "walk"}}, "method"),
        ({"quantile": {"tau": 0.5, "epsilon": 1.0, "method": "staged", "until": 1.0}}, "sequence"),
        ({"rounds": {"grace": 10, "deadline": 1}}, "grace"),
        ({"rounds": 5}, "must be a table"),
    ],
    ids=str,
)
def test_a_study_that_cannot_be_is_refused_before_anybody_is_asked(other: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        collected_of(TERMS | other)


def test_a_file_that_is_no_study_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("name = ")
    with pytest.raises(BadInput, match="not TOML"):
        read_collected(bad)
    for path in (tmp_path, tmp_path / "absent.toml"):
        with pytest.raises(BadInput, match="TOML file of a study"):
            read_collected(path)
