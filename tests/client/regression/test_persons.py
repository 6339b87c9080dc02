"""People behind one door: one letter each, the same bytes on a retry, and nothing spent on a bad query."""

import copy
import importlib
import math
import traceback
from typing import Any

import numpy as np
import pytest

from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import PersonQuery, PersonReport, to_bytes
from sottovoce.protocol.regression.box import box, cq
from sottovoce.sim.randomness import dice

SECRET = 0.123456789
CHANNEL = box((0.25, 0.75), 3, 0.5, slopes=2, cells=4, width=2, alone=0.3)
POINTS = ((0.0, 0.1, 0.2, 0.3), (1.0, 0.1, 0.2, 0.3))
GOOD = PersonQuery(4, 0, (1, 3), POINTS)


class Counting:
    """Dice that say how many words were thrown."""

    private = False

    def __init__(self, seed: int) -> None:
        self._dice, self.thrown = dice(seed), 0

    def words(self, n: int) -> Words:
        self.thrown += n
        return self._dice.words(n)

    def split(self, n: int) -> list["Counting"]:
        raise NotImplementedError


def persons(die: Any = None, n: int = 500) -> Persons:
    return Persons(Rows(np.full((n, 3), SECRET), np.full(n, 1000 * SECRET)), CHANNEL, die)


def test_a_report_is_a_letter_and_nothing_else() -> None:
    report = persons(dice(1)).answer(GOOD)
    assert isinstance(report, PersonReport)
    assert report.person == 4
    assert report.__struct_fields__ == ("person", "letter")
    assert 0 <= report.letter < CHANNEL.letters


def test_a_retry_gets_the_same_bytes_from_the_systems_dice() -> None:
    people = persons()  # fresh noise would show: 48 letters, 500 people
    queries = [PersonQuery(i, 0, (1, 2), POINTS) for i in range(500)]
    first = [to_bytes(people.answer(query)) for query in queries]
    assert len(set(first)) == 500
    assert len({people.answer(query).letter for query in queries}) > 20
    assert [to_bytes(people.answer(query)) for query in queries] == first


def test_a_person_throws_once() -> None:
    die = Counting(3)
    people = persons(die)
    for _ in range(3):
        people.answer(GOOD)
    assert die.thrown == 1 + CHANNEL.widest
    people.answer(PersonQuery(5, 0, (1, 3), POINTS))
    assert die.thrown == 2 * (1 + CHANNEL.widest)


OTHERS = {
    "another block": PersonQuery(4, 1, (), POINTS),
    "other slopes": PersonQuery(4, 0, (1, 2), POINTS),
    "slopes turned round": PersonQuery(4, 0, (3, 1), POINTS),
    "another point": PersonQuery(4, 0, (1, 3), ((0.0, 0.1, 0.2, 0.4), POINTS[1])),
    "a product": PersonQuery(4, 0, (), (), (0, 1)),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_query_to_the_same_person_is_refused(other: PersonQuery) -> None:
    die = Counting(3)
    people = persons(die)
    sent = people.answer(GOOD)
    with pytest.raises(BadInput, match="person 4 has already answered another query; ask someone else"):
        people.answer(other)
    assert die.thrown == 1 + CHANNEL.widest
    assert people.answer(GOOD) == sent


def test_every_other_query_would_be_answered_first() -> None:
    for other in OTHERS.values():
        assert persons(dice(1)).answer(other).person == 4


BAD = {
    "a person too many": PersonQuery(500, 0, (1, 3), POINTS),
    "a person too few": PersonQuery(-1, 0, (1, 3), POINTS),
    "a block too many": PersonQuery(4, 2, (), POINTS),
    "a block too few": PersonQuery(4, -1, (1, 3), POINTS),
    "a slope too few": PersonQuery(4, 0, (1,), POINTS),
    "a slope too many": PersonQuery(4, 0, (1, 2, 3), POINTS),
    "no such slope": PersonQuery(4, 0, (1, 4), POINTS),
    "the intercept for a slope": PersonQuery(4, 0, (0, 1), POINTS),
    "a slope twice": PersonQuery(4, 0, (2, 2), POINTS),
    "a level too few": PersonQuery(4, 0, (1, 3), POINTS[:1]),
    "a level too many": PersonQuery(4, 0, (1, 3), (*POINTS, POINTS[0])),
    "a short point": PersonQuery(4, 0, (1, 3), (POINTS[0], POINTS[1][:3])),
    "a point that is none": PersonQuery(4, 0, (1, 3), (POINTS[0], (math.nan, 0, 0, 0))),
    "a point far off": PersonQuery(4, 0, (1, 3), (POINTS[0], (math.inf, 0, 0, 0))),
    "one factor": PersonQuery(4, 0, (), (), (1,)),
    "three factors": PersonQuery(4, 0, (), (), (1, 1, 1)),
    "factors turned round": PersonQuery(4, 0, (), (), (2, 1)),
    "the constant squared": PersonQuery(4, 0, (), (), (0, 0)),
    "no such factor": PersonQuery(4, 0, (), (), (1, 4)),
    "a negative factor": PersonQuery(4, 0, (), (), (-1, 1)),
}


@pytest.mark.parametrize("query", BAD.values(), ids=BAD)
def test_a_bad_query_is_refused_and_nothing_is_spent(query: PersonQuery) -> None:
    die = Counting(3)
    people = persons(die)
    with pytest.raises(BadInput, match="correct the query") as caught:
        people.answer(query)
    assert "0.1234" not in "".join(traceback.format_exception(caught.value))
    assert die.thrown == 0
    assert "0 answered" in repr(people)
    assert people.answer(GOOD) == persons(Counting(3)).answer(GOOD)


def test_text_hides_the_values() -> None:
    people = persons(dice(1), 1204)
    people.answer(GOOD)
    assert repr(people) == str(people) == "Persons(1,204 rows, 1 answered, values hidden)"
    assert people.size == 1204


def test_no_pickle_and_no_copy() -> None:
    dumps: Any = importlib.import_module("pickle").dumps
    for duplicate in (dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="do not leave the site"):
            duplicate(persons(dice(1)))
    with pytest.raises(TypeError):
        vars(persons(dice(1)))


def test_without_noise_each_person_tells_their_own_letter() -> None:
    features = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    response = np.array([1.0, 1.0, -1.0, -1.0])
    people = Persons(Rows(features, response), cq(0.5, 1, math.inf, q=2, s=2), dice(1))
    letters = [people.answer(PersonQuery(i, 0, (1,), ((0.0, 0.0),))).letter for i in range(4)]
    assert letters == [0, 1, 2, 3]  # face-major: above the fit first
    more = Persons(Rows(features, response), cq(0.5, 1, math.inf, q=2, s=2), dice(1))
    assert [more.answer(PersonQuery(i, 0, (), (), (0, 1))).letter for i in range(4)] == [0, 1, 0, 1]


def test_an_open_channel_has_no_letters_to_send() -> None:
    from sottovoce.protocol.regression.blocks import open_channel

    people = Persons(Rows(np.full((3, 1), SECRET), np.zeros(3)), open_channel(0.5, 1), dice(1))
    with pytest.raises(BadInput):
        people.answer(PersonQuery(0, 0, (1,), ((0.0, 0.0),)))
