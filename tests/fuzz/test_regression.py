"""Mutated messages of a regression, queries to people and replies to the method: nothing breaks, none is believed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.fuzz.mutate import mutants, read
from tests.server.regression.plans import WAYS, over_sites, plan_of, rows_of

from sottovoce.client.door import Door, SiteLimits
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.client.regression.site_people import SitePeople
from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.local.regression.doors import open_doors
from sottovoce.protocol.messages import (
    LoopQuery,
    PeopleQuery,
    PeopleReport,
    PersonQuery,
    PersonReport,
    PilotQuery,
    Reports,
    Tally,
)
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.decode import alphabets
from sottovoce.protocol.wire import seal, unseal
from sottovoce.server.regression.dithered.method import BY_SHARE, ONE_BY_ONE, BatchRule
from sottovoce.server.regression.method import RegressionMethod, RegressionState
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.sim.randomness import dice

STUDY, KEY, PEOPLE = b"0123456789abcdef", b"the public key..", 200
CHANNEL = cq(0.5, 2, 2.0, q=3, s=2)
ZEROS = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
POINTS, RANGES = ((0.5, -1.0, 0.25),), ((-1.0, 1.0), (0.0, 2.0))
GOOD = [
    seal(STUDY, 4, PersonQuery(7, 0, (2,), POINTS)),
    seal(STUDY, 5, PersonQuery(8, 1, (1, 2), POINTS)),
    seal(STUDY, 6, PersonQuery(9, 0, (), (), (1, 2))),
    seal(STUDY, 9, PersonQuery(10, 0, (), POINTS, (), (POINTS[0], POINTS[0]), (-1.0, 2.0))),
    seal(
        STUDY,
        7,
        PeopleQuery(
            7,
            20,
            16,
            KEY,
            POINTS,
            (ZEROS[:2],),
            ((-1.0, 1.0), (0.0, 2.0)),
            (ZEROS[:2],),
            ((0.5, -1.0, 1.0),),
            (0.1, 0.2, 0.3, 0.4),
        ),
    ),
    seal(STUDY, 8, PilotQuery(8, 40, (1.5, -2.0), (10, 7))),
]
KINDS = ["tally", "people-report", "walk-query", "query"]
fast = pytest.mark.parametrize("n", [2_000])
slow = pytest.mark.parametrize("n", [pytest.param(100_000, marks=pytest.mark.slow)])


class Dice:
    """Seeded dice that count their throws."""

    private = False

    def __init__(self) -> None:
        self._dice, self.thrown = dice(1), 0

    def words(self, n: int) -> Any:
        self.thrown += n
        return self._dice.words(n)

    def split(self, n: int) -> list["Dice"]:
        raise NotImplementedError


def persons() -> tuple[Persons, Dice]:
    die = Dice()
    return Persons(rows_of(PEOPLE), CHANNEL, die, limits=SiteLimits(epsilon=3.0, points=50)), die


def queries(n: int, seed: int) -> int:
    """Send mutated queries; return how many were answered, each of them valid."""
    people, die = persons()
    door, answered = Door(people, STUDY, SiteLimits(epsilon=3.0, points=50)), 0
    for mutant in mutants(GOOD, n, seed, KINDS):
        before = (die.thrown, repr(people))
        try:
            reply = door.answer(mutant.data)
        except BadInput as refusal:
            assert (die.thrown, repr(people)) == before, mutant.how
            one_sentence(refusal)
            continue
        answered += 1
        opened = unseal(mutant.data, STUDY, Persons.kinds)
        means_what_it_says(opened.message)
        assert door.answer(mutant.data) == reply, "a retry"
        told = unseal(reply, STUDY, (PersonReport, PeopleReport, Tally), opened.round).message
        fits(opened.message, told)
        if die.thrown > 40 * PEOPLE:
            raise AssertionError("somebody answered twice")
        if "200 answered" in repr(people):
            people, die = persons()
            door = Door(people, STUDY, SiteLimits(epsilon=3.0, points=50))
    return answered


def one_sentence(refusal: BadInput) -> None:
    """Check a refusal's text."""
    assert "\n" not in str(refusal)
    assert str(refusal).endswith(".")


def means_what_it_says(message: Any) -> None:
    """Check that an answered query was one that may be answered."""
    if isinstance(message, PersonQuery):
        assert 0 <= message.person < PEOPLE
        assert 0 <= message.block < 2
        if message.factors:
            assert 0 <= message.factors[0] <= message.factors[1] <= 2
        elif message.pair:
            assert np.shape(message.pair) == (2, 3)
            assert np.shape(message.points) in ((0,), (1, 3))
            assert message.within[0] < message.within[1]
        else:
            assert len(message.slopes) == CHANNEL.blocks[message.block].count
            assert np.isfinite(message.points).all()
            assert np.shape(message.points) == (1, 3)
        return
    total = message.count if isinstance(message, PeopleQuery) else sum(message.counts)
    assert 0 <= message.first < message.first + total <= PEOPLE
    assert np.isfinite(message.points).all()
    if isinstance(message, PeopleQuery):
        assert len(message.key) == 16
        assert all(np.shape(pair) == (2, 3) for pair in message.pairs)
        assert all(np.shape(way) == (2, 3) for way in message.ways)
        assert all(low < high for low, high in message.ranges)
        assert list(message.upto) == sorted(message.upto)
        assert 0 <= message.upto[0] <= message.upto[-1] <= 1


