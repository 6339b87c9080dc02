"""The root of the regression of reports on the queries they answered: post-processing of the walk, at no budget.

At site ``k`` a decoded report has mean ``1 - F_k(q)`` at its query ``q``, so a straight line through the reports has
slope ``-f_k``. The weighted sum of the sites' lines crosses ``1 - tau`` at the quantile. Every record has the same
weight, so the schedule's factor ``nu`` of Theorem 3.1 and the way from the start to the quantile drop out of the error.
The regressor is the query that each record answered: round averages would hold the noise of the same round's reports.
"""

import numpy as np

from sottovoce.core.errors import Infeasible
from sottovoce.inference.quantile import fieller
from sottovoce.inference.quantile.fieller import Line
from sottovoce.server.quantile.recursion.walk import Estimate, WalkState, WalkStudy, reports

FEW = 10.0  # a site with fewer reports borrows the average slope of the others


def line(study: WalkStudy, state: WalkState) -> Line:
    """Return the weighted sum of the sites' regression lines, less its target 1 - tau.

    The state holds the rounds after those that are left out.
    """
    plan = study.plan
    n, totals, squares, products, ones = state.sums.T
    if n.min() < 1:
        raise Infeasible(
            f"site {int(np.argmin(n))} has no report after the first {study.burnt} rounds; "
            "use a finer schedule, more records, or leave the site out."
        )
    spreads = squares - totals**2 / n
    fit = (n >= FEW) & (spreads > 0)
    if not fit.any():
        raise Infeasible(f"no site has {FEW:.0f} reports at different queries; use more records or a finer schedule.")
    covered = float(plan.shares[fit].sum())
    means = totals / n
    rate = (ones + 1) / (n + 2)
    variances = rate * (1 - rate) / plan.rates**2
    # a share without a line of its own is spread over the others' lines
    weights = np.where(fit, plan.shares / covered, 0.0)
    safe = np.where(fit, spreads, 1.0)
    slopes = -(products - totals * ones / n) / safe / plan.rates
    slope = float(np.sum(weights * slopes))
    distances = np.where(fit, plan.shares * means, 0.0) + weights * float(np.sum((plan.shares * means)[~fit]))
    height = float(np.sum(plan.shares * (plan.moves[:, 0] + ones / n / plan.rates)) + np.sum(slopes * distances))
    noises = weights**2 * variances / safe
    spread = float(noises.sum())
    centres = distances / np.where(fit, weights, 1.0)
    middle = float(np.sum(noises * centres)) / spread
    floor = float(np.sum(plan.shares**2 * variances / n) + np.sum(noises * (centres - middle) ** 2))
    return Line(state.origin, height, slope, middle, floor, spread)


def estimate(study: WalkStudy, state: WalkState, level: float = 0.95) -> Estimate:
    """Return the root with its interval (`local.quantile.compiled_walk.run` has an example)."""
    fitted = line(study, state)
    low, high = fieller.interval(fitted, level)
    return Estimate(fieller.crossing(fitted), low, high, level, reports(study, state))


def p_value(study: WalkStudy, state: WalkState, value: float, alternative: str = "two-sided") -> float:
    """Return the p-value of a supposed quantile, by the test that the interval inverts."""
    return fieller.p_value(line(study, state), value, alternative)
