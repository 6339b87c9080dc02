"""What a regression will tell, before anybody is asked: the run itself, on the answers that its public guesses expect.

Between two looks the expected sums follow from the design, the guessed moments and the density alone, and a look
learns from them as from any others. So shares, doubts and intervals are those of a run that goes as it was guessed.
What no guess knows makes real intervals a little longer.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.normal import two_sided
from sottovoce.protocol.regression.blocks import Open
from sottovoce.protocol.regression.dithered.density import bend_prior, reach
from sottovoce.protocol.regression.dithered.knowledge import DROPS, learn_all
from sottovoce.protocol.regression.dithered.segments import LookSegment
from sottovoce.protocol.regression.dithered.state import DitheredState, design_after, init
from sottovoce.protocol.regression.dithered.step import (
    GRADIENT,
    LOOKED,
    POINT,
    PRODUCTS,
    SELDOM,
    SPREAD,
    Sums,
    no_sums,
)
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.dithered.turned import lines_of
from sottovoce.protocol.regression.dithered.vech import packed, places
from sottovoce.protocol.regression.overheard import CROSS, MEAN, SQUARE
from sottovoce.protocol.regression.questions import STEP, QueryDesign
from sottovoce.server.regression.dithered.fit import DitheredFit

GROWTH = 1.6  # from one look to the next: coarser than a run's, for speed
SWING = 1.3  # times the least that points can be off the root, as they go
MOST_DOUBT = 1.0  # nothing longer is predicted
OFF = 0.4  # of that, in every direction: how far the mean of the points is off
LONGER = 1.1  # what no guess knows; both set on every other of the interval cells (decision 0088)


class Predicted(NamedTuple):
    """For each level and contrast half the width of its interval, and its doubt."""

    halves: Floats  # (levels, contrasts)
    doubts: Floats


def predict(study: DitheredStudy, people: float, level: float = 0.95, contrasts: Floats | None = None) -> Predicted:
    """Return what intervals of contrasts, the columns, will be if all goes as the study guesses."""
    fit, z = expected_fit(study, people), two_sided(level)
    columns = np.eye(study.d) if contrasts is None else contrasts
    halves, doubts = np.zeros((2, study.levels, columns.shape[1]))
    for index in range(study.levels):
        errors = np.sqrt(np.einsum("ja,jk,ka->a", columns, fit.roots[index].covariance, columns))
        doubt = np.minimum(fit.knowledge.relative_variances(index, columns), MOST_DOUBT**2)
        doubts[index] = np.sqrt(doubt)
        halves[index] = LONGER * z * errors * np.exp((z**2 - 1) / 2 * doubt)
    return Predicted(halves, doubts)


def expected_fit(study: DitheredStudy, people: float) -> DitheredFit:
    """Return the fit of a run that goes as the study guesses."""
    state: DitheredState = init(study)
    design, done, until = state.design, 0.0, float(state.until)
    behind: tuple[LookSegment, ...] = ()
    while True:
        last = min(until, people)
        sums = _expected(study, design, done, last - done)
        behind = (*behind, LookSegment(int(done), int(last), sums, *design[:4]))
        if last >= people:
            break
        design, _ = design_after(study, int(last), learn_all(study, behind))
        done, until = last, last * GROWTH
    return DitheredFit(study, int(people), learn_all(study, behind, drops=DROPS).without_joint())


def _expected(study: DitheredStudy, design: QueryDesign, before: float, people: float) -> Sums:
    """Return the sums that so many people are expected to come to, ``before`` of whom others were asked."""
    levels, d, moments = study.levels, study.d, study.moments
    pairs = len(design.pairs)
    sums = no_sums(levels, d, pairs, len(design.ways))
    counts = people * np.diff(np.concatenate([[0.0], design.upto]))
    tight = people * (1 - float(design.upto[-1]))
    sums.counts[:] = tight, tight / SELDOM
    for level in range(levels):
        sums.squares[PRODUCTS, level] = tight * np.tril(study.omega[level])
        swing = _swing(study, level, before + people / 2)
        sums.squares[SPREAD, level] = sums.counts[LOOKED] * np.tril(swing)
        lengths, directions = np.linalg.eigh(swing)
        off = OFF * directions @ np.sqrt(np.maximum(lengths, 0.0))
        sums.vectors[POINT, level] = tight * off
        sums.vectors[GRADIENT, level] = tight * (study.density[level] * moments) @ off
    if study.exact:
        return sums._replace(ways=_turned(study, design, counts[1 + 2 * pairs :], 1.0))
    rate = study.bit_rate
    rows, columns, _ = (part[1:] for part in places(d))
    low = np.where(rows == columns, 0.0, -1.0)
    asked = counts[0] / max(len(rows), 1)
    sums.products[0, rows, columns] = asked
    sums.products[1, rows, columns] = asked * _said((moments[rows, columns] - low) / (1 - low), rate)
    if pairs:
        middle = np.einsum("aj,jk,ak->a", design.pairs[:, 0], moments, design.pairs[:, 1])
        place = (np.tile(middle, 2) - design.ranges[:, 0]) / (design.ranges[:, 1] - design.ranges[:, 0])
        sums.pairs[:] = counts[1 : 1 + 2 * pairs] * np.stack([np.ones(2 * pairs), _said(place, rate)])
    _overhear(study, tight, sums.overheard)
    return sums._replace(ways=_turned(study, design, counts[1 + 2 * pairs :], rate))


def _said(place: Floats, rate: float) -> Floats:
    """Return how often a bit is one whose value lies so far along its range."""
    return np.asarray(0.5 + rate * (np.clip(place, 0.0, 1.0) - 0.5))


def _turned(study: DitheredStudy, design: QueryDesign, counts: Floats, rate: float) -> Floats:
    """Return people and bits below and above the point, for every way."""
    ways = len(design.ways)
    found, lines = np.zeros((2, 2, ways)), lines_of(design.ways, design.steps) @ packed(study.moments)
    level = np.repeat(np.arange(study.levels), ways // study.levels)
    f, taus = study.density[level], np.array(study.taus)[level]
    step = design.steps[:, STEP]
    bends = np.array([bend_prior(float(tail))[0] / reach(float(tail)) ** 2 for tail in study.tails])[level]
    change, middle = 2 * f * step * lines * (1 + bends * (f * step) ** 2), (2 * taus - 1) * lines
    found[0] = counts / 2
    for side, sign in enumerate((-1, 1)):
        found[1, side] = found[0, side] * (0.5 + rate * np.clip(middle + sign * change, -1, 1) / 2)
    return found


def _overhear(study: DitheredStudy, people: float, sums: Floats) -> None:
    """Fill what the letters of so many people tell of moments."""
    p, d, heard = study.channel.p, study.d, study.overheard
    for block, precisions, every in zip(study.channel.blocks, heard.precisions, heard.every, strict=True):
        if isinstance(block.channel, Open):
            continue
        often = people * block.probability / float(every) * block.inclusion(p)[1:]
        both = np.outer(often, often) / max(people * block.probability / float(every), 1e-300)
        if block.slopes is None and p > 1:
            both = np.full((p, p), float(often[0]) * (block.count - 1) / (p - 1))
        sums[0, 0, 1:] += often * precisions[MEAN]
        inner = sums[0, 1:, 1:]
        inner += np.triu(both, 1) * precisions[CROSS]
        inner[np.diag_indices(d - 1)] += often * precisions[SQUARE]
    sums[1] = sums[0] * np.triu(study.moments)


def _swing(study: DitheredStudy, level: int, people: float) -> Floats:
    """Return how far points are off the root after so many people."""
    slope = study.density[level] * study.moments
    information = slope @ np.linalg.inv(study.omega[level]) @ slope
    return np.asarray(SWING * np.linalg.inv(np.eye(study.d) * study.d / study.size**2 + people * information))
