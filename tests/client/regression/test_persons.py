"""People behind one door: one letter each, the same bytes on a retry, and nothing spent on a bad query."""

import copy
import importlib
import math
import traceback
from typing import Any

import msgspec
import numpy as np
import pytest

from sottovoce.client.door import SiteLimits
from sottovoce.client.order import order_key
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import (
    PeopleQuery,
    PeopleReport,
    PersonQuery,
    PersonReport,
    PilotQuery,
    Query,
    Tally,
    to_bytes,
)
from sottovoce.protocol.regression.blocks import tables_of
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.questions import (
    PRODUCT,
    TIGHT,
    choose,
    is_up,
    public_words,
    which_cell,
    which_product,
)
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


KEY = b"the public key.."
SQUARE = tuple(tuple(float(i == j) for j in range(4)) for i in range(4))
PAIR = ((1.0, 0.5, -0.5, 0.25), (0.5, -1.0, 0.0, 1.0))
PEOPLE = PeopleQuery(
    3,
    20,
    30,
    KEY,
    POINTS,
    (PAIR,),
    ((-0.5, 1.5), (-2.0, 3.0)),
    (SQUARE[:2], SQUARE[2:]),
    ((0.25, -1.0, 1.0), (0.5, 0.0, 2.0)),
    (0.1, 0.2, 0.3, 0.45, 0.6),
)
PILOT = PilotQuery(2, 100, (50.0, 123.4), (40, 25))


def test_a_batch_is_a_letter_each_and_the_same_again() -> None:
    die = Counting(3)
    people = persons(die)
    report = people.reply(3, PEOPLE)
    assert isinstance(report, PeopleReport)
    assert len(report.letters) == 30
    assert 0 <= min(report.letters) <= max(report.letters) < CHANNEL.letters
    assert die.thrown == 30 * (1 + CHANNEL.widest)
    assert people.reply(3, PEOPLE) == report
    assert die.thrown == 30 * (1 + CHANNEL.widest)
    assert "30 answered" in repr(people)


def test_everybody_answers_once_whatever_the_form() -> None:
    people = persons(dice(1))
    people.reply(3, PEOPLE)
    people.reply(2, PILOT)
    again = msgspec.structs.replace
    for query in (
        again(PEOPLE, first=49, count=1),
        again(PEOPLE, first=0),
        again(PEOPLE, count=29),
        again(PEOPLE, first=21),
        again(PILOT, first=49),
        again(PILOT, counts=(40, 24)),
        again(PILOT, first=164),
    ):
        with pytest.raises(BadInput, match="has already answered another query; ask someone else"):
            people.reply(query.round, query)
    for person in (20, 49, 100, 164):
        with pytest.raises(BadInput, match=f"person {person} has already answered"):
            people.answer(PersonQuery(person, 0, (1, 3), POINTS))
    people.answer(PersonQuery(19, 0, (1, 3), POINTS))
    with pytest.raises(BadInput, match="person 19 has already"):
        people.reply(3, again(PEOPLE, first=10, count=10))
    assert "96 answered" in repr(people)


def test_a_batch_of_one_is_the_person_asked_alone() -> None:
    words = public_words(KEY, 0, 60)
    tables, met = tables_of(CHANNEL), set()
    for person in range(60):
        single = msgspec.structs.replace(PEOPLE, first=person, count=1)
        chosen = np.zeros(3, dtype=np.int64)
        with np.errstate(over="ignore"):
            cell = int(which_cell(np.array(PEOPLE.upto), words[person]))
            up = bool(is_up(words[person]))
            block = int(choose(tables.upto, tables.plan, 3, words[person], chosen))
            factors = tuple(int(j) for j in which_product(4, words[person]))
        slopes = tuple(chosen[: CHANNEL.blocks[block].count].tolist())
        if cell == PRODUCT:
            alone = PersonQuery(person, 0, (), (), factors)
        elif cell in (1, 2):
            alone = PersonQuery(person, 0, (), (), (), PAIR, PEOPLE.ranges[cell - 1])
        elif cell > 2:
            step, *within = PEOPLE.steps[cell - 3]
            here, *rest = POINTS[cell - 3]  # of each level one way
            moved = (here + (step if up else -step), *rest)
            alone = PersonQuery(person, 0, (), (moved,), (), PEOPLE.ways[cell - 3], tuple(within))
        else:
            alone = PersonQuery(person, block, slopes, POINTS)
        met.add(cell)
        batch = persons(dice(person)).reply(3, single)
        assert isinstance(batch, PeopleReport)
        assert batch.letters == (persons(dice(person)).answer(alone).letter,)
    assert met == {TIGHT, 0, 1, 2, 3, 4}


