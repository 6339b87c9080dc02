"""How the next people are asked: as many about moments and beside the point as the doubt is worth, and where it is.

Both the doubt of each coefficient's standard error and what one more answer would take of it are known, so the shares
follow from predictions alone (decision 0076).
"""

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.declared import Declared, calmed, reaches, suspected
from sottovoce.protocol.regression.dithered.density import bend_prior, reach
from sottovoce.protocol.regression.dithered.functionals import is_wide, ranges_of, scaled_pairs, sizes_of
from sottovoce.protocol.regression.dithered.knowledge import KURTOSIS, Functionals, Knowledge
from sottovoce.protocol.regression.dithered.segments import INTERCEPT_WAYS
from sottovoce.protocol.regression.dithered.slope import bent_lines
from sottovoce.protocol.regression.dithered.spread import is_apart
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.dithered.vech import packed, product
from sottovoce.protocol.regression.dithered.worth import Known, Questions, shares_of
from sottovoce.protocol.regression.questions import ABOUT, WAY, QueryDesign

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
DEVIATIONS, EXCEEDS = 3.0, 1.2  # standard deviations to which a combination is moved, where it reaches farther by that

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
    ways = _ways(study, people, knowledge, doubt)
    short = is_wide(ranges) & ~np.array(knowledge.banned or [False] * len(pairs), dtype=np.bool_)
    bits, beside = _least(study, doubt, short)
    if is_apart(study.d):
        beside *= min(max(WORTH * float(doubt.all.max()), 1.0), 5 * more)
    elif part * more * MOST * AHEAD * people >= SOME:
        bought = _bought(study, people, knowledge, doubt, (pairs, ranges, short, ways), more * MOST)
        bits[1:] += bought[0]
        beside += bought[1]
    return QueryDesign(pairs, ranges, ways, np.cumsum(part * np.concatenate([bits, beside])))


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
    asked: tuple[Floats, Floats, Flags, Floats],
    most: float,
) -> tuple[Floats, Floats]:
    """Return the shares of people who are asked because it shortens intervals: about pairs, and beside the point."""
    levels, d, rate = study.levels, study.d, study.bit_rate
    pairs, ranges, short, ways = asked[0], asked[1], asked[2], asked[3].reshape(levels, -1, 2, d)
    own = product(pairs[:, 0], pairs[:, 1])
    centre, sure = packed(knowledge.moments.matrix), study.known or study.exact or d == 1
    bits = 4 * rate**2 / np.square(ranges[:, 1] - ranges[:, 0])
    best = np.where(short, bits[: len(pairs)], bits[len(pairs) :])
    known, questions = [], []
    for level, (slope, functionals) in enumerate(zip(knowledge.slopes, doubt.functionals, strict=True)):
        density, tail = slope.density, float(study.tails[level])
        gradients = density.value * product(functionals.u, functionals.w) / functionals.variances[:, None]
        known.append(Known(slope.joint, gradients))
        walked, about = ways[level, :, WAY], ways[level, :, ABOUT]
        squares = ((walked @ knowledge.moments.matrix) * walked).sum(axis=1)
        squares[INTERCEPT_WAYS:] *= KURTOSIS
        lines, _ = bent_lines(product(about, walked), squares * (density.value / reach(tail)) ** 2, centre, density)
        mine = slice(level * d, (level + 1) * d)
        combinations = np.zeros((len(about) + d, len(slope.joint)))
        combinations[: len(about), : lines.shape[1]] = density.value * lines
        combinations[len(about) :, lines.shape[1] :] = own[mine]
        precisions = np.concatenate([np.full(len(about), 4 * rate**2), np.where(sure, 0.0, best[mine])])
        questions.append(Questions(combinations, precisions))
    found = shares_of(known, questions, max(people, 1), max(people, 1) * AHEAD, most)
    beside = np.concatenate([each[: len(each) - d] for each in found])
    about_pairs = np.concatenate([each[len(each) - d :] for each in found])
    part = np.where(short, SHORT, 0.0)
    return np.concatenate([about_pairs * part, about_pairs * (1 - part)]), beside


