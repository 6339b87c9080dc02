"""The estimate of the paper's recursion: averages of the points, with the three inferences that need no Hessian.

Where the intervals are known to cover too little is said from public numbers alone (`warnings`). Two biases are not
seen by the spread of the averages. The curvature of the distribution function shifts the intercept
(`inference.regression.undercoverage`). And the start is forgotten slowly: of its distance from the truth the average
still holds the mean of ``exp(-h sum eta)`` with ``h`` the slope of the mean score along a coefficient, the more the
smaller the steps, that is, the smaller the budget. In units of the standard error ``sqrt(Omega_jj / n) / h`` this is a
guess, as the distance is one: logistic noise of the scale that the study names, and coefficients of twice that length,
as in the paper. A tree's leaves moreover share more than its template says (`inflation`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.common import groups
from sottovoce.inference.common.groups import student_value
from sottovoce.inference.regression import higrad, vector_normalised
from sottovoce.inference.regression.higrad import Tree
from sottovoce.inference.regression.region import Ellipsoid, confident, vector
from sottovoce.inference.regression.undercoverage import (
    TOLERANCE,
    average_step,
    expected_bias_ratio,
    group_coverage,
    self_normalised_coverage,
)
from sottovoce.server.regression.liu_hu.step import LiuHuState, RegressionChains
from sottovoce.server.regression.study import LiuHuTerms

LEVEL = 0.95
CELLS = 300  # of a segment of the tree, over which influences are summed
NEAR, FAR = 0.3, 5.0  # standard errors: up to the one every method covers 93.9 %, beyond the other none covers


def warnings(study: LiuHuTerms, chains: RegressionChains, people: int) -> tuple[str, ...]:
    """Return a sentence for each level at which intervals are expected to cover too little."""
    found = []
    for index, tau in enumerate(study.taus):
        head = f"{study.inference} intervals of the"
        tail = f"instead of {100 * LEVEL:g} % at tau {tau:g} and {people:,} people"
        curved = _coverage(study, chains, curvature_ratio(study, chains, people, index))
        if curved < LEVEL - TOLERANCE:
            found.append(
                f"{head} intercept are expected to cover about {100 * curved:.0f} % {tail}: the curvature of the "
                "distribution function shifts the average of steps this large; use inference 'dithered'."
            )
        held = _coverage(study, chains, float(np.max(start_ratios(study, chains, people, index))))
        if held < LEVEL - TOLERANCE:
            found.append(
                f"{head} coefficients may cover as little as {100 * held:.0f} % {tail}: steps this small have not "
                "forgotten the start; use inference 'dithered', or more people."
            )
        linked = tree_coverage(study, chains, index)
        if linked < LEVEL - TOLERANCE:
            found.append(
                f"{head} coefficients may cover as little as {100 * linked:.0f} % {tail}: segments this short are not "
                "independent of those they continue; use a smaller tree, inference 'dithered', or more people."
            )
    return tuple(found)


def curvature_ratio(study: LiuHuTerms, chains: RegressionChains, people: int, index: int) -> float:
    """Return the bias that curvature gives the intercept, in standard errors."""
    omega, tau = study.omega[index], study.taus[index]
    step = sum(w * average_step(study.scale, a, b, study.power, study.offset) for w, a, b in _spans(chains, people))
    bend = (2 * tau - 1) / (2 * study.noise)  # -F'' / (2 f) of a logistic distribution
    return expected_bias_ratio(tau, float(np.trace(omega)), float(omega[0, 0]), step, people, bend)


def start_ratios(study: LiuHuTerms, chains: RegressionChains, people: int, index: int) -> Floats:
    """Return the bias that the start leaves in each coefficient, in standard errors."""
    slopes, omega = _slopes(study, index), study.omega[index]
    held = np.array([sum(w * _held(study, h, a, b) for w, a, b in _spans(chains, people)) for h in slopes])
    distance = 2 * study.noise / math.sqrt(study.d)
    return np.asarray(held * distance * slopes / np.sqrt(np.diag(omega) / people))


def tree_coverage(study: LiuHuTerms, chains: RegressionChains, index: int) -> float:
    """Return the coverage of a tree's intervals along the coefficient whose segments are most alike."""
    if chains.tree is None:
        return LEVEL
    from scipy.special import stdtr

    freedom = chains.tree.leaves - 1
    reach = student_value(LEVEL, freedom) / math.sqrt(inflation(study, chains.tree, float(_slopes(study, index).min())))
    return 1 - 2 * float(stdtr(freedom, -reach))