BAD_BATCHES: dict[str, dict[str, Any]] = {
    "nobody": {"count": 0},
    "fewer than nobody": {"count": -1},
    "people too many": {"first": 490},
    "more than there are": {"count": 2**62},
    "a negative first": {"first": -1},
    "a short key": {"key": b"short"},
    "another key": {"key": bytes(16)},
    "a level too few": {"points": POINTS[:1]},
    "a point that is none": {"points": (POINTS[0], (math.nan, 0.0, 0.0, 0.0))},
    "no ways": {"ways": ()},
    "ragged ways": {"ways": (SQUARE[:2], SQUARE[:1])},
    "an endless way": {"ways": (SQUARE[:2], (SQUARE[0], (math.inf, 0.0, 0.0, 0.0)))},
    "a way beyond all bounds": {"ways": (SQUARE[:2], (SQUARE[0], (1e101, 0.0, 0.0, 0.0)))},
    "a step too few": {"steps": PEOPLE.steps[:1]},
    "a step of no length": {"steps": (PEOPLE.steps[0], (0.5, 1.0, 1.0))},
    "a step to nowhere": {"steps": (PEOPLE.steps[0], (math.nan, 0.0, 1.0))},
    "a level without ways": {"ways": (SQUARE[:2],), "steps": PEOPLE.steps[:1], "upto": (0.1, 0.2, 0.3, 0.45)},
    "a pair too many": {"pairs": (PAIR, PAIR)},
    "half a pair": {"pairs": (PAIR[:1],)},
    "a pair beyond all bounds": {"pairs": ((PAIR[0], (1e101, 0.0, 0.0, 0.0)),)},
    "a range of no length": {"ranges": ((1.0, 1.0), (-2.0, 3.0))},
    "an endless range": {"ranges": ((-1e308, 1e308), (-2.0, 3.0))},
    "a range far away": {"ranges": ((1e308, 1.5e308), (-2.0, 3.0))},
    "two shares": {"upto": (0.2, 0.4)},
    "shares that fall": {"upto": (0.2, 0.1, 0.3, 0.45, 0.6)},
    "shares above one": {"upto": (0.1, 0.2, 0.3, 0.45, 1.6)},
    "another round": {"round": 4},
}


@pytest.mark.parametrize("change", BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_a_bad_batch_is_refused_and_nothing_is_spent(change: dict[str, Any]) -> None:
    die = Counting(3)
    people = Persons(Rows(np.full((500, 3), SECRET), np.full(500, 1000 * SECRET)), CHANNEL, die, key=KEY)
    with pytest.raises(BadInput, match="correct the query"):
        people.reply(3, msgspec.structs.replace(PEOPLE, **change))
    assert die.thrown == 0
    assert "0 answered" in repr(people)


def test_with_an_agreed_key_nobodys_question_is_chosen_for_them() -> None:
    rows = Rows(np.full((500, 3), SECRET), np.full(500, 1000 * SECRET))
    people, tables, chosen = Persons(rows, CHANNEL, dice(1), key=KEY), tables_of(CHANNEL), np.zeros(3, dtype=np.int64)
    with np.errstate(over="ignore"):
        words = public_words(KEY, 0, 99)
        drawn = [(int(choose(tables.upto, tables.plan, 3, word, chosen)), *chosen[:2]) for word in words]
        products = [tuple(int(j) for j in which_product(4, word)) for word in public_words(KEY, 99, 50)]
    for person, (block, *slopes) in enumerate(drawn):
        own = tuple(int(j) for j in slopes) if block == 0 else ()
        other = PersonQuery(person, 1 - block, (1, 2) if block else (), POINTS)
        with pytest.raises(BadInput, match="not drawn with the public key"):
            people.answer(other)
        assert people.answer(PersonQuery(person, block, own, POINTS)).person == person
    for person, factors in enumerate(products, 99):
        with pytest.raises(BadInput, match="not drawn with the public key"):
            people.answer(PersonQuery(person, 0, (), (), (3, 3) if factors != (3, 3) else (0, 1)))
        assert people.answer(PersonQuery(person, 0, (), (), factors)).person == person


def test_a_pilot_tells_sums_alone() -> None:
    people = persons(dice(1))
    tally = people.reply(2, PILOT)
    assert isinstance(tally, Tally)
    assert tally.round == 2
    assert all(0 <= one <= count for one, count in zip(tally.ones, PILOT.counts, strict=True))
    assert people.reply(2, PILOT) == tally
    again = msgspec.structs.replace
    for query in (
        again(PILOT, points=(1.0,)),
        again(PILOT, counts=(-1, 2)),
        again(PILOT, points=(math.nan, 1.0)),
        again(PILOT, counts=(0, 0)),
        again(PILOT, first=-5),
        again(PILOT, counts=(2**40, 1)),
    ):
        with pytest.raises(BadInput, match="correct the query"):
            people.reply(2, query)
    with pytest.raises(BadInput, match="points at a time"):
        people.reply(2, PilotQuery(2, 300, (), ()))


def test_people_look_at_the_study_before_they_take_part() -> None:
    rows = Rows(np.full((5, 3), SECRET), np.zeros(5))
    with pytest.raises(BadInput, match="ask for a smaller epsilon"):
        Persons(rows, CHANNEL, limits=SiteLimits(epsilon=0.4))
    with pytest.raises(BadInput, match="costs a person more"):
        Persons(rows, CHANNEL, epsilon=0.3)
    with pytest.raises(BadInput, match="give both the same"):
        Persons(Rows(np.zeros((5, 1)), np.zeros(5)), CHANNEL)
    people = persons(dice(1))
    for query in (Query(1, (0.5,), (3,)), Tally(1, (3,)), msgspec.structs.replace(PEOPLE, round=9)):
        with pytest.raises(BadInput, match="asks nothing that these people understand"):
            people.reply(1, query)


def test_a_random_order_asks_everybody_once() -> None:
    features = np.linspace(-1, 1, 64)[:, None].copy()
    truth = cq(0.5, 1, math.inf, q=2, s=1)
    rows = Rows(features, np.arange(64.0))
    key = order_key(dice(4))
    people = Persons(rows, truth, dice(1), order=key)
    # without noise the pilot tells each response by itself
    above = [people.pilot(PilotQuery(1, i, (31.5,), (1,))).ones[0] for i in range(64)]
    assert sum(above) == 32
    assert above != [0] * 32 + [1] * 32