def _pairs(study: DitheredStudy, knowledge: Knowledge, doubt: Doubt) -> tuple[Floats, Floats]:
    """Return the pairs of each coefficient, and their ranges."""
    spread = None if is_apart(study.d) else knowledge.moments.covariance
    found = [scaled_pairs(each.u, each.w, knowledge.moments.matrix, spread) for each in doubt.functionals]
    pairs = np.concatenate([each[0] for each in found])
    correlations = np.concatenate([each[1] for each in found])
    return pairs, ranges_of(
        pairs, correlations, suspected(study.declared, knowledge.moments.matrix), knowledge.moments.matrix
    )


def _ways(study: DitheredStudy, people: int, knowledge: Knowledge, doubt: Doubt) -> Floats:
    """Return the ways: along the intercept near and farther, and one for each coefficient."""
    levels, d, matrix = study.levels, study.d, knowledge.moments.matrix
    declared = suspected(study.declared, matrix)
    ways = np.zeros((levels, INTERCEPT_WAYS + d, 2, d))
    for level, (slope, functionals) in enumerate(zip(knowledge.slopes, doubt.functionals, strict=True)):
        tail = float(study.tails[level])
        far = reach(tail) / slope.density.value
        noise = 1 / (4 * study.bit_rate**2 * BEND_PART * max(people, 1) * reach(tail) ** 2)
        near = min((noise / (2 * bend_prior(tail)[1] ** 2)) ** (1 / 3), 1.0)  # the square that is least in doubt
        ways[level, :INTERCEPT_WAYS, WAY, 0] = far * np.sqrt([near, min(FARTHER_OFF * near, 1.0)])
        ways[level, :INTERCEPT_WAYS, ABOUT, 0] = 1.0
        whole = _whole(declared, matrix, functionals)
        along, about = _along(functionals, knowledge, whole)
        if declared is not None:
            along *= calmed(declared, along)[:, None]
        ways[level, INTERCEPT_WAYS:, WAY] = far * along
        ways[level, INTERCEPT_WAYS:, ABOUT] = about
    return ways.reshape(-1, 2, d)


def _along(functionals: Functionals, knowledge: Knowledge, reached: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return for each coefficient along which of u and w to walk, of size one or less, and what to ask about there.

    The size is that by the moments as they are believed if that is larger: what is empty by chance alone is not walked
    along far. What is asked about is moved to [-1, 1]: to three standard deviations, or to all that it reaches.
    """
    parts = functionals.u, functionals.w
    spread = None if is_apart(parts[0].shape[1]) else knowledge.moments.covariance
    size = [sizes_of(part, knowledge.moments.matrix, spread) for part in parts]
    steady = [sizes_of(part, knowledge.moments.steady) for part in parts]
    relative = [reach / own for reach, own in zip(reached, size, strict=True)]
    along_w = (relative[1] < relative[0])[:, None]
    lengths = [np.maximum(*both) for both in zip(size, steady, strict=True)]
    walked = [part / length[:, None] for part, length in zip(parts, lengths, strict=True)]
    # as far as it reaches, if that is not much farther than three standard deviations
    within = [
        np.where(reach > EXCEEDS * DEVIATIONS * own, DEVIATIONS * own, reach)
        for reach, own in zip(reached, size, strict=True)
    ]
    told = [part / own[:, None] for part, own in zip(parts, within, strict=True)]
    return np.where(along_w, walked[1], walked[0]), np.where(along_w, told[0], told[1])


def _whole(declared: Declared | None, moments: Floats, functionals: Functionals) -> tuple[Floats, Floats]:
    """Return how far each u'x and w'x reaches."""
    parts = functionals.u, functionals.w
    if declared is None:
        return np.abs(parts[0]).sum(axis=1), np.abs(parts[1]).sum(axis=1)
    return reaches(declared, parts[0], moments), reaches(declared, parts[1], moments)