def _slopes(study: LiuHuTerms, index: int) -> Floats:
    """Return a guess of the slope of the mean score along each coefficient, from a logistic density."""
    tau = study.taus[index]
    moments = np.array([1.0] + [1 / 3] * (study.d - 1)) if study.moments is None else np.diag(study.moments)
    return np.asarray(tau * (1 - tau) / study.noise * moments)


def _held(study: LiuHuTerms, slope: float, first: float, last: float) -> float:
    """Return the mean part of the start that points hold between two step times."""
    grid = np.concatenate([[0.0], np.geomspace(1.0, max(last, 2.0), 600)])
    steps = study.scale / (grid**study.power + study.offset)
    passed = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (steps[1:] + steps[:-1]) / 2)])
    held = np.exp(-slope * passed)
    area = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (held[1:] + held[:-1]) / 2)])
    return float(np.interp(last, grid, area) - np.interp(first, grid, area)) / (last - first)


def _spans(chains: RegressionChains, people: int) -> list[tuple[float, float, float]]:
    """Return the spans of step time behind the estimate, with their weights."""
    if chains.tree is not None:
        return [(w, a, b) for w, (a, b) in zip(chains.tree.weights, chains.tree.spans, strict=True)]
    return [(1.0, 0.0, people / len(chains.parents))]


def _coverage(study: LiuHuTerms, chains: RegressionChains, bias: float) -> float:
    ratio = min(abs(bias), FAR)
    if ratio <= NEAR:
        return LEVEL
    if study.inference == "self-normalised":
        return self_normalised_coverage(ratio, LEVEL)
    return group_coverage(ratio, chains.tree.leaves if chains.tree is not None else len(chains.parents), LEVEL)


def inflation(study: LiuHuTerms, tree: Tree, slope: float) -> float:
    """Return the variance of the leaves' mean relative to what the tree's interval expects of it.

    Children continue from their parent's point. Linearised, a person asked at step time t of a path moves every later
    point of it, so a leaf by ``influence_t = eta_t sum_{s >= t} weight_s exp(-h (S_s - S_t))`` times their noise, with
    ``S`` the sum of the steps and ``weight_s`` that of a point in the leaf's estimate. Deep in a segment this is
    ``weight / h``, the template (25); but the last people of a segment live on in all of its children. Leaves then have
    covariance ``sum_l V_l 1{same node at level l}``, ``V_l`` the sum of squared influences over level l, and the mean
    of the leaves a larger variance than their spread tells. At a million people this is most of what the slopes'
    intervals lack: simulated coverages .925, .89 and .87 (tau .5, trees 4-4, 4-8 and 4-4-4) are .92, .88 and .86 by
    it, and .85, .72 and .70 (tau .75) are .86, .74 and .71. ``slope`` is that of the mean score along a coefficient.

    >>> from sottovoce.protocol.regression.blocks import open_channel
    >>> from sottovoce.server.regression.study import LiuHuStudy
    >>> study = LiuHuStudy(open_channel(0.5, 0), np.ones((1, 1, 1)), np.zeros((1, 1)), 2.5)
    >>> [round(inflation(study, Tree((4, 4), n), 0.2), 1) for n in (10**5, 10**6, 10**8)]
    [2.0, 1.2, 1.0]
    """
    variances = _variances(study, tree, slope)
    same = tree.paths[:, None, :] == tree.paths[None, :, :]
    leaves = np.einsum("l,rsl->rs", variances, same)
    told = float(np.sum(tree.whitener * leaves)) / (tree.leaves - 1)
    return float(leaves.mean()) / (told * tree.multiplier)


