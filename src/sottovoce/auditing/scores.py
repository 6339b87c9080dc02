"""Audits sites with scores: selections of a cell, a count that a threshold covers, and a share of a sum."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from sottovoce.auditing.bound import Transcript, noise_of, shown_by
from sottovoce.auditing.parts import cost_of, parts_of
from sottovoce.auditing.subject import STUDY, Answering, AuditSubject, InputPair, said_by
from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
from sottovoce.client.door import Door
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.messages import CellQuery, CellReport, CoverageCount, CoverageQuery, Message, SumQuery, SumShare
from sottovoce.protocol.selection import Mechanism, selection
from sottovoce.protocol.selection.geometric import NoisyCount, Polya, noisy_count, polya
from sottovoce.protocol.wire import seal, unseal

SIZE = 12  # scores of the site that the audit makes
PLACES = {"paper": (5, 2, 3)}  # size, order and cells at which a mechanism shows most of its epsilon
PLACE = (SIZE, 1, 3)
REACH = 8  # counts farther off than this are one kind of answer
ScoreDoor = Callable[[Records, float], Answering]


def selecting(
    name: str, epsilon: float, door: ScoreDoor | None = None, place: tuple[int, int, int] | None = None
) -> AuditSubject:
    """Return the audit of a selection mechanism at the two neighbouring sites that it tells apart best."""
    size, order, cells = place or PLACES.get(name, PLACE)
    mechanism = selection(name, size, order, cells, epsilon)
    counts = worst_neighbours(mechanism)
    laws = tuple(mechanism.distribution(each) for each in counts)
    edges = tuple(float(edge) for edge in range(1, cells))
    query = CellQuery(name, order, epsilon, edges)
    made = door or (lambda scores, budget: Door(CalibrationSite(scores, budget), STUDY))
    scores = tuple(np.repeat(np.arange(cells) + 0.5, each) for each in counts)
    [part] = parts_of(mechanism, epsilon)
    pair = InputPair("one score moved to another cell", (laws[0].tolist(), laws[1].tolist()))
    return _subject(f"library, {name} selection", part, epsilon, pair, scores, query, made, CellReport, _cell)


def worst_neighbours(mechanism: Mechanism) -> tuple[Ints, Ints]:
    """Return the counts of two neighbouring sites that are told apart best: one score moved, all others together."""
    size, cells = mechanism.size, mechanism.cells
    best: tuple[float, Ints, Ints] | None = None
    for place, start, end in itertools.product(range(cells), repeat=3):
        rest = (size - 1) * (np.arange(cells) == place)
        first, second = rest + (np.arange(cells) == start), rest + (np.arange(cells) == end)
        shown = shown_by(mechanism.distribution(first), mechanism.distribution(second))
        if best is None or shown > best[0]:
            best = shown, first, second
    assert best is not None
    return best[1], best[2]


def counting(epsilon: float, door: ScoreDoor | None = None) -> AuditSubject:
    """Return the audit of a noisy count."""
    noise = noisy_count(epsilon)
    made = door or (lambda scores, budget: Door(CoverageSite(scores, budget), STUDY))
    scores = np.full(SIZE, 0.5), np.append(np.full(SIZE - 1, 0.5), 1.5)
    laws = tuple(_clipped(noise, -shift) for shift in (0, 1))
    pair = InputPair("one score moved above the threshold", (laws[0].tolist(), laws[1].tolist()))
    query = CoverageQuery(1.0, noise.numerator)
    [part] = parts_of(noise, epsilon)
    return _subject("library, noisy count", part, epsilon, pair, scores, query, made, CoverageCount, _covered)


def summing(epsilon: float, door: ScoreDoor | None = None) -> AuditSubject:
    """Return the audit of a secure sum: of all its shares together, so of one site that is all of them."""
    noise: Polya = polya(epsilon, 1)
    made = door or (lambda scores, budget: Door(SharingSite(scores, 1, budget), STUDY))
    scores = np.append(np.full(SIZE - 1, 0.5), 1.5), np.append(np.full(SIZE - 1, 0.5), 2.5)
    query = SumQuery((1.0, 2.0), noise.numerator, 1)
    [part] = parts_of(noise, epsilon)
    pair = InputPair("one score moved to the next cell")
    return _subject("library, sum over sites", part, epsilon, pair, scores, query, made, SumShare, _difference)


def _subject(
    name: str,
    part: Any,
    epsilon: float,
    pair: InputPair,
    scores: tuple[Floats, ...],
    query: Message,
    made: ScoreDoor,
    kind: type[Message],
    of: Callable[[Any], int],
) -> AuditSubject:
    """Return the audit of one question to a site, which is asked again, and then in another round."""
    first, second = seal(STUDY, 1, query), seal(STUDY, 2, query)

    def sample(_: int, side: int, trials: int) -> list[Transcript]:
        doors = (made(Records(scores[side].copy()), epsilon) for _ in range(trials))
        return [said_by(door, first, first, second) for door in doors]

    def read(said: Transcript) -> int:
        try:
            return of(unseal(said[0], STUDY, [kind]).message)
        except ValueError:
            return -1

    collision = 1.0 if pair.laws is None else noise_of(pair.laws)
    return AuditSubject(name, cost_of(part), (pair,), sample, read, collision)


def _clipped(noise: NoisyCount, shift: int) -> Floats:
    """Return the chances of ``shift`` plus noise, clipped to REACH either way and counted from there."""
    fall = noise.fall
    far = np.arange(-REACH - 40, REACH + 41)
    chances = (1 - fall) / (1 + fall) * fall ** np.abs(far)
    chances[0] += fall ** (REACH + 41) / (1 + fall)
    chances[-1] += fall ** (REACH + 41) / (1 + fall)
    found = np.zeros(2 * REACH + 1)
    np.add.at(found, np.clip(far + shift, -REACH, REACH) + REACH, chances)
    return found


def _cell(message: CellReport) -> int:
    return message.cell


def _covered(message: CoverageCount) -> int:
    return min(max(message.covered - SIZE, -REACH), REACH) + REACH


def _difference(message: SumShare) -> int:
    first, second = (np.array(message.counts, dtype=np.uint32).view(np.int32).astype(np.int64) for _ in range(2))
    return int(np.clip(first[0] - second[-1], -REACH, REACH)) + REACH
