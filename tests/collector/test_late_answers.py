"""Answers that come after their round has closed: taken under it while the next one is open, once, and never later."""

import json
import math
from typing import Any

import numpy as np
import pytest

from sottovoce.collector.fold import ENDED, LATE, REPLAYED, Pauses, QuantileFold
from sottovoce.collector.replaying import check_replay
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import collected_of
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
SEVERAL = {"tau": [0.5, 0.8], "epsilon": 1.0, "bounds": [0, 120]}


class Slow:
    """People of whom one in five answers a good while after being asked; the log is restarted at will."""

    def __init__(self, log: CollectorStore, seed: int, **other: Any) -> None:
        self.terms, self._log, self._dice = TERMS | other, log, dice(seed)
        self.restart()
        self.under_way: list[tuple[int, bytes]] = []
        self.sent = self.late = self.asked = 0

    def restart(self) -> None:
        self.studies = CollectedStudies(self._log, lambda: 1000.0)
        self.one = self.studies.begin(collected_of(self.terms), self.terms)

    def words(self, n: int) -> list[int]:
        return [int(word) for word in self._dice.words(n)]

    def ask(self, group: int) -> tuple[int, bytes] | None:
        """Return one person's report, and its round."""
        asked = self.one.asked(group)
        if asked is None:
            return None
        lot, die, dither, one = self.words(4)
        value, card = math.floor(80 * ((one >> 11) * 2.0**-53) ** 2), self.one.study.card("")
        point = drawn(asked["needs"], lot)
        at, period = asked["points"][point], asked["periods"][point]
        letter = letter_of(value, at, int(card.flips), (die, dither), card.resolution, period)
        return asked["round"], pack(self._dice.words(2).tobytes(), asked["round"], group, point, letter)

    def send(self, report: bytes) -> Any:
        said = self.one.upload(self.one.identity + report)
        self.sent += said.accepted
        return said

    def step(self) -> None:
        """Ask a person of each group; one in five answers some steps later."""
        for group in range(len(self.one.folds)):
            if (made := self.ask(group)) is not None:
                if self.words(1)[0] % 5 == 0:
                    self.under_way.append(made)
                else:
                    self.send(made[1])
        self.asked += 1
        while len(self.under_way) > 6:
            round, report = self.under_way.pop(0)
            fold: Any = self.one.folds[report[21]]
            before = fold.reports
            said = self.send(report)
            if fold.round is not None and round == fold.round.number - 1:
                self.late += 1
                assert (said.accepted, fold.reports) == (1, before + 1)
            elif fold.round is not None and round < fold.round.number - 1:
                assert said.refused == ((0, LATE),)
        if self.asked % 5 == 0:
            self.studies.commit()


def stands(one: Any) -> list[Any]:
    rounds = [[each and (each.number, each.counts, each.ones) for each in (f.round, f.late)] for f in one.folds]
    return [*rounds, *(one.estimate(group) for group in range(len(one.folds)))]


@pytest.mark.parametrize(
    "quantile",
    [TERMS["quantile"] | {"method": method} for method in ("sequence", "staged", "certified")]
    + [SEVERAL, SEVERAL | {"method": "certified"}],
    ids=["sequence", "staged", "certified", "levels", "certified levels"],
)
def test_late_answers_count_and_a_restart_and_a_replay_know_it(log: CollectorStore, quantile: dict[str, Any]) -> None:
    people = Slow(log, 1, quantile=quantile)
    while not people.one.over:
        people.step()
        if people.asked % 500 == 0:
            people.studies.commit()
            before = stands(people.one)
            people.restart()
            assert stands(people.one) == before
    for group, fold in enumerate(people.one.folds):
        found: Any = people.one.estimate(group)
        assert fold.log.late > 0  # type: ignore[attr-defined]
        assert found["late"] == fold.log.late  # type: ignore[attr-defined]
        for level in found["levels"]:
            low, high = level["interval"]
            assert low <= level["estimate"] <= high
    again = check_replay(people.one.study, log)
    assert again["reports"] == sum(fold.reports for fold in people.one.folds) == people.sent
    assert again["replayed"] == people.sent
    assert people.late == sum(fold.log.late for fold in people.one.folds)  # type: ignore[attr-defined]


def full(log: CollectorStore, seed: int = 2) -> tuple[Slow, list[bytes]]:
    """Return people whose second round is open, and the reports of the first."""
    people, sent = Slow(log, seed, groups=["a"]), []
    while people.one.folds[0].log.rounds == 0:  # type: ignore[attr-defined]
        made = people.ask(0)
        assert made is not None
        people.send(made[1])
        sent.append(made[1])
        people.studies.commit()
    return people, sent


def test_the_same_report_again_is_known_after_its_round_has_closed(log: CollectorStore) -> None:
    people, sent = full(log)
    fresh = sent[0][:15] + bytes([sent[0][15] ^ 1]) + sent[0][16:]
    for _ in range(2):
        reports = people.one.reports
        again = people.one.upload(people.one.identity + sent[0])
        assert (again.accepted, again.new, people.one.reports) == (1, 0, reports)
        other = people.one.upload(people.one.identity + sent[0][:-1] + bytes([1 - sent[0][-1]]))
        assert other.refused == ((0, REPLAYED),)
        if _ == 0:
            assert people.one.upload(people.one.identity + fresh).new == 1
            people.studies.commit()
            people.restart()
        assert people.one.upload(people.one.identity + fresh).new == 0


