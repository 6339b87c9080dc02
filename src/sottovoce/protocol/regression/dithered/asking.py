"""How the next people are asked: as many about moments and beside the point as the doubt is worth, and where it is.

Both the doubt of each coefficient's standard error and what one more answer would take of it are known, so the shares
follow from predictions alone (decision 0076).
"""

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.declared import suspected
from sottovoce.protocol.regression.dithered.density import bend_prior, reach
from sottovoce.protocol.regression.dithered.functionals import is_wide, ranges_of, scaled_pairs
from sottovoce.protocol.regression.dithered.knowledge import Functionals, Knowledge
from sottovoce.protocol.regression.dithered.segments import INTERCEPT_WAYS
from sottovoce.protocol.regression.dithered.slope import bent_lines
from sottovoce.protocol.regression.dithered.spread import is_apart
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.dithered.turned import lines_of
from sottovoce.protocol.regression.dithered.vech import packed, product
from sottovoce.protocol.regression.dithered.worth import Known, Questions, shares_of
from sottovoce.protocol.regression.questions import LEAST, STEP, QueryDesign

DITHERED = 0.01  # part of the people who are asked beside the point in any case, for each level
MOMENTS = (0.002, 0.10)  # and least and most asked about moments in any case
MOMENT_WORTH = 0.5  # times the doubt from moments alone, of the people: asked about them in any case
PRODUCTS = 0.25  # of the bits are about products of two covariates, below that
EVEN = 0.3  # of them, whatever the doubt
MOST = 0.16  # part of the people, the most that are asked anything because it shortens intervals
SOME = 4.0  # people: fewer are not dealt out
AHEAD = 0.3  # of the people so far, to whom the shares apply
BEGIN, LATER = (
    4.0,
    100.0,
)  # times the people who are worth the guess: asked so from then on; and by half more, from then
WORTH = 2.0  # times the doubt: the share of people that makes intervals shortest (decision 0076)
VAGUE = 1.5  # doubt from moments, as a standard deviation: beyond it no pair is worth asking about
SHORT = 0.7  # of a pair's bits are about its short range, where that is worth it
INTERCEPT = 0.5  # of those beside the point in any case move the intercept alone
FARTHER, FARTHER_OFF = 0.3, 3.0  # part of these who move it farther, and by how much larger a square
BEND_PART = 0.03  # of the people, who are thought to tell the density

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Doubt:
    """What is in doubt at each level: functionals, doubts of all and of the moments alone, and of the density."""

    def __init__(self, study: DitheredStudy, knowledge: Knowledge) -> None:
        axes, levels = np.eye(study.d), range(study.levels)
        self.functionals: list[Functionals] = [knowledge.functionals(level, axes) for level in levels]
        self.all = np.array(
            [each.doubt(knowledge.slopes[level].covariance) for level, each in enumerate(self.functionals)]
        )
        self.moments = np.array(
            [
                knowledge.slopes[level].density.value ** 2 * each.doubt(knowledge.moments.covariance)
                for level, each in enumerate(self.functionals)
            ]
        )
        self.density = np.array([slope.density.variance for slope in knowledge.slopes])

    @property
    def worst(self) -> float:
        """Return the largest relative standard deviation of a standard error."""
        return float(np.sqrt(self.all.max()))


def ask_next(study: DitheredStudy, people: int, settled: float, knowledge: Knowledge, doubt: Doubt) -> QueryDesign:
    """Return how the next people are asked; ``settled``: those so far, of whom the guess is worth."""
    part, more = min(settled / BEGIN, 1.0), 1 + 0.5 * min(settled / LATER, 1.0) ** 2
    pairs, ranges = _pairs(study, knowledge, doubt)
    short = is_wide(ranges) & ~np.array(knowledge.banned or [False] * len(pairs), dtype=np.bool_)
    within = np.where(short[:, None], ranges[: len(pairs)], ranges[len(pairs) :])
    ways, steps = _ways(study, people, knowledge, pairs, within)
    bits, beside = _least(study, doubt, short)
    if is_apart(study.d):
        beside *= min(max(WORTH * float(doubt.all.max()), 1.0), 5 * more)
    elif part * more * MOST * AHEAD * people >= SOME:
        bought = _bought(study, people, knowledge, doubt, (pairs, within, ways, steps), more * MOST)
        part_short = np.where(short, SHORT, 0.0)
        bits[1:] += np.concatenate([bought[0] * part_short, bought[0] * (1 - part_short)])
        beside += bought[1]
    return QueryDesign(pairs, ranges, ways, steps, np.cumsum(part * np.concatenate([bits, beside])))


