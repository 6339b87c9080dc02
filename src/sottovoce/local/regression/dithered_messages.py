"""The online regression message by message: the same functions as the compiled loop, with a wire between them."""

import numpy as np

from sottovoce.client.regression.persons import Persons
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.messages import PersonQuery
from sottovoce.protocol.regression.blocks import SLOPES, tables_of
from sottovoce.server.regression.decode import choose, decode
from sottovoce.server.regression.dithered.state import State, look
from sottovoce.server.regression.dithered.step import aim, learn, which_product
from sottovoce.server.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.dithered.sums import MOMENT


def converse(study: DitheredStudy, state: State, persons: Persons, dice: RandomSource) -> State:
    """Ask everybody behind a door once, in their order; ``dice`` are the server's, public ones."""
    tables = tables_of(study.channel)
    for person in range(persons.size):
        with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
            state = _ask(study, state, persons, person, tables, dice.words(1)[0])
        if state.people == state.until:
            state = look(study, state)
    return state


def _ask(study: DitheredStudy, state: State, persons: Persons, person: int, tables, word: np.uint64) -> State:  # type: ignore[no-untyped-def]
    """Ask one person and take in what they say; the state given is left as it was."""
    p, levels = study.channel.p, study.levels
    points, orders = state.points.copy(), state.orders
    sums = type(state.sums)(*(part.copy() for part in state.sums))
    kind = aim(orders.directions, orders.sizes, orders.upto, word, points)
    if kind == MOMENT:
        j, k = which_product(study.d, word)
        report = persons.answer(PersonQuery(person, 0, (), (), (int(j), int(k))))
        sums.counts[MOMENT] += 1.0
        sums.moments[0, j, k] += 1.0
        sums.moments[1, j, k] += report.letter
        return state._replace(people=state.people + 1, points=points, sums=sums)
    chosen, index = np.zeros(max(p, 1), dtype=np.int64), np.zeros(p + 1, dtype=np.int64)
    values, move = np.zeros((levels, p + 1)), np.zeros(p + 1)
    block = choose(tables.upto, tables.plan, p, word, chosen)
    slopes = tuple(int(j) for j in chosen[: tables.plan[block, SLOPES]])
    at = tuple(tuple(float(x) for x in point) for point in points[min(kind, 1)])
    report = persons.answer(PersonQuery(person, int(block), slopes, at))
    found = decode(
        tables.plan,
        tables.score,
        tables.read,
        tables.matrix,
        tables.radius,
        block,
        chosen,
        report.letter,
        index,
        values,
    )
    learn(
        orders.gains, orders.needs, orders.limit, sums.counts, sums.vectors, sums.squares, kind, word, state.people,
        found, index, values, study.start, points, move,
    )  # fmt: skip
    return state._replace(people=state.people + 1, points=points, sums=sums)
