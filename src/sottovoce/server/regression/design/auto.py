"""Choose a channel from the public setting alone: levels, number of slopes, budget and second moments.

Every family is built at its best and judged by the trace of H^-1 Omega H^-1, the asymptotic mean squared error of all
coefficients. No record is looked at, so nothing is spent.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.open import open_channel
from sottovoce.server.regression.design.boxes import boxes
from sottovoce.server.regression.design.covariates import Covariates, covariates
from sottovoce.server.regression.design.explain import Alternative, Design, alternative
from sottovoce.server.regression.design.families import Setting, best_cq, box_mixture, lp_mixture
from sottovoce.server.regression.design.omega import covariance
from sottovoce.server.regression.design.shared import shared_box

Moments = float | Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]]

LARGEST = 24.0  # as for one bit: more cannot be expressed within 1e-8 on a die of 2^62 faces
SMALLEST = 1e-6  # a million millions of people would not see a quantile through less
CLOSE = 0.0999  # levels nearer to each other do not share a report
PROGRAM = (0.02, 5.0)  # budgets between which the linear program is solved; beyond them boxes are as good


def choose(taus: float | Sequence[float], p: int, epsilon: float, second_moments: Moments | None = None) -> Design:
    """Return the design with the smallest predicted error for a public setting.

    Parameters
    ----------
    taus
        The quantile level, or several.
    p
        The number of slopes.
    epsilon
        The budget of one report; ``math.inf`` sends exact scores.
    second_moments
        The public E z_j^2 after scaling to [-1, 1]: for each slope, one for all, or the matrix E z z'; None: 1/3.

    Examples
    --------
    >>> choose(0.75, 2, 4.0).name
    'box'
    """
    levels, known = setting(taus, p, epsilon, second_moments)
    if math.isinf(epsilon):
        return Design.of(open_channel(levels, p), known, "exact scores, not private")
    single = [_one(Setting(tau, epsilon, known)) for tau in levels]
    if len(levels) == 1:
        return single[0]
    return _together(levels, known, single, shared_box(levels, epsilon, known))


def setting(
    taus: float | Sequence[float], p: int, epsilon: float, second_moments: Moments | None
) -> tuple[tuple[float, ...], Covariates]:
    """Return levels and moments, checked; refuse what no channel can serve."""
    levels = (float(taus),) if isinstance(taus, float | int) else tuple(sorted(float(tau) for tau in taus))
    if not levels or not all(0 < tau < 1 for tau in levels) or len(set(levels)) < len(levels):
        raise BadInput(f"quantile levels lie between 0 and 1, each once, not {taus!r}; give tau such as 0.5.")
    if p < 0:
        raise BadInput(f"the number of slopes cannot be {p}; give the number of covariates.")
    if not epsilon > 0 or (epsilon > LARGEST and not math.isinf(epsilon)):
        raise BadInput(
            f"epsilon must lie above 0 and at most at {LARGEST:g}, not {epsilon!r}; "
            "give a budget such as 1, or inf for no privacy."
        )
    if epsilon < SMALLEST:
        raise BadInput(
            f"epsilon {epsilon!r} is too small for any number of people to learn from; "
            f"give {SMALLEST:g} or more, such as 1."
        )
    return levels, covariates(p, second_moments)


def _one(wanted: Setting) -> Design:
    """Return the design for one level, with every family as an alternative."""
    known, table = wanted.known, boxes((wanted.tau,), wanted.epsilon, wanted.known)
    paper = best_cq(wanted, table)
    found: list[tuple[RegressionChannel, str]] = [(paper, "the paper's blocks, drawn uniformly")]
    if known.p > 0:
        thin = box_mixture(wanted, table.take(table.width == 1), "cq optimised")
        found.append((thin, "the paper's blocks, drawn by the best law"))
        found.append((box_mixture(wanted, table), "boxes of cells"))
    if known.p > 0 and PROGRAM[0] <= wanted.epsilon <= PROGRAM[1]:
        found.append((lp_mixture(wanted, table), "pairs from a linear program"))
    traces = [float(np.trace(covariance(channel, known))) for channel, _ in found]
    # ties go to the simpler family: a design that gains nothing is not worth its explanation
    best = next(i for i, trace in enumerate(traces) if trace <= min(traces) * (1 + 1e-3))
    others = tuple(alternative(channel, known, words) for channel, words in found)
    return Design(found[best][0].name, (found[best][0],), known, wanted.epsilon, others, found[best][1])


def _together(levels: tuple[float, ...], known: Covariates, single: list[Design], shared: RegressionChannel) -> Design:
    """Return the shared design or the split one, whichever has the smaller trace over all levels."""
    epsilon = single[0].epsilon
    errors = np.array([design.alternative.errors[0] for design in single]) * math.sqrt(len(levels))
    trace = sum(design.alternative.trace for design in single) * len(levels)
    split = Alternative("split", "each person answers for one level, drawn at random", errors, trace)
    both = (split, alternative(shared, known, "one face between all levels, and boxes of cells"))
    # the fitted quantiles of close levels cross again and again, which one face between them cannot tell
    apart = min(high - low for low, high in pairwise(levels))
    if both[1].trace <= trace and apart >= CLOSE:
        return Design(shared.name, (shared,), known, epsilon, both, both[1].description)
    channels = tuple(design.channel for design in single)
    return Design("split", channels, known, epsilon, both, split.description)
