r"""Where the paper's intervals are known to cover too little, from public numbers alone.

Two biases are not seen by the spread of the averages. The curvature of the distribution function shifts the intercept
(`inference.regression.undercoverage`). And the start is forgotten slowly: of its distance from the truth the average
still holds the mean of ``exp(-h sum eta)`` with ``h`` the slope of the mean score along a coefficient, the more the
smaller the steps, that is, the smaller the budget. In units of the standard error ``sqrt(Omega_jj / n) / h`` this is a
guess, as the distance is one: logistic noise of the scale that the study names, and coefficients of twice that length,
as in the paper. A tree's leaves moreover share more than its template says (`plain_tree`).
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.regression.groups import student_value
from sottovoce.inference.regression.undercoverage import (
    TOLERANCE,
    average_step,
    expected_bias_ratio,
    group_coverage,
    self_normalised_coverage,
)
from sottovoce.server.regression.liu_hu.chains import Chains
from sottovoce.server.regression.liu_hu.study import LiuHuStudy
from sottovoce.server.regression.liu_hu.tree import inflation

LEVEL = 0.95
NEAR, FAR = 0.3, 5.0  # standard errors: up to the one every method covers 93.9 %, beyond the other none covers


def warnings(study: LiuHuStudy, chains: Chains, people: int) -> tuple[str, ...]:
    """Return a sentence for each level at which intervals are expected to cover too little."""
    found = []
    for index, tau in enumerate(study.channel.taus):
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


def curvature_ratio(study: LiuHuStudy, chains: Chains, people: int, index: int) -> float:
    """Return the bias that curvature gives the intercept, in standard errors."""
    omega, tau = study.omega[index], study.channel.taus[index]
    step = sum(w * average_step(study.scale, a, b, study.power, study.offset) for w, a, b in _spans(chains, people))
    bend = (2 * tau - 1) / (2 * study.noise)  # -F'' / (2 f) of a logistic law
    return expected_bias_ratio(tau, float(np.trace(omega)), float(omega[0, 0]), step, people, bend)


def start_ratios(study: LiuHuStudy, chains: Chains, people: int, index: int) -> Floats:
    """Return the bias that the start leaves in each coefficient, in standard errors."""
    slopes, omega = _slopes(study, index), study.omega[index]
    held = np.array([sum(w * _held(study, h, a, b) for w, a, b in _spans(chains, people)) for h in slopes])
    distance = 2 * study.noise / math.sqrt(study.d)
    return np.asarray(held * distance * slopes / np.sqrt(np.diag(omega) / people))


def tree_coverage(study: LiuHuStudy, chains: Chains, index: int) -> float:
    """Return the coverage of a tree's intervals along the coefficient whose segments are most alike."""
    if chains.tree is None:
        return LEVEL
    from scipy.special import stdtr

    freedom = chains.tree.leaves - 1
    reach = student_value(LEVEL, freedom) / math.sqrt(inflation(study, chains.tree, float(_slopes(study, index).min())))
    return 1 - 2 * float(stdtr(freedom, -reach))


def _slopes(study: LiuHuStudy, index: int) -> Floats:
    """Return a guess of the slope of the mean score along each coefficient, from a logistic law's density."""
    tau = study.channel.taus[index]
    moments = np.array([1.0] + [1 / 3] * study.channel.p) if study.moments is None else np.diag(study.moments)
    return np.asarray(tau * (1 - tau) / study.noise * moments)


def _held(study: LiuHuStudy, slope: float, first: float, last: float) -> float:
    """Return the mean part of the start that points hold between two step times."""
    grid = np.concatenate([[0.0], np.geomspace(1.0, max(last, 2.0), 600)])
    steps = study.scale / (grid**study.power + study.offset)
    passed = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (steps[1:] + steps[:-1]) / 2)])
    held = np.exp(-slope * passed)
    area = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (held[1:] + held[:-1]) / 2)])
    return float(np.interp(last, grid, area) - np.interp(first, grid, area)) / (last - first)


def _spans(chains: Chains, people: int) -> list[tuple[float, float, float]]:
    """Return the stretches of step time behind the estimate, with their weights."""
    if chains.tree is not None:
        return [(w, a, b) for w, (a, b) in zip(chains.tree.weights, chains.tree.spans, strict=True)]
    return [(1.0, 0.0, people / len(chains.parents))]


def _coverage(study: LiuHuStudy, chains: Chains, bias: float) -> float:
    ratio = min(abs(bias), FAR)
    if ratio <= NEAR:
        return LEVEL
    if study.inference == "self-normalised":
        return self_normalised_coverage(ratio, LEVEL)
    return group_coverage(ratio, chains.tree.leaves if chains.tree is not None else len(chains.parents), LEVEL)