def test_late_answers_fill_no_place_of_the_open_round(log: CollectorStore) -> None:
    people, sent = full(log)
    needs = people.one.asked(0)["needs"]  # type: ignore[index]
    people.send(sent[0][:15] + bytes([sent[0][15] ^ 1]) + sent[0][16:])
    assert people.one.asked(0)["needs"] == needs  # type: ignore[index]


def test_letters_of_a_round_that_still_takes_answers_are_not_scrubbed(log: CollectorStore) -> None:
    people, sent = full(log)
    assert sum(people.studies.scrub(people.one)) == 0
    late = sent[0][:15] + bytes([sent[0][15] ^ 1]) + sent[0][16:]
    people.send(late)
    while people.one.folds[0].log.rounds < 2:  # type: ignore[attr-defined]
        people.send(people.ask(0)[1])  # type: ignore[index]
        people.studies.commit()
    before = stands(people.one)
    assert sum(people.studies.scrub(people.one)) == len(sent)
    people.restart()
    assert stands(people.one) == before
    assert people.one.upload(people.one.identity + late).refused == ((0, LATE),)
    assert check_replay(people.one.study, log)["reports"] == people.sent


def test_after_the_end_all_letters_can_be_scrubbed_and_nothing_late_is_taken(log: CollectorStore) -> None:
    people = Slow(log, 3)
    while not people.one.over:
        people.step()
    assert sum(people.studies.scrub(people.one)) == people.sent
    assert not list(log.reports("age"))
    last: Any = people.one.folds[0]
    assert people.one.upload(people.one.identity + pack(bytes(16), last.log.rounds, 0, 0, 1)).refused == ((0, ENDED),)


@pytest.mark.parametrize("sums", ["[]", "7", "[[1.0], [1]]", "[[1.0], [1], [1], [1]]", "x", '[[1.0], ["a"], [1]]'])
def test_sums_that_a_round_cannot_have_come_to_are_refused(sums: str) -> None:
    fold = collected_of(TERMS).fold(b"", 0.0)
    assert isinstance(fold, QuantileFold)
    with pytest.raises(BadInput, match="does not ask"):
        fold.follow(type("Closed", (), {"round": 1, "sums": sums})(), 0.0)
    assert fold.round is not None
    late = [fold.round.points.tolist(), fold.round.wanted, fold.round.ones, [0], [0]]
    with pytest.raises(BadInput, match="late to round 0"):
        fold.follow(type("Closed", (), {"round": 1, "sums": json.dumps(late)})(), 0.0)


@pytest.mark.parametrize(
    ("quantile", "why"),
    [
        (SEVERAL | {"method": "sequence"}, "for several levels method"),
        (SEVERAL | {"tau": [0.8, 0.5]}, "ascend"),
        (SEVERAL | {"tau": []}, "different levels"),
        (SEVERAL | {"tau": ["a"]}, "tau"),
        (SEVERAL | {"until": 3.0}, "sequence"),
        (SEVERAL | {"split": [0.5]}, "split"),
        (TERMS["quantile"] | {"split": [1.0]}, "leave it out"),
    ],
    ids=str,
)
def test_levels_that_cannot_be_are_refused(quantile: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        collected_of(TERMS | {"quantile": quantile})


def test_a_card_holds_all_levels() -> None:
    study = collected_of(TERMS | {"quantile": SEVERAL})
    assert study.card("").taus == (0.5, 0.8)
    assert study.method == "staged"
    assert 0 < study.epsilon <= 1.0
    assert not np.isclose(study.epsilon, 0.9)
    fold = study.fold(b"", 0.0)
    assert fold.estimate()["interval"] is None
    assert [level["tau"] for level in fold.estimate()["levels"]] == [0.5, 0.8]
    assert isinstance(fold, QuantileFold)
    assert fold.pauses == Pauses(100, 0)


def test_a_round_waits_while_answers_come_and_not_forever() -> None:
    fold = collected_of(TERMS | {"rounds": {"grace": 2, "deadline": 100}}).fold(b"", 0.0)
    assert isinstance(fold, QuantileFold)
    assert fold.round is not None
    first = fold.round
    for point, wanted in enumerate(first.wanted):
        for k in range(wanted):
            assert first.take(bytes([point]) + k.to_bytes(15, "big"), point, 0, 10.0) == "taken"
    assert first.filled == 10.0
    now = 10.0
    for k in range(12):
        assert fold.close(now + 1.9) is None
        now += 1.5
        assert fold.take(bytes([255, k]) + bytes(14), 1, 0, 0, now) == "taken"
    assert now < 30.0
    assert fold.close(29.9) is None
    assert fold.close(30.0) is not None  # ten graces after it had all its answers
