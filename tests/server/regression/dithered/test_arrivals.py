"""Letters of people who come by themselves: booked where they were asked, whenever they come."""

import numpy as np
import pytest

from sottovoce.core import codec
from sottovoce.core.arrays import Ints, Words
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.dithered.state import AskedUnder, DitheredState, check_state, init, take
from sottovoce.protocol.regression.dithered.step import Sums, which_blocks
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import public_words
from sottovoce.server.regression.dithered.arrivals import book, look_if_due
from sottovoce.server.regression.omega import covariates, omega_at
from sottovoce.sim import dice


@pytest.fixture(scope="module")
def study() -> DitheredStudy:
    channel, known = cq(0.5, 2, 4.0, q=2, s=2), covariates(2, None)
    noise = np.array([omega_at(channel, known, 0)])
    return DitheredStudy(channel, noise, np.array([0.4]), 2.0, np.zeros((1, 3)), known.information)


def people(study: DitheredStudy, asked: AskedUnder, first: int, count: int) -> tuple[Words, Ints]:
    """Return the words of some people, and letters of theirs."""
    words, blocks = public_words(bytes(16), first, count), np.empty(count, np.int64)
    with np.errstate(over="ignore"):
        which_blocks(study.tables, asked.design.upto, words, study.channel.p, blocks)
    draws = dice(first).words(count)
    return words, (draws % study.alphabets[blocks].astype(np.uint64)).astype(np.int64)


def after(study: DitheredStudy, count: int) -> DitheredState:
    """Return the state after some people, in batches of 16."""
    state = init(study)
    while state.people < count:
        asked = under(state)
        state = look_if_due(
            study, book(study, state, len(state.behind), asked, *people(study, asked, state.people, 16))
        )
    return state


def heard_beside(sums: Sums) -> float:
    """Return how many of a segment's people were not asked at the point."""
    return float(sums.products[0].sum() + sums.pairs[0].sum() + sums.ways[0].sum())


def under(state: DitheredState) -> AskedUnder:
    return AskedUnder(state.point, state.design)


def same(one: DitheredState, two: DitheredState) -> bool:
    return codec.to_bytes(one) == codec.to_bytes(two)


def test_who_comes_in_time_is_taken_as_ever(study: DitheredStudy) -> None:
    state = init(study)
    asked = under(state)
    words, letters = people(study, asked, 0, 64)
    booked = look_if_due(study, book(study, state, 0, asked, words, letters))
    assert same(booked, take(study, state, asked, words, letters))
    assert len(booked.behind) == 1


def test_more_people_than_a_look_was_due_at_are_one_segment(study: DitheredStudy) -> None:
    state = init(study)
    asked = under(state)
    found = look_if_due(study, book(study, state, 0, asked, *people(study, asked, 0, 500)))
    assert (found.people, found.begun, len(found.behind)) == (500, 500, 1)
    assert found.behind[0].sums.counts[0] + heard_beside(found.behind[0].sums) == 500
    assert found.until > 1.3 * 500
    check_state(study, found)


def test_who_comes_after_the_look_is_booked_in_the_segment_that_asked(study: DitheredStudy) -> None:
    before = after(study, 3_000)
    asked, segment = under(before), len(before.behind)
    state = before
    while len(state.behind) == segment:
        own = under(state)
        state = look_if_due(study, book(study, state, segment, own, *people(study, own, state.people, 16)))
    words, letters = people(study, asked, 50_000, 40)
    late = book(study, state, segment, asked, words, letters)
    check_state(study, late)
    assert late.people == state.people + 40
    alone = book(study, before, segment, asked, words, letters)
    for was, now, more, less in zip(
        state.behind[segment].sums, late.behind[segment].sums, alone.sums, before.sums, strict=True
    ):
        assert np.allclose(now - was, more - less, rtol=1e-9, atol=1e-9)
    assert late.sums is state.sums
    assert late.behind[:segment] == state.behind[:segment]
    assert late.behind[segment].ways is state.behind[segment].ways
    assert not np.array_equal(late.point, state.point)
    assert late.design is state.design


def test_nobody_changes_nothing(study: DitheredStudy) -> None:
    state = after(study, 500)
    assert book(study, state, 0, under(state), np.empty(0, np.uint64), np.empty(0, np.int64)) is state
