"""Letters of people who come by themselves, in a dithered run: booked in the segment whose design asked them.

A segment's sums are read with its own directions and sizes, so letters that come late are added to the segment of
their question, whether a look has closed it or not; the present point moves by them as by any others. How many come is
not chosen by what they say. So a look comes when a round closes with as many people as it was due at, or more.
"""

from sottovoce.core.arrays import Ints, Words
from sottovoce.protocol.regression.dithered.state import AskedUnder, DitheredState, look, take
from sottovoce.protocol.regression.dithered.study import DitheredStudy

NEVER = 1 << 52  # people: no look comes between


def book(
    study: DitheredStudy, state: DitheredState, segment: int, asked: AskedUnder, words: Words, letters: Ints
) -> DitheredState:
    """Return the state after checked letters of people whom a segment asked, the first being 0; without a look."""
    if not len(words):
        return state
    if segment == len(state.behind):
        return take(study, state._replace(until=NEVER), asked, words, letters)._replace(until=state.until)
    older = state.behind[segment]
    after = take(study, state._replace(until=NEVER, sums=older.sums), asked, words, letters)
    behind = tuple(older._replace(sums=after.sums) if k == segment else each for k, each in enumerate(state.behind))
    return state._replace(people=after.people, point=after.point, behind=behind)


def look_if_due(study: DitheredStudy, state: DitheredState) -> DitheredState:
    """Return the state after a look, if as many people have come as it was due at; the next one grows from them."""
    return look(study, state._replace(until=state.people)) if state.people >= state.until else state