def _least(study: DitheredStudy, doubt: Doubt, short: Flags) -> tuple[Floats, Floats]:
    """Return the shares of people who are asked in any case: about products, every pair, and every way."""
    levels, d = study.levels, study.d
    bits = np.zeros(1 + 2 * levels * d)
    if not (study.known or study.exact or d == 1):
        doubts = doubt.moments.ravel()
        worst = float(doubts.max())
        share = min(max(MOMENT_WORTH * worst, MOMENTS[0]), MOMENTS[1])
        products = 1.0 if worst >= VAGUE**2 or is_apart(d) else PRODUCTS
        each = (1 - products) * (EVEN / len(doubts) + (1 - EVEN) * doubts / max(float(doubts.sum()), 1e-300))
        part = np.where(short, SHORT, 0.0)
        bits = share * np.concatenate([[products], each * part, each * (1 - part)])
    ways = np.zeros((levels, INTERCEPT_WAYS + d))
    top = 1.0 if d == 1 or is_apart(d) else INTERCEPT
    ways[:, :INTERCEPT_WAYS] = top * np.array([1 - FARTHER, FARTHER]) * DITHERED
    ways[:, INTERCEPT_WAYS:] = (1 - top) * DITHERED / d
    return bits, ways.ravel()


def _bought(
    study: DitheredStudy,
    people: int,
    knowledge: Knowledge,
    doubt: Doubt,
    asked: tuple[Floats, Floats, Floats, Floats],
    most: float,
) -> tuple[Floats, Floats]:
    """Return the shares of people who are asked because it shortens intervals: about pairs, and beside the point."""
    levels, d, rate = study.levels, study.d, study.bit_rate
    pairs, within, ways, steps = asked
    ways, steps, own = ways.reshape(levels, -1, 2, d), steps.reshape(levels, -1, 3), product(pairs[:, 0], pairs[:, 1])
    centre, sure = packed(knowledge.moments.matrix), study.known or study.exact or d == 1
    told = np.where(sure, 0.0, 4 * rate**2 / np.square(within[:, 1] - within[:, 0]))
    known, questions = [], []
    for level, (slope, functionals) in enumerate(zip(knowledge.slopes, doubt.functionals, strict=True)):
        density, tail = slope.density, float(study.tails[level])
        gradients = density.value * product(functionals.u, functionals.w) / functionals.variances[:, None]
        known.append(Known(slope.joint, gradients))
        far = steps[level, :, STEP]
        distances = np.square(far * density.value / reach(tail))
        lines, _ = bent_lines(lines_of(ways[level], steps[level]) * far[:, None], distances, centre, density)
        mine = slice(level * d, (level + 1) * d)
        combinations = np.zeros((len(far) + d, len(slope.joint)))
        combinations[: len(far), : lines.shape[1]] = density.value * lines
        combinations[len(far) :, lines.shape[1] :] = own[mine]
        questions.append(Questions(combinations, np.concatenate([np.full(len(far), 4 * rate**2), told[mine]])))
    found = shares_of(known, questions, max(people, 1), max(people, 1) * AHEAD, most)
    beside = np.concatenate([each[: len(each) - d] for each in found])
    return np.concatenate([each[len(each) - d :] for each in found]), beside


def _pairs(study: DitheredStudy, knowledge: Knowledge, doubt: Doubt) -> tuple[Floats, Floats]:
    """Return the pairs of each coefficient, and their ranges."""
    spread = None if is_apart(study.d) else knowledge.moments.covariance
    found = [scaled_pairs(each.u, each.w, knowledge.moments.matrix, spread) for each in doubt.functionals]
    pairs = np.concatenate([each[0] for each in found])
    correlations = np.concatenate([each[1] for each in found])
    return pairs, ranges_of(
        pairs, correlations, suspected(study.declared, knowledge.moments.matrix), knowledge.moments.matrix
    )


def _ways(
    study: DitheredStudy, people: int, knowledge: Knowledge, pairs: Floats, within: Floats
) -> tuple[Floats, Floats]:
    """Return the ways with their steps: about the side alone, near and farther, and about every coefficient's pair."""
    levels, d = study.levels, study.d
    ways, steps = np.zeros((levels, INTERCEPT_WAYS + d, 2, d)), np.zeros((levels, INTERCEPT_WAYS + d, 3))
    for level, slope in enumerate(knowledge.slopes):
        tail = float(study.tails[level])
        far = reach(tail) / slope.density.value
        noise = 1 / (4 * study.bit_rate**2 * BEND_PART * max(people, 1) * reach(tail) ** 2)
        near = min((noise / (2 * bend_prior(tail)[1] ** 2)) ** (1 / 3), 1.0)  # the square that is least in doubt
        mine = slice(level * d, (level + 1) * d)
        ways[level, :INTERCEPT_WAYS, :, 0] = 1.0
        ways[level, INTERCEPT_WAYS:] = pairs[mine]
        steps[level, :INTERCEPT_WAYS, STEP] = far * np.sqrt([near, min(FARTHER_OFF * near, 1.0)])
        steps[level, :INTERCEPT_WAYS, LEAST:] = -1.0, 1.0
        steps[level, INTERCEPT_WAYS:, STEP] = far * np.sqrt(min(FARTHER_OFF * near, 1.0))
        steps[level, INTERCEPT_WAYS:, LEAST:] = within[mine]
    return ways.reshape(-1, 2, d), steps.reshape(-1, 3)
