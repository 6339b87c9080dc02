"""The dithered quantile regression: each person is asked once, and each look decides how the next ones are asked.

With H the slope and Omega the noise of a gradient, W diagonalises the information H Omega^-1 H and the guess I / B^2
at once: W' H Omega^-1 H W = I and W' W / B^2 = diag(need). Along column k, ``need_k`` people tell as much as the
guess. The gain W diag(1 / (need + i / pace)) W' H Omega^-1 is the Kalman gain at pace 1: the rule barely moves before
``need`` people have spoken, and then like pace / i.

State is plain: where the points stand, the sums of the segment under way, and the sums of the segments behind it. Looks
come at fixed numbers of people, so that it does not matter in which batches people arrive.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.dithered.asking import Doubt, ask_next
from sottovoce.protocol.regression.dithered.knowledge import DROPS, Knowledge, coefficients_size, learn_all
from sottovoce.protocol.regression.dithered.segments import INTERCEPT_WAYS, LookSegment
from sottovoce.protocol.regression.dithered.step import (
    ASKED,
    PRESENT,
    InformationGain,
    Sums,
    no_sums,
    shapes_of_sums,
    take_letters,
    which_blocks,
)
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import FARTHEST, LARGEST, LEAST, MOST, QueryDesign

# while the slope is not known well, larger steps, growing against a far start: chosen on six cells (tau, p, epsilon),
# confirmed on six others; they still serve where the density is guessed 4 times too large (decision 0017)
PACE, GROWTH = 4.0, 0.2
STEADY = 2.0  # pace once it is: the bias of curvature falls from .4-.7 to about .1 standard errors (decision 0017)
SURE = 0.3  # relative standard deviation of a standard error from which on the slope counts as known (decision 0017)
# people before the first look, or so many times those who are worth the guess, and the growth from one look to the
# next (decision 0016)
FIRST, SOONEST, RATIO = 64, 0.1, 1.35


def gain(slope: Floats, omega: Floats, size: float) -> tuple[Floats, Floats, Floats]:
    """Return the left and the right factor of the gain, and the people after which data outweighs the guess."""
    from scipy.linalg import eigh

    d = len(slope)
    middle = slope @ np.linalg.inv(omega)
    information = middle @ slope
    need, left = eigh(np.eye(d) * d / size**2, (information + information.T) / 2)
    return np.asarray(left), np.asarray(left.T @ middle), np.asarray(need)


def pace(people: int, need: float, relative_sd: float) -> float:
    """Return the pace: larger than one against wrong guesses and far starts, small once the slope is known."""
    if relative_sd < SURE:
        return max(STEADY, PACE * relative_sd / SURE)
    return float(PACE * (1 + people / need) ** GROWTH)


class DitheredState(NamedTuple):
    """People asked so far, the point they have moved, the segment under way and those behind it."""

    people: int
    point: Floats  # (levels, d)
    design: QueryDesign
    gain: InformationGain
    sums: Sums
    begun: int  # people before the segment under way
    until: int  # people at the next look
    behind: tuple[LookSegment, ...]


class AskedUnder(NamedTuple):
    """Under what people were asked: the point, and the design by which some are asked beside it."""

    point: Floats  # (levels, d)
    design: QueryDesign


def init(study: DitheredStudy) -> DitheredState:
    """Return the state before the first person."""
    point = np.array(study.start, dtype=np.float64)
    design, first = design_after(study, 0, learn_all(study, ()))
    until = max(FIRST, int(SOONEST * max(worth_of(study, level) for level in range(study.levels))))
    return DitheredState(0, point, design, first, _empty(study, design), 0, until, ())


def _empty(study: DitheredStudy, design: QueryDesign) -> Sums:
    """Return the sums of a design before its first person."""
    return no_sums(study.levels, study.d, len(design.pairs), len(design.ways))


def take(study: DitheredStudy, state: DitheredState, asked: AskedUnder, words: Words, letters: Ints) -> DitheredState:
    """Return the state after some people's checked letters, booked under what they were asked.

    Between two looks only: the last of them comes at ``state.until`` or before, and then there is a look.
    """
    _check_shapes(study, state, asked)
    sums = Sums(*(part.copy() for part in state.sums))
    points = np.stack([state.point, asked.point])
    with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
        take_letters(
            study.tables,
            study.overheard,
            asked.design,
            state.gain,
            sums,
            words,
            letters,
            state.people,
            study.start,
            points,
            ASKED,
        )
    after = state._replace(people=state.people + len(words), point=points[PRESENT].copy(), sums=sums)
    return look(study, after) if after.people == after.until else after


def follow(study: DitheredStudy, state: DitheredState, words: Words, letters: Ints) -> DitheredState:
    """Return the state after some people's letters, each of whom was asked at the point that the one before moved.

    Letters are checked against their alphabets, which change with the design at every look.
    """
    check_state(study, state)
    blocks, done = np.empty(len(words), dtype=np.int64), 0
    while done < len(words):
        n = min(len(words) - done, state.until - state.people)
        part, sums, point = slice(done, done + n), Sums(*(each.copy() for each in state.sums)), state.point.copy()
        with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
            which_blocks(study.tables, state.design.upto, words[part], study.channel.p, blocks[part])
            if np.any((letters[part] < 0) | (letters[part] >= study.alphabets[blocks[part]])):
                raise BadInput("a letter is not one of its alphabet; answer through the study's channel.")
            take_letters(
                study.tables, study.overheard, state.design, state.gain, sums, words[part], letters[part], state.people,
                study.start, point[None], PRESENT,
            )  # fmt: skip
        state = state._replace(people=state.people + n, point=point, sums=sums)
        state = look(study, state) if state.people == state.until else state
        done += n
    return state


def look(study: DitheredStudy, state: DitheredState) -> DitheredState:
    """Close the segment under way and say how the next people are asked."""
    behind = (*state.behind, under_way(state))
    design, onwards = design_after(study, state.people, learn_all(study, behind))
    later = int(state.until * RATIO) + 1
    empty = _empty(study, design)
    return DitheredState(state.people, state.point, design, onwards, empty, state.people, later, behind)


def under_way(state: DitheredState) -> LookSegment:
    """Return the segment under way as if it were closed."""
    return LookSegment(state.begun, state.people, state.sums, *state.design[:4])


def know(study: DitheredStudy, state: DitheredState) -> Knowledge:
    """Return what all people so far tell."""
    return learn_all(study, (*state.behind, under_way(state)), drops=DROPS)


@lru_cache(maxsize=16)
def worth_of(study: DitheredStudy, level: int) -> float:
    """Return the people whom the public guess of a level is worth; it is asked for at every look."""
    return float(np.mean(gain(study.density[level] * study.moments, study.omega[level], study.size)[2]))


def design_after(study: DitheredStudy, people: int, knowledge: Knowledge) -> tuple[QueryDesign, InformationGain]:
    """Return how the next people are asked, and what their gradients do."""
    levels, d = study.levels, study.d
    gains, needs = np.zeros((2, levels, d, d)), np.zeros((levels, d + 1))
    worth, doubt = np.zeros(levels), Doubt(study, knowledge)
    for level in range(levels):
        size = coefficients_size(study, knowledge, level)
        left, right, need = gain(knowledge.believed(level), knowledge.omegas[level], size)
        gains[0, level], gains[1, level], needs[level, :d] = left, right, need
        worth[level] = worth_of(study, level)
        needs[level, d] = 1 / pace(people, worth[level], knowledge.steady_sd(level))
    design = ask_next(study, people, people / float(worth.max()), knowledge, doubt)
    return design, InformationGain(gains, needs, study.limit)


def check_state(study: DitheredStudy, state: DitheredState) -> None:
    """Refuse a state of another study, or none at all, before compiled code looks into its arrays."""
    _check_shapes(study, state, AskedUnder(state.point, state.design))
    levels, d = study.levels, study.d
    pairs, ways = len(state.design.pairs), len(state.design.ways)
    for each in state.behind:
        parts = [part.shape for part in (*each.sums, *each[3:])]
        if parts != [*shapes_of_sums(levels, d, pairs, ways), *_design(d, pairs, ways)[:4]]:
            raise BadInput("the state belongs to another study; restore it with the study that it was made by.")
    combined, ranges, products, steps, upto = state.design
    lengths = np.concatenate([ranges[:, 1] - ranges[:, 0], steps[:, MOST] - steps[:, LEAST]])
    small = np.all(np.abs(combined) <= LARGEST) and np.all(np.abs(products) <= LARGEST)
    near = all(np.all(np.abs(part) <= FARTHEST) for part in (state.point, ranges, steps))
    if not (small and near and np.all(lengths > 0)):
        raise BadInput("the state asks about products that cannot be asked about; restore it as it was stored.")
    if not (np.all(np.diff(upto) >= 0) and upto[0] >= 0 and upto[-1] <= 1):
        raise BadInput("the shares of the state's design do not ascend from 0 to 1; restore it as it was stored.")
    if not 0 <= state.begun <= state.people < state.until < 1 << 53:
        raise BadInput("the state counts people who were not asked; restore it as it was stored.")


def _check_shapes(study: DitheredStudy, state: DitheredState, asked: AskedUnder) -> None:
    """Refuse a state of another study, before compiled code looks into its arrays."""
    levels, d = study.levels, study.d
    parts = [state.point, asked.point, *asked.design, *state.gain[:2], *state.sums]
    pairs, ways = levels * d, levels * (INTERCEPT_WAYS + d)
    shapes = [(levels, d), (levels, d), *_design(d, pairs, ways), (2, levels, d, d), (levels, d + 1)]
    if [part.shape for part in parts] != [*shapes, *shapes_of_sums(levels, d, pairs, ways)]:
        raise BadInput("the state belongs to another study; restore it with the study that it was made by.")


def _design(d: int, pairs: int, ways: int) -> list[tuple[int, ...]]:
    """Return the shapes of a design."""
    return [(pairs, 2, d), (2 * pairs, 2), (ways, 2, d), (ways, 3), (1 + 2 * pairs + ways,)]
