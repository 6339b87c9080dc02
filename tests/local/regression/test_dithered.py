"""The compiled loop of the dithered regression equals the one message by message, in any batches."""

import copy
import math
from collections.abc import Callable

import numpy as np
import pytest

from sottovoce.client.door import Door
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Words
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.local.regression.pilot import Pilot
from sottovoce.local.runner import run as run_method
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import public_words
from sottovoce.server.regression.design import parse
from sottovoce.server.regression.dithered.method import ONE_BY_ONE, DitheredMethod
from sottovoce.server.regression.omega import omega
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression.catalogue import design


def study_of(channel: RegressionChannel) -> DitheredStudy:
    levels, d = len(channel.taus), channel.p + 1
    noise = np.array([omega(channel, level=level) for level in range(levels)])
    moments = np.diag([1.0, *[1 / 3] * (d - 1)])
    return DitheredStudy(channel, noise, np.full(levels, 0.4), 1.0, np.zeros((levels, d)), moments, limit=5.0)


def rows_of(name: str, n: int, tau: float = 0.5) -> Rows:
    features, response = design(name).sample(dice(5).generator(), n, tau)
    return Rows(np.ascontiguousarray(features), response)


class Slices:
    """Dice that deal columns of one table of throws, so that server and client share what the loop uses."""

    private = False

    def __init__(self, table: Words) -> None:
        self._rows = iter(table)

    def words(self, n: int) -> Words:
        row: Words = next(self._rows)
        assert len(row) == n
        return row

    def split(self, n: int) -> list["Slices"]:
        raise NotImplementedError


CHANNELS: dict[str, Callable[[], RegressionChannel]] = {
    "lp": lambda: parse("lp", 0.75, 2, 1.0).channel,
    "cq": lambda: parse("cq:3,2", 0.5, 2, 2.0).channel,
    "box": lambda: parse("box", 0.5, 2, 4.0).channel,
    "two-levels": lambda: parse("box", (0.25, 0.75), 2, 4.0).channel,
}


class Once:
    """Dice that deal one whole table of throws."""

    private = False

    def __init__(self, table: Words) -> None:
        self._table = table

    def words(self, n: int) -> Words:
        assert n == self._table.size
        return self._table.ravel()

    def split(self, n: int) -> list["Once"]:
        raise NotImplementedError


KEY = b"the public key.."


def throws(channel: RegressionChannel, n: int) -> Words:
    """The throws of all people, whose public words are those that the key gives them."""
    table = dice(9).words(n * (2 + channel.widest)).reshape(n, -1).copy()
    table[:, 0] = public_words(KEY, 0, n)
    return table


@pytest.mark.parametrize("name", CHANNELS)
def test_the_loop_equals_the_messages_bit_for_bit(name: str) -> None:
    study, rows, n = study_of(CHANNELS[name]()), rows_of("paper-2", 400), 400
    run, table = DitheredRun(study), throws(study.channel, n)
    run.ask(rows, Once(table), shuffle=False)
    method = DitheredMethod(study, n, KEY, ONE_BY_ONE)
    persons = Persons(rows, study.channel, Slices(table[:, 1:]), key=KEY)
    told: list[int] = []
    state = method.init()
    door = Door(persons, bytes(16))
    while (queries := method.query(state)) is not None:
        message = queries.messages[0]
        assert message is not None
        state = method.step(state, [door.ask(queries.round, message)])
        told.append(queries.records)
    assert state.run.people == run.people == sum(told) == state.round == n
    assert np.array_equal(state.run.point, run.state.point)
    for ours, theirs in zip(state.run.sums, run.state.sums, strict=True):
        assert np.array_equal(ours, theirs)
    assert len(state.run.behind) == len(run.state.behind) > 3
    again = run_method(method, [Door(Persons(rows, study.channel, Slices(table[:, 1:])), bytes(16))])
    assert np.array_equal(again.point, run.estimate().point)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_batches_do_not_matter(epsilon: float) -> None:
    channel = parse("auto", 0.75, 3, epsilon).channel
    rows = rows_of("correlated-gumbel", 3000)
    whole, parts = DitheredRun(study_of(channel)), DitheredRun(study_of(channel))
    whole.ask(rows, dice(3), shuffle=False)
    die = dice(3)
    for first, last in ((0, 1), (1, 700), (700, 2999), (2999, 3000)):
        parts.ask(Rows(rows.features()[first:last], rows.response()[first:last]), die, shuffle=False)
        parts.estimate()
    assert np.array_equal(whole.estimate().point, parts.estimate().point)
    assert np.array_equal(whole.state.sums.squares, parts.state.sums.squares)


def test_a_shuffled_run_asks_everybody_once_in_another_order() -> None:
    study, rows = study_of(CHANNELS["cq"]()), rows_of("paper-2", 1000)
    own, mixed = DitheredRun(study), DitheredRun(study)
    own.ask(rows, dice(3), shuffle=False)
    mixed.ask(rows, dice(3), shuffle=True)
    assert own.people == mixed.people == 1000
    assert not np.array_equal(own.estimate().point, mixed.estimate().point)


def test_an_estimate_is_not_changed_by_later_people() -> None:
    study, rows = study_of(CHANNELS["cq"]()), rows_of("paper-2", 500)
    run, die = DitheredRun(study), dice(3)
    run.ask(rows, die, shuffle=False)
    fit = run.estimate()
    before = copy.deepcopy(fit.point)
    run.ask(rows, die, shuffle=False)
    assert np.array_equal(fit._point(0), before[0])


def test_a_pilot_goes_on_from_its_log() -> None:
    rows = rows_of("paper-2", 4000)
    words = dice(4).words(4000 * 3).reshape(4000, 3)
    where = np.arange(4000, dtype=np.uint64)
    whole = Pilot((0.5,), 2, 2.0)
    taken = whole.take(rows, where, words)
    assert taken < 4000
    pieces = Pilot((0.5,), 2, 2.0)
    done = 0
    while pieces.guess is None:
        done += pieces.take(rows, where[done : done + 37], words[done : done + 37])
        pieces = copy.deepcopy(pieces)  # by way of its state, as a pickle would
    assert done == taken == pieces.people
    assert whole.guess is not None
    assert np.array_equal(pieces.guess.start, whole.guess.start)
    assert pieces.guess.size == whole.guess.size
