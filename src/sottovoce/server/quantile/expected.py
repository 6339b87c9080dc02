"""How far the interval of a quantile will reach, in levels, from public numbers alone.

If all records answered at the quantile, the distribution function there had the error
``s = sqrt(sum p^2 q (1 - q) / (r^2 N))``, where ``q`` is the chance of a letter. The interval is longer than two of
``z s`` by what the search and the stages cost; the factors were fitted to medians of simulated runs, over normal,
exponential and uniform populations, and held on others (docs/decisions/0075).
"""

import math
from collections.abc import Sequence

import numpy as np

from sottovoce.inference.common.normal import two_sided
from sottovoce.server.description import WIDTH, promise
from sottovoce.server.explanation import VALUES, ExpectedWidth, Explanation, reaching
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.feasibility import FOUND, PAIRS, SCARCE, reach, support
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.summary import limits_row, weights_text

SMOOTH = "a smooth density around the quantile"
ROUNDS = {"staged": "about 15 to 40 rounds", "certified": "about 20 rounds", "sequence": "about 40 rounds"}
FAR = 0.2  # of the tail: an interval with less of it left beyond came out up to 3,000 times as wide as planned
FAR_OUT = 670.0  # fitted to medians of groups of 300 to 3,000 records at levels of .99 and .999
MOST_ROWS = 24  # of the table of sites


def error_of(crowd: SiteProfile, tau: float) -> float:
    """Return the error of the distribution function at the quantile, if every record answered there."""
    success = (1 - crowd.rates) / 2 + crowd.rates * tau
    return math.sqrt(float(np.sum(crowd.shares**2 * success * (1 - success) / (crowd.rates**2 * crowd.sizes))))


def certifies(plan: QuantilePlan, method: str, crowd: SiteProfile) -> bool:
    """Tell whether the interval will be certified: because it is asked for, or as the records are too few."""
    if method != "staged":
        return method == "certified"
    return plan.atoms or support(crowd, plan.tau).ratio > PAIRS.at(plan.tau).refuse


def expected_reach(plan: QuantilePlan, method: str, level: float, thinned: float = 1.0) -> tuple[float, float]:
    """Return from which quantile to which the interval will run, about."""
    tau, crowd = plan.tau, plan.crowd.thinned(thinned)
    if certifies(plan, method, crowd):
        return reach(crowd, tau, level, plan.bounds is not None or plan.located)
    error = error_of(crowd, tau)
    share = error / min(tau, 1 - tau)
    worst = support(crowd, tau).ratio
    if method == "sequence":
        if plan.bounds is None and share > FOUND:
            return 0.0, 1.0
        deep = math.log(max(0.1 * share / error, 1.0))
        factor = 3.25 if plan.bounds is not None else (3.5 + 2_900 * error**2) * (1 + 0.18 * deep)
    elif method == "regression":
        factor = 1 + 13 * share
    elif method == "self-normalised":
        factor = 1.1 + 20 * share
    elif worst > SCARCE:
        # the slope of the curve is known badly: far from the estimate, at high levels, that costs more than the error
        steep = FAR_OUT * max(two_sided(level) - two_sided(0.95), 0.0) ** 2 * crowd.unit_variance
        factor = (0.96 + 6.4 * worst) * (1 + steep)
    else:
        factor = 1.04 + 10 * worst + 900 * error**2
    half = factor * two_sided(level) * error
    return max(tau - half, 0.0), min(tau + half, 1.0)


def is_far(plan: QuantilePlan, method: str, low: float, high: float) -> bool:
    """Tell whether an end may lie far out in values: of points that are certified, and with next to no tail beyond."""
    if method not in ("certified", "sequence") and not certifies(plan, method, plan.crowd):
        return False
    return min(low, 1 - high) < FAR * min(plan.tau, 1 - plan.tau)


def expected_width(plan: QuantilePlan, method: str, level: float, thinned: float = 1.0, of: str = "") -> ExpectedWidth:
    """Return how wide the interval will be."""
    low, high = expected_reach(plan, method, level, thinned)
    found = reaching(of, low, high, plan.scale)
    return found._replace(value=math.inf) if found.unit == VALUES and is_far(plan, method, low, high) else found


def assumption_of(plan: QuantilePlan, method: str) -> str:
    """Say what the expected width rests on."""
    smooth = "nothing of the distribution" if certifies(plan, method, plan.crowd) or method == "sequence" else SMOOTH
    scale = "no public scale is given, so levels are told"
    if plan.scale is not None:
        scale = f"values as of a normal distribution with the standard deviation {plan.scale:g}, the public scale"
    step = f"; its ends go to the next multiple of {plan.resolution:g}" if plan.resolution else ""
    return f"{smooth}; {scale}{step}"


def sites_table(plan: QuantilePlan) -> list[str]:
    """Return the sites: what each counts, pays, and adds to the noise."""
    lines = [f"{'site':<28}{'records':>12}{'share':>12}{'epsilon':>12}{'of the noise':>14}", "-" * WIDTH]
    for name, count in list(plan.by_site.items())[:MOST_ROWS]:
        shown = name if len(name) <= 28 else name[:27] + "…"
        numbers = f"{count.records:>12,}{count.share:>12.4f}{count.epsilon:>12.4g}{count.noise:>14.1%}"
        lines.append(f"{shown:<28}{numbers}")
    more = len(plan.by_site) - MOST_ROWS
    return [*lines, f"and {more:,} more sites"] if more > 0 else lines


def asked_of(plan: QuantilePlan, rounds: str, what: str) -> list[tuple[str, str]]:
    """Say what would be asked of whom."""
    unit = "person" if plan.roster.per_person else "record"
    total, sites = sum(plan.roster.sizes), len(plan.by_site)
    found = [
        ("Question", f"{what}; each {unit} is asked once at most whether it lies below a point"),
        ("Answers", f"one of 2 letters each, {total:,} {unit}s at {sites:,} site{'' if sites == 1 else 's'}, {rounds}"),
    ]
    found += limits_row(plan.roster.unit)
    if plan.roster.weighted:
        found.append(("Weights", weights_text(plan)))
    if plan.left_out:
        found.append(("Left out", ", ".join(plan.left_out)))
    return found


def explain_quantile(
    plan: QuantilePlan,
    method: str,
    level: float,
    widths: Sequence[ExpectedWidth],
    *,
    rounds: str,
    what: str,
    warnings: Sequence[str],
    seeded: bool = False,
) -> Explanation:
    """Say what a study of quantiles would do."""
    public = {
        "method": method,
        "level": level,
        "tau": plan.tau,
        "sites": [
            {
                "name": name,
                "records": count.records,
                "share": count.share,
                "epsilon": None if math.isinf(count.epsilon) else count.epsilon,
            }
            for name, count in plan.by_site.items()
        ],
        "sites_left_out": list(plan.left_out),
        "letters": 2,
    }
    private = all(map(math.isfinite, plan.budgets)) and not seeded
    return Explanation(
        f"Plan, nothing asked: {method}, {level:.4g} interval",
        asked_of(plan, rounds, what),
        promise(plan.epsilons, private, plan.roster.per_person),
        widths,
        assumption_of(plan, method),
        warnings,
        sites_table(plan),
        public,
        plan.hints,
    )
