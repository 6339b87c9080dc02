"""What a threshold, or a report of its coverage, would ask and tell, before anything is sent."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.normal import two_sided
from sottovoce.server.conformal.automatic import FEW
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.methods import alike_sites
from sottovoce.server.conformal.plan import Participants, chosen
from sottovoce.server.conformal.pooled_result import PooledThreshold
from sottovoce.server.conformal.report import CoveragePlan
from sottovoce.server.conformal.settings import COUNTED, SCANNED
from sottovoce.server.conformal.thresholds_told import ThresholdsToDescribe
from sottovoce.server.explanation import LEVELS, ExpectedWidth, Explanation

if TYPE_CHECKING:
    from sottovoce.server.conformal.coverage.predicted import Forecast

MOST_SHOWN = 12  # groups whose range is told
SCANNED_PLACES, COUNTED_PLACES = 3, 9  # of the quantile in the grid: coarse grids take more to be averaged over
MOST_CELLS = 200  # of a grid in an expected range
RANGE = 0.95  # of calibrations, for which the threshold's place is told
SAME = "scores of all sites from one distribution"
SHAPE = "if scores fall off exponentially somewhere inside the public range"
SENT = {
    None: "order statistics",
    COUNTED: "one noisy count of scores at or below one edge of a public grid",
    "local": "one bit a score",
    "aggregate": "noisy counts into a secure sum",
}


def explain_threshold(promised: Threshold, warnings: Sequence[str], forecast: "Forecast | None" = None) -> Explanation:
    """Say what a threshold would be made from; ``promised`` is the threshold as it will be, but for its value.

    ``forecast`` is what its mechanism was chosen by, if it was.
    """
    sites, scores = len(promised.names), sum(fact.size for fact in promised.facts)
    sent = f"one cell of a public grid of {len(promised.edges):,} edges"
    sent = SENT.get(promised.mechanism, sent)
    asked = [
        ("Question", f"the {1 - promised.alpha:.6g} quantile of new scores, {promised.guarantee} guarantee"),
        ("Answers", f"one message a site, {sent}; {scores:,} scores at {sites:,} sites, 1 round"),
        ("Promise", promised.estimand),
        ("Coverage", f"{'at least ' if promised.spent is not None else ''}{promised.coverage:.4f} on average"),
    ]
    if forecast is not None:
        expected = f"coverage {forecast.coverage:.3f} give or take {forecast.spread:.3f}, and a threshold about "
        expected += f"{forecast.length:.3g} times the quantile, {SHAPE}; mechanism {promised.mechanism!r}"
        asked.append(("Forecast", expected))
    low, high = _range(promised)
    wanted = 1 - promised.alpha  # how far coverage may stray is told from where it is wanted
    width = max(high, wanted) - min(low, wanted)
    values = {key: value for key, value in promised.plain_values().items() if key not in ("value", "infinite", "empty")}
    return Explanation(
        f"Plan, nothing asked: conformal threshold, alpha = {promised.alpha:.6g}",
        asked,
        promised.privacy_statement,
        [ExpectedWidth(f"the threshold, in {RANGE:.0%} of calibrations", width, LEVELS, low, high)],
        _assumed(promised),
        warnings,
        values=values,
    )


def _assumed(promised: Threshold) -> str:
    """Return what the range of the threshold rests on."""
    if promised.mechanism in (COUNTED, SCANNED):
        return f"{SAME}; {SHAPE.removeprefix('if ')}"
    return SAME if promised.spent is None else f"{SAME}, and no noise but the promised bound of it"


def _range(promised: Threshold) -> tuple[float, float]:
    """Return between which levels of the scores the threshold will lie."""
    if isinstance(promised, PooledThreshold):
        return _counted_range(promised) if promised.choice.edge_of else _pooled_range(promised)
    if promised.mechanism == SCANNED and math.isfinite(max(promised.spent or (math.inf,))):
        return _scanned_range(promised)
    levels, at_least = promised.distribution
    tail, total = (1 - RANGE) / 2, float(at_least.max())
    ends = np.interp([-total * (1 - tail), -total * tail], -at_least, levels)
    return float(ends[0]), float(ends[1])


def _scanned_range(promised: Threshold) -> tuple[float, float]:
    """Return the range of a threshold from cells, noise that stops scans early counted, as of sites that are alike."""
    from sottovoce.protocol.selection.sparse_vector import sparse_vector
    from sottovoce.server.conformal.coverage.predicted import expected_range, reached_by_cells

    alike, sites = alike_sites(promised.facts), len(promised.facts)
    _, choice = chosen((alike,), (sites,), promised.settings, 2)
    if choice is None:  # no promise if they were alike: each is told of itself
        return 0.0, 1.0
    line = np.array(promised.edges)
    line = line[:: -(-len(line) // MOST_CELLS)] if len(line) > MOST_CELLS else line
    mechanism = sparse_vector(alike.size, choice.orders[0][0], len(line) + 1, alike.epsilon)

    def reached(tails: Floats) -> Floats:
        return reached_by_cells(mechanism, sites, choice.rank, tails)

    return expected_range(reached, line, promised.alpha, RANGE, SCANNED_PLACES)


def _counted_range(promised: PooledThreshold) -> tuple[float, float]:
    """Return the range of a threshold from counts, each edge known by its own sites alone; few edges tell no end."""
    from sottovoce.server.conformal.coverage.predicted import expected_range, reached_by_counts

    sizes = [fact.size for fact in promised.facts]

    def reached(tails: Floats) -> Floats:
        return reached_by_counts(promised.choice, sizes, tails)

    low, high = expected_range(reached, np.array(promised.edges), promised.alpha, RANGE, COUNTED_PLACES)
    return low, high if len(promised.edges) >= FEW else 1.0


def _pooled_range(promised: PooledThreshold) -> tuple[float, float]:
    """Return the range of a threshold of summed answers: sampling and noise around the coverage that is promised."""
    choice, alpha, z = promised.choice, promised.alpha, two_sided(RANGE)
    if choice.asked:
        rate = math.tanh(max(choice.epsilons) / 2)
        chance = (1 - rate) / 2 + rate * alpha
        error = math.sqrt(chance * (1 - chance) / max(sum(choice.asked), 1)) / rate
    else:
        error = math.sqrt(alpha * (1 - alpha) / max(sum(fact.size for fact in promised.facts), 1))
    return max(choice.coverage - z * error, 0.0), min(choice.coverage + z * error, 1.0)


def explain_thresholds(
    promised: ThresholdsToDescribe, plans: Mapping[str, Explanation], warnings: Sequence[str]
) -> Explanation:
    """Say what thresholds by group would be made from; ``promised`` are they as they will be, but for their values."""
    scores = sum(promised.sizes[group] for group in plans)
    widths = [plan.widths[0]._replace(of=group) for group, plan in plans.items()]
    sent = sorted(
        {text.partition("; ")[0] for plan in plans.values() for label, text in plan.asked if label == "Answers"}
    )
    asked = [
        ("Question", f"the {1 - promised.alpha:.6g} quantile of new scores in each of {len(promised):,} groups"),
        ("Answers", f"{'; or '.join(sent)}; {scores:,} scores, each used once, 1 round"),
        ("Promise", promised.estimand),
    ]
    if (common := promised.common) is not None:
        low, high = _range(common)
        least = "at least " if common.spent is not None else ""
        words = f"a rank of the same messages, for a site without a threshold of its own: coverage {least}"
        asked.append(("Common", f"{words}{common.coverage:.4f}, level {low:.3f} to {high:.3f}, if sites are alike"))
    dropped = ("value", "infinite", "empty")
    values = {key: value for key, value in promised.describe().values.items() if key not in dropped}
    return Explanation(
        f"Plan, nothing asked: thresholds by group, alpha = {promised.alpha:.6g}",
        asked,
        promised.privacy_statement,
        widths[:MOST_SHOWN],
        "scores of a group from one distribution",
        warnings,
        values=values,
    )


def explain_report(plan: CoveragePlan, who: Participants) -> Explanation:
    """Say what a report on coverage would ask, and how wide the interval of each site will be."""
    z, goal, widths = two_sided(plan.level), 1 - plan.alpha, []
    for place, (name, fact) in enumerate(zip(who.names, who.facts, strict=True)):
        noise = 0.0
        if plan.noises is not None:
            odds = math.exp(-plan.noises[place].epsilon)
            noise = 2 * odds / (1 - odds) ** 2
        half = z * math.sqrt(goal * (1 - goal) / fact.size + noise / fact.size**2)
        widths.append(ExpectedWidth(name, min(goal + half, 1.0) - max(goal - half, 0.0), LEVELS))
    private = plan.noises is not None
    sent = "one noisy count" if private else "a count and its own quantile, as they are"
    paid = max((noise.epsilon for noise in plan.noises or ()), default=math.inf)
    told = f"each site sends one noisy count (epsilon {paid:.3g}, computed from the integers of the noise)"
    return Explanation(
        f"Plan, nothing asked: coverage by site, {plan.level:.4g} intervals",
        [
            ("Question", f"how many scores of each site a threshold covers, where {goal:.6g} is wished"),
            ("Answers", f"one message a site, {sent}; {sum(fact.size for fact in who.facts):,} scores, 1 round"),
        ],
        f"Private: {told}." if private else "No privacy: sites send counts and scores as they are.",
        widths,
        f"a coverage of about {goal:.6g} at every site",
        values={"alpha": plan.alpha, "level": plan.level, "sites": list(who.names), "private": private},
    )
