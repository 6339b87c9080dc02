"""People whose answers break off: what cannot be kept is not said, and threads, interrupts and forks change nothing."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.client.regression.test_persons import CHANNEL, GOOD, PEOPLE, PILOT, SECRET, Counting, persons

from sottovoce.client.ledger import Entry, PeopleMemory
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice


class Broken(PeopleMemory):
    """A storage whose disk is full."""

    def keep(self, entry: Entry) -> None:
        raise OSError("disk full")


def test_what_cannot_be_kept_is_not_said() -> None:
    people = Persons(Rows(np.full((500, 3), SECRET), np.zeros(500)), CHANNEL, dice(1), storage=Broken())
    for round, query in ((1, GOOD), (3, PEOPLE), (2, PILOT)):
        with pytest.raises(OSError, match="disk full"):
            people.reply(round, query)
    assert "0 answered" in repr(people)


class Interrupted(Counting):
    """Dice that are interrupted now and then."""

    def words(self, n: int) -> Words:
        found = super().words(n)
        if self.thrown < 4000:
            raise KeyboardInterrupt
        return found


def test_an_interrupted_answer_says_nothing_and_is_drawn_once() -> None:
    die = Interrupted(3)
    people = persons(die)
    letters = set()
    for _ in range(2000):
        try:
            letters.add(people.answer(GOOD).letter)
        except KeyboardInterrupt:
            continue
    assert len(letters) == 1
    assert "1 answered" in repr(people)


def test_threads_take_turns() -> None:
    people = persons()
    with ThreadPoolExecutor(8) as pool:
        same = set(pool.map(lambda _: people.answer(GOOD).letter, range(200)))
        batches = {reply.letters for reply in pool.map(lambda _: people.letters(PEOPLE), range(100))}
    assert len(same) == len(batches) == 1
    assert "31 answered" in repr(people)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork of a process with threads is what is tested
def test_a_fork_refuses_to_answer() -> None:
    people = persons()
    child = os.fork()
    if child == 0:
        try:
            people.answer(GOOD)
        except BadInput:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert people.answer(GOOD).person == 4