def _variances(study: LiuHuTerms, tree: Tree, slope: float) -> Floats:
    """Return V_l of each level, for noise of variance 1."""
    found = np.zeros(len(tree.weights))
    after = 0.0  # what a unit of the point at the end of a cell still moves of the leaf
    for level in range(len(found) - 1, -1, -1):
        (start, stop), share = tree.spans[level], tree.weights[level]
        cell = (stop - start) / CELLS
        for k in range(CELLS - 1, -1, -1):
            step = study.scale / ((start + (k + 0.5) * cell) ** study.power + study.offset)
            fading = math.exp(-slope * step * cell)
            after = share / (stop - start) * (1 - fading) / (slope * step) + fading * after
            found[level] += cell * (step * after) ** 2
    return found


Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class LiuHuFit:
    """Estimate and intervals after some people, in internal units."""

    study: LiuHuTerms
    chains: RegressionChains
    state: LiuHuState

    @property
    def people(self) -> int:
        """Return how many people were asked."""
        return self.state.people

    def determined(self, index: int, contrast: Floats) -> bool:
        """Tell whether there is an interval."""
        try:
            self.interval(index, contrast, LEVEL)
        except Infeasible:
            return False
        return True

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Return sentences on where the intervals are expected to cover too little."""
        return warnings(self.study, self.chains, self.people) if self.people else ()

    @cached_property
    def centres(self) -> Floats:
        """Return the average of each chain's points, (chains, levels, d); the start where it had nobody."""
        if self.state.memories:
            return np.stack([vector_normalised.mean(m) if m.n else s for m, s in self._levels()])[None]
        counts = np.maximum(self.chains.counts(self.people), 1)
        return np.asarray(self.study.start + self.state.totals / counts[:, None, None])

    @cached_property
    def point(self) -> Floats:
        """Return the estimate (levels, d): the average of all points, or the mean over groups or leaves."""
        tree = self.chains.tree
        if tree is not None and self.people == tree.n:
            return np.stack([higrad.mean(tree, self.centres[:, level]) for level in range(self.study.levels)])
        asked = self.centres[self.chains.counts(self.people) > 0]
        if not len(asked):
            return np.array(self.study.start, dtype=np.float64)
        return np.asarray(asked[0] + (asked - asked[0]).mean(axis=0))

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:
        """Return the ends of the confidence interval of a contrast of the coefficients at one quantile level."""
        weights, wanted, rows = vector(contrast, self.study.d, "contrast"), confident(level), self._rows(index)
        tree = self.chains.tree
        if self.state.memories:
            return _heard(lambda: vector_normalised.interval(self.state.memories[index], weights, wanted))
        if tree is not None:
            return _heard(lambda: higrad.interval(tree, rows, weights, wanted))
        return _heard(lambda: groups.interval(rows, weights, wanted))

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        """Return the confidence ellipsoid of all coefficients at one quantile level."""
        wanted, rows, tree = confident(level), self._rows(index), self.chains.tree
        if self.state.memories:
            return _heard(lambda: vector_normalised.ellipsoid(self.state.memories[index], wanted))
        if tree is not None:
            return _heard(lambda: higrad.ellipsoid(tree, rows, wanted))
        return _heard(lambda: groups.ellipsoid(rows, wanted))

    def _rows(self, index: int) -> Floats:
        """Return the chains' averages at one quantile level, or refuse them."""
        counts = self.chains.counts(self.people)
        need = 2 if self.state.memories else len(counts)
        if self.people < need or counts.min() < 1:
            raise Infeasible(
                f"{self.study.inference} intervals need at least {need} people, one for each average, "
                f"but {self.people} were asked: ask more."
            )
        return np.asarray(self.centres[:, index])

    def _levels(self) -> list[tuple[vector_normalised.VectorMemory, Floats]]:
        return list(zip(self.state.memories, self.study.start, strict=True))


def _heard(ask: Callable[[], Found]) -> Found:
    """Return what an inference says, its refusals as refusals: the question was checked before."""
    try:
        return ask()
    except BadInput as why:
        raise Infeasible(str(why)) from None
