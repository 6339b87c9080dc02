"""How the next people are asked: as many about moments and beside the point as the doubt is worth, and where it is.

Both the doubt of each coefficient's standard error and what one more answer would take of it are known, so the shares
follow from predictions alone (decision 0076).
"""

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.declared import calmed
from sottovoce.protocol.regression.dithered.density import bend_prior, reach
from sottovoce.protocol.regression.dithered.functionals import is_wide, ranges_of, scaled_pairs
from sottovoce.protocol.regression.dithered.knowledge import Functionals, Knowledge
from sottovoce.protocol.regression.dithered.segments import INTERCEPT_WAYS
from sottovoce.protocol.regression.dithered.spread import is_apart
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import QueryDesign

DITHERED = (0.02, 0.10)  # least and most people asked beside the point (decision 0018), among the first
MOMENTS = (0.002, 0.10)  # and about moments
BEGIN, LATER = (
    4.0,
    100.0,
)  # times the people who are worth the guess: asked so from then on; and by half more, from then
WORTH = 2.0  # times the doubt: the share of people that makes intervals shortest (decision 0076)
VAGUE = 1.5  # doubt from moments, as a standard deviation: beyond it no pair is worth asking about
PRODUCTS = 0.25  # of the bits are about products of two covariates, below that
SHORT = 0.7  # of a pair's bits are about its short range, where that is worth it
EVEN, EVEN_WAYS = 0.3, 0.5  # of the bits, and of the ways, whatever the doubt
INTERCEPT = (0.2, 0.5)  # of the dithered move the intercept alone: at least, and more if the density is in doubt
NEAREST = 0.3  # square of the far intercept dither's distance, over the far distance's: at least
BEND_PART = 0.012  # of the people, who are thought to tell the bend


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
    dithered = part * min(max(WORTH * float(doubt.all.max()), DITHERED[0]), more * DITHERED[1])
    pairs, ranges, bits = _bits(study, (part, more), knowledge, doubt)
    ways, shares = _ways(study, people, knowledge, doubt)
    return QueryDesign(pairs, ranges, ways, np.cumsum(np.concatenate([bits, dithered * shares])))


def _bits(
    study: DitheredStudy, parts: tuple[float, float], knowledge: Knowledge, doubt: Doubt
) -> tuple[Floats, Floats, Floats]:
    """Return the pairs with their ranges, and the shares of people asked about products and each pair's ranges."""
    found = [scaled_pairs(each.u, each.w, knowledge.moments.matrix) for each in doubt.functionals]
    pairs = np.concatenate([each[0] for each in found])
    correlations = np.concatenate([each[1] for each in found])
    ranges = ranges_of(pairs, correlations, study.declared, knowledge.moments.matrix)
    if study.known or study.exact or study.d == 1:
        return pairs, ranges, np.zeros(1 + len(ranges))
    doubts = doubt.moments.ravel()
    worst = float(doubts.max())
    share = parts[0] * min(max(WORTH * worst, MOMENTS[0]), parts[1] * MOMENTS[1])
    products = 1.0 if worst >= VAGUE**2 or is_apart(study.d) else PRODUCTS
    each = (1 - products) * (EVEN / len(doubts) + (1 - EVEN) * doubts / max(float(doubts.sum()), 1e-300))
    short = np.where(is_wide(ranges) & ~np.array(knowledge.banned or [False] * len(pairs), dtype=np.bool_), SHORT, 0.0)
    return pairs, ranges, share * np.concatenate([[products], each * short, each * (1 - short)])


def _ways(study: DitheredStudy, people: int, knowledge: Knowledge, doubt: Doubt) -> tuple[Floats, Floats]:
    """Return the ways, and how the dithered people are shared out among them."""
    levels, d = study.levels, study.d
    ways = np.zeros((INTERCEPT_WAYS + d, levels, d))
    for level, (slope, functionals) in enumerate(zip(knowledge.slopes, doubt.functionals, strict=True)):
        tail, omega = float(study.tails[level]), knowledge.omegas[level]
        far = reach(tail) / slope.density.value
        told = np.sqrt(omega[0, 0] / (BEND_PART * max(people, 1) * reach(tail) ** 2))
        near = far * np.sqrt(min(max(told / bend_prior(tail)[1], NEAREST), 1.0))
        ways[:INTERCEPT_WAYS, level, 0] = near / 2, near
        ways[INTERCEPT_WAYS:, level] = far * _weak(functionals, omega, knowledge)
        if study.declared is not None:
            ways[INTERCEPT_WAYS:, level] *= calmed(study.declared, ways[INTERCEPT_WAYS:, level] / far)[:, None]
    doubts = doubt.all.max(axis=0)
    least, more = INTERCEPT
    top = least + more * min(float(doubt.density.max()) / max(float(doubts.max()), 1e-300), 1.0)
    if d == 1 or is_apart(d):
        top = 1.0
    rest = EVEN_WAYS / d + (1 - EVEN_WAYS) * doubts / max(float(doubts.sum()), 1e-300)
    return ways, np.concatenate([[top / 2, top / 2], (1 - top) * rest])


def _weak(functionals: Functionals, omega: Floats, knowledge: Knowledge) -> Floats:
    """Return for each coefficient the direction, u or w, along which a dither tells more, of size one or less.

    The size is that by the moments as they are believed if that is larger: what is empty by chance alone is not walked
    along far.
    """
    u, w = functionals.u, functionals.w
    noise = [((part @ omega) * part).sum(axis=1) for part in (u, w)]
    size, steady = (
        [((part @ moments) * part).sum(axis=1) for part in (u, w)]
        for moments in (knowledge.moments.matrix, knowledge.moments.steady)
    )
    along_w = noise[0] * size[1] < noise[1] * size[0]
    chosen = np.where(along_w[:, None], w, u)
    return np.asarray(chosen / np.sqrt(np.where(along_w, *np.maximum(size, steady)[::-1]))[:, None])
