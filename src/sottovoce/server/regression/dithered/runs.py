"""Several runs in one fit: sites that differ are told apart from points that swing.

The points of a run gather about its own root. Counted from the mean of all roots, those of unlike runs would seem far
off it, and no interval would ever be given. So every run's points are moved by as much as its root lies from the mean:
the mean of all points stays where it was, and what is left of their spread is their own.
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.knowledge import DROPS, Knowledge, late, learn_all
from sottovoce.protocol.regression.dithered.segments import LookSegment, Tight, tight
from sottovoce.protocol.regression.dithered.state import DitheredState, under_way
from sottovoce.protocol.regression.dithered.study import DitheredStudy


def know_runs(study: DitheredStudy, states: Sequence[DitheredState]) -> Knowledge:
    """Return what the people of several runs tell that began alike."""
    runs = [(*state.behind, under_way(state)) for state in states if state.people]
    found = learn_all(study, *runs)
    slopes = [slope.matrix for slope in found.slopes]
    windows = tuple(_gathered(study, [late([run], drop) for run in runs], slopes) for drop in DROPS)
    return found._replace(windows=windows, whole=_gathered(study, runs, slopes))


def _gathered(study: DitheredStudy, runs: Sequence[Sequence[LookSegment]], slopes: Sequence[Floats]) -> Tight:
    """Add the sums of runs, each moved by as much as its root lies from the mean of all."""
    levels, d = study.levels, study.d
    sums = [tight(run, levels, d) for run in runs]
    people = np.array([max(each.people, 1.0) for each in sums])
    roots = np.zeros((len(runs), levels, d))
    for k, each in enumerate(sums):
        for level, slope in enumerate(slopes):
            point, gradient = each.vectors[:, level] / people[k]
            roots[k, level] = point - np.linalg.solve(slope, gradient)
    away = roots - np.average(roots, axis=0, weights=people)
    whole = tight((), levels, d)
    for each, off in zip(sums, away, strict=True):
        whole = whole.plus(each.moved(off))
    return whole