def fits(message: Any, told: Any) -> None:
    """Check that a reply answers its query."""
    if isinstance(message, PersonQuery):
        assert told.person == message.person
        assert 0 <= told.letter < alphabets(CHANNEL)[-1 if message.factors else message.block]
    elif isinstance(message, PeopleQuery):
        assert len(told.letters) == message.count
        assert 0 <= min(told.letters) <= max(told.letters) < CHANNEL.letters
    else:
        assert all(0 <= one <= count for one, count in zip(told.ones, message.counts, strict=True))


def replies(way: str, batches: BatchRule, n: int, seed: int, stop: Callable[[RegressionState], bool]) -> int:
    """Send mutated replies to a method under way; return how many were taken, each of them valid."""
    method, doors, study = open_doors(plan_of(**WAYS[way]), rows_of(900), dice(3), batches)
    state = method.init()
    while not stop(state):
        state = method.step(state, said(method, doors, state))
    queries = method.query(state)
    assert queries is not None
    good = [
        door.answer(seal(study, queries.round, message))
        for door, message in zip(doors, queries.messages, strict=True)
        if message is not None
    ]
    before, taken = codec.to_bytes(state), 0
    whole = [unseal(data, study, method.replies, queries.round).message for data in good]
    for mutant in mutants(good, n, seed, [*KINDS, "person-query", "people-query"]):
        try:
            message = unseal(mutant.data, study, method.replies, queries.round).message
            after = method.step(state, [message, *whole[1:]])
        except BadInput as refusal:
            one_sentence(refusal)
        else:
            taken += 1
            assert type(message) is type(whole[0])
            assert len(read(mutant.data)) == 5
            assert after.round == state.round + 1
            assert all(np.isfinite(part).all() for run in after.dithered for part in (run.run.point, *run.run.sums))
        assert codec.to_bytes(state) == before
    return taken


def said(method: RegressionMethod, doors: list[Door], state: RegressionState) -> list[Any]:
    queries = method.query(state)
    assert queries is not None
    pairs = zip(doors, queries.messages, strict=True)
    return [None if message is None else door.ask(queries.round, message) for door, message in pairs]


CONVERSATIONS: dict[str, tuple[str, BatchRule, Callable[[RegressionState], bool]]] = {
    "batch": ("dithered", BY_SHARE, lambda state: state.round == 9),
    "one by one": ("dithered", ONE_BY_ONE, lambda state: state.round == 70),
    "pilot": ("split", BY_SHARE, lambda state: state.round == 5),
    "two levels": ("shared", BY_SHARE, lambda state: state.round == 6),
    "the paper's": ("groups", BY_SHARE, lambda state: state.round == 30),
}


@fast
def test_mutated_queries(n: int) -> None:
    assert 20 < queries(n, 1) < n / 2


@slow
def test_many_mutated_queries(n: int) -> None:
    assert 100 < queries(n, 2) < n / 2


@fast
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_mutated_replies(name: str, n: int) -> None:
    way, batches, stop = CONVERSATIONS[name]
    assert 5 < replies(way, batches, n // 2, 3, stop) < n / 4


@slow
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_many_mutated_replies(name: str, n: int) -> None:
    way, batches, stop = CONVERSATIONS[name]
    assert 100 < replies(way, batches, n // 2, 4, stop) < n / 4


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("n", [150, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_site_believes_no_mutated_loop(n: int) -> None:
    plan, rows = plan_of(**WAYS["dithered"]), [rows_of(PEOPLE)]
    method, _ = over_sites(plan, rows, [dice(1)])
    queries = method.query(method.init())
    assert queries is not None
    assert queries.messages[0] is not None
    good = [seal(STUDY, 1, queries.messages[0]), seal(STUDY, 2, PilotQuery(2, 0, (1.5,), (7,)))]
    answered = 0
    door = None
    for mutant in mutants(good, n, 5, KINDS):
        door = door or Door(sites_people(plan, rows), STUDY)
        before = repr(door)
        try:
            reply = door.answer(mutant.data)
        except BadInput as refusal:
            assert repr(door) == before, mutant.how
            one_sentence(refusal)
            continue
        answered += 1
        opened = unseal(mutant.data, STUDY, SitePeople.kinds)
        assert door.answer(mutant.data) == reply, "a retry"
        told: Any = unseal(reply, STUDY, (Reports, Tally), opened.round).message
        if isinstance(opened.message, LoopQuery):
            assert len(told.letters) == opened.message.count <= PEOPLE
            assert max(told.letters) < plan.design.channel.letters <= 256
        door = None  # its people have answered
    assert 0 < answered < n


def sites_people(plan: RegressionPlan, rows: list[Rows]) -> SitePeople:
    given: Any = {"epsilon": plan.design.epsilon, "key": KEY, "before": 0}
    return SitePeople(rows[0], plan.design.channels, dice(1), **given)
