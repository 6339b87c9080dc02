"""The paper's recursion in one compiled loop: the same functions as message by message, on the same dice."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.extending import intrinsic, overload

from sottovoce.client.randomness import Words
from sottovoce.client.speak import show, speak
from sottovoce.estimators.hear import choose, hear
from sottovoce.estimators.plain_step import Query, move
from sottovoce.protocol.block_tables import FORM, OPEN, Tables

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


class Room(NamedTuple):
    """Arrays for the loop to work in."""

    chosen: Whole
    coordinates: Whole
    values: Floats


def make_room(levels: int, d: int) -> Room:
    """Return room for a loop."""
    return Room(np.zeros(max(d - 1, 1), dtype=np.int64), np.zeros(d, dtype=np.int64), np.zeros((levels, d)))


def lent(array: Any) -> Any:
    """Return an argument of a compiled loop without a count of its references.

    Functions inlined into the loop would count them up and down for every person, at a third of the loop's time. Only
    for arguments: their caller holds them until the loop has ended.
    """
    return array


@intrinsic
def _uncounted(typing: Any, array: Any) -> Any:  # noqa: ARG001 - numba's signature
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = view.meminfo.type(None)
        return view._getvalue()

    return array(array), build


@overload(lent)
def _lent(array: Any) -> Any:  # noqa: ARG001 - numba's signature
    def uncounted(array: Any) -> Any:
        return _uncounted(array)  # type: ignore[call-arg]

    return uncounted


@njit(cache=True, nogil=True, error_model="numpy")
def stretch(
    tables: Tables,
    features: Floats,
    response: Floats,
    where: npt.NDArray[np.uint64],
    words: Words,
    chains: Whole,
    steps: Floats,
    start: Floats,
    bounds: Floats,
    points: Floats,
    totals: Floats,
    path: Floats,
    room: Room,
) -> None:
    """Ask the people ``where`` one after another, each at the point of their chain, which their step then moves.

    Either the points reached are written to ``path`` (levels, people, d) or, where it is empty, summed up.
    """
    upto, plan, faces, cuts, score = lent(tables[0]), lent(tables[1]), lent(tables[2]), lent(tables[3]), lent(tables[4])
    read, matrix, radius = lent(tables[5]), lent(tables[6]), tables[7]
    features, response, where, words = lent(features), lent(response), lent(where), lent(words)
    chains, steps, start, low, high = lent(chains), lent(steps), lent(start), lent(bounds[0]), lent(bounds[1])
    points, totals, path = lent(points), lent(totals), lent(path)
    chosen, index, values = lent(room[0]), lent(room[1]), lent(room[2])
    _, levels, d = points.shape
    p, keep = d - 1, path.shape[1] > 0
    for i in range(len(where)):
        who, at = where[i], chains[i]
        block = choose(upto, plan, p, words[i, 0], chosen)
        if plan[block, FORM] == OPEN:
            found = show(score, features, response, who, points, at, index, values)
        else:
            letter = speak(
                plan, faces, cuts, score, radius, block, chosen, features, response, who, points, at, words, i
            )
            found = hear(plan, score, read, matrix, radius, block, chosen, letter, index, values)
        move(points, at, steps[i], found, index, values, low, high)
        if keep:
            for level in range(levels):
                for j in range(d):
                    path[level, i, j] = points[at, level, j]
        else:
            for level in range(levels):
                for j in range(d):
                    totals[at, level, j] += points[at, level, j] - start[level, j]


def answer(tables: Tables, asked: Query, features: Floats, response: Floats, who: int, words: Words) -> int | Floats:
    """Return one person's report to a query: a letter or, without a channel, the exact score (levels, d)."""
    points = asked.points[None]
    if tables.plan[asked.block, FORM] == OPEN:
        _, levels, d = points.shape
        values = np.zeros((levels, d))
        show(tables.score, features, response, who, points, 0, np.zeros(d, dtype=np.int64), values)
        return values
    letter = speak(
        tables.plan, tables.faces, tables.steps, tables.score, tables.radius, asked.block, asked.chosen,
        features, response, who, points, 0, words[None], 0,
    )  # fmt: skip
    return int(letter)
