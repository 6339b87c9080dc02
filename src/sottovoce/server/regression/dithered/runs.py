"""Several runs in one fit: sites that differ are told apart from points that swing.

The points of a run gather about its own root. Counted from the mean of all roots, those of unlike runs would seem far
off it, and no interval would ever be given. So every run's points are moved by as much as its root lies from the mean:
the mean of all points stays where it was, and what is left of their spread is their own.
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.knowledge import DROPPED, Knowledge, LookSegment, learn_all, total
from sottovoce.protocol.regression.dithered.state import DitheredState, under_way
from sottovoce.protocol.regression.dithered.step import LOOKED, POINT, SPREAD, Sums, no_sums
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import TIGHT


def know_runs(study: DitheredStudy, states: Sequence[DitheredState]) -> Knowledge:
    """Return what the people of several runs tell that began alike."""
    runs = [(*state.behind, under_way(state)) for state in states if state.people]
    late = [[each for each in run if each.last > DROPPED * run[-1].last] for run in runs]
    found = learn_all(study, *runs)
    slopes = [slope.matrix for slope in found.slopes]
    return found._replace(window=_gathered(study, late, slopes), whole=_gathered(study, runs, slopes))


def _gathered(study: DitheredStudy, runs: Sequence[Sequence[LookSegment]], slopes: Sequence[Floats]) -> Sums:
    """Add the sums of runs, each moved by as much as its root lies from the mean of all roots."""
    levels, d = study.levels, study.d
    sums = [total(run, levels, d) for run in runs]
    people = np.array([max(float(each.counts[TIGHT]), 1.0) for each in sums])
    roots = np.zeros((len(runs), levels, d))
    for k, each in enumerate(sums):
        for level, slope in enumerate(slopes):
            point, gradient = each.vectors[TIGHT, :, level] / people[k]
            roots[k, level] = point - np.linalg.solve(slope, gradient)
    away = roots - np.average(roots, axis=0, weights=people)
    whole = no_sums(levels, d)
    for each, off, n in zip(sums, away, people, strict=True):
        for into, part in zip(whole, _moved(each, off, n), strict=True):
            into += part
    return whole


def _moved(sums: Sums, away: Floats, people: float) -> Sums:
    """Return sums whose points are counted as if they lay so much nearer."""
    vectors, squares = sums.vectors.copy(), sums.squares.copy()
    for level, off in enumerate(away):
        mean = sums.vectors[TIGHT, POINT, level] / people
        about = np.outer(mean, off) + np.outer(off, mean) - np.outer(off, off)
        squares[SPREAD, level] -= np.tril(about) * sums.counts[LOOKED]
        vectors[:, POINT, level] -= sums.counts[: len(vectors), None] * off
    return sums._replace(vectors=vectors, squares=squares)
