"""Whom a threshold fails: its coverage site by site, worst first, beside what was promised and what was to be expected.

Sites that differ may average well and fail badly one by one. Each site counts how many of its scores the threshold
covers, once, plainly or with noise; everything else is computed from the counts. Where the report is not private, the
scores of all sites together also tell what coverage to expect from a new calibration, and each site its own quantile.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.api.asking import spend
from sottovoce.client.conformal.site import CoverageSite, PooledScores
from sottovoce.client.door import Door, SiteLimits
from sottovoce.client.reading.table import SCORES, SiteTable, read_sites
from sottovoce.core.calling import public
from sottovoce.core.checks import check_callers, confidence, number, per_site
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private, parts_of
from sottovoce.core.unit import uncensored
from sottovoce.local.runner import run
from sottovoce.protocol.card import identity
from sottovoce.protocol.selection.geometric import NoisyCount, noisy_count
from sottovoce.server.conformal.coverage.voting import AskedVotes, curve
from sottovoce.server.conformal.plan import Participants, SiteFacts
from sottovoce.server.conformal.report import CoverageMethod, CoveragePlan, CoverageReport, Prediction

if TYPE_CHECKING:
    from sottovoce.server.explanation import Explanation

LIMITS = SiteLimits(points=1, rounds=1)
LEAST = 1e-9  # of all weights: a site that counts less counts nothing


@public
def coverage_report(
    threshold: Any,
    scores: Any,
    *,
    alpha: float | None = None,
    weights: Any = "sites",
    level: float = 0.95,
    epsilon: Any = None,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
) -> CoverageReport:
    """Report the coverage of a threshold at every site, worst first, and over all of them.

    Parameters
    ----------
    threshold
        What `conformal_threshold` or `conformal_thresholds` returned, of which each site is judged by its own; or a
        number, with ``alpha``.
    scores
        Scores to judge it by, as for `conformal_threshold`: fresh ones if there are any, for those that made the
        threshold flatter it.
    alpha
        The part of the scores that a plain number is allowed to miss; a threshold knows its own.
    weights
        What each site counts in the mixture: "sites" (all the same, as equal votes do), "records" (by size), or a
        mapping from site to weight, which sum to one.
    level
        The confidence level of every interval.
    epsilon
        The budget of a record, one number or one a site: each site then sends nothing but a noisy count. None: the
        report is not private, and also tells the expected coverage and the local quantiles.
    randomness
        None for the operating system's entropy; `sim.dice` for simulation, which makes the report not private.
    missing
        "refuse" missing values, or "drop" and count them.

    Returns
    -------
    The report; print it for a table, ``plot(path)`` for a picture.

    Examples
    --------
    >>> from sottovoce.api.conformal.report import coverage_report
    >>> sites = {"north": [i / 100 for i in range(1, 101)], "south": [i / 80 for i in range(1, 101)]}
    >>> report = coverage_report(0.9, sites, alpha=0.1)
    >>> report.worst.name, report.worst.coverage, round(report.worst.high, 3), report.below
    ('south', 0.72, 0.805, ('south',))
    >>> round(report.mixture.estimate, 3)
    0.81
    """
    given = {"alpha": alpha, "weights": weights, "level": level, "epsilon": epsilon}
    return run_report(plan_report(threshold, scores, **given, randomness=randomness, missing=missing))


@dataclass(frozen=True, eq=False)
class PlannedReport:
    """A report whose whole input is checked, and for which no site was asked yet."""

    asked: CoveragePlan
    who: Participants
    table: SiteTable = field(repr=False)
    made: Any = field(repr=False)
    dice: RandomSource

    @property
    def budgets(self) -> dict[str, float]:
        """Return what the report costs a score of each site."""
        return {name: fact.epsilon for name, fact in zip(self.who.names, self.who.facts, strict=True)}

    def explain(self, seeded: bool = False) -> "Explanation":  # noqa: ARG002
        """Return what would be sent, what is protected, and how wide the intervals will be; nobody is asked."""
        from sottovoce.server.conformal.expected import explain_report

        return explain_report(self.asked, self.who)


def plan_report(
    threshold: Any,
    scores: Any,
    *,
    alpha: float | None = None,
    weights: Any = "sites",
    level: float = 0.95,
    epsilon: Any = None,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
) -> PlannedReport:
    """Check all input of `coverage_report` without asking any site."""
    value, missed, made = _goal(threshold, alpha)
    by_site = made if hasattr(made, "value_at") else None
    share = confidence(level)
    check_callers(randomness, None)
    table = (
        scores.undivided("a coverage report")
        if isinstance(scores, SiteTable)
        else read_sites(scores, missing=missing, needs=SCORES)
    )
    if table.unit.kind != "number":
        raise BadInput(f"scores must be numbers, not {table.unit.plural}; give the scores of the model.")
    uncensored(table.unit, "a score")
    parts, weights_name = _weights(weights, table)
    noises = None if epsilon is None else _noises(epsilon, table.names)
    dice = SystemEntropy() if randomness is None else randomness
    # the budgets as they were stated: the noise costs a little less, which in floats may round to more
    budgets = [math.inf if noises is None else float(value) for value, _ in per_site(epsilon, table.names, "epsilon")]
    facts = tuple(SiteFacts(records.size, budget) for records, budget in zip(table.records, budgets, strict=True))
    seeded = (noises is not None and not is_private(dice)) or table.seeded
    who = Participants(table.names, facts, sum(table.dropped.values()), table.per_person, seeded, table.column)
    promised = None if made is None or by_site is not None else float(made.coverage)
    private = made is not None and made.epsilon is not None
    values = () if by_site is None else tuple(by_site.value_at(name) for name in table.names)
    value = max(values, default=value)
    asked = CoveragePlan(value, missed, share, parts, weights_name, noises, promised, private, values)
    return PlannedReport(asked, who, table, made, dice)


def run_report(planned: PlannedReport) -> CoverageReport:
    """Ask every site once: from here on sites answer."""
    asked, who, table = planned.asked, planned.who, planned.table
    study = identity(asked.card(who))
    in_all = spend(table, [fact.epsilon for fact in who.facts], planned.dice)
    doors = [
        Door(CoverageSite(records, fact.epsilon, own, limits=LIMITS), study, LIMITS)
        for records, fact, own in zip(table.records, who.facts, parts_of(planned.dice, len(who.facts)), strict=True)
    ]
    report = replace(run(CoverageMethod(asked, who), doors), in_all=in_all)
    if asked.noises is not None:
        return report
    predicted, unpredicted = _predict(planned.made, table, asked.weights)
    return replace(report, predicted=predicted, unpredicted=unpredicted)


def _predict(made: Any, table: SiteTable, weights: Sequence[float]) -> tuple[Prediction | None, str | None]:
    """Return the coverage to expect of new calibrations under the sites' own distributions, or why it is not known.

    It takes the scores of all sites in one place: no message of a site would do.
    """
    if made is None:
        return None, "of a plain number it is not known how it was made"
    if hasattr(made, "value_at"):
        return None, "each site has a threshold of its own"
    if made.epsilon is not None:
        return None, "the threshold was made with noise, and a site's value is not one of its scores"
    asked_of, sizes, votes = made.orders, made.sizes, made.votes  # made anew at each call
    places = {name: place for place, name in enumerate(table.names)}
    absent = [name for name in asked_of if name not in places]
    if absent:
        return None, f"site {absent[0]!r} took part in the threshold and has no scores here"
    pooled = PooledScores(table.records)
    voters = [places[name] for name in asked_of]
    asked = AskedVotes(
        tuple(int(sizes[name]) for name in asked_of),
        tuple(tuple(map(int, orders)) for orders in asked_of.values()),
        tuple(int(votes[name]) for name in asked_of),
        int(made.choice.rank),
    )
    averages = np.zeros(len(table.names))
    for rank, chance in ((asked.rank, made.chance), (asked.rank - 1, 1 - made.chance)):
        if chance > 0:
            found = curve(asked._replace(rank=rank), lambda ranks: pooled.shares_at(ranks)[voters], len(pooled))
            averages += chance * pooled.averages(*found)
    return Prediction(float(np.dot(weights, averages)), dict(zip(table.names, averages.tolist(), strict=True))), None


def check_report(scores: SiteTable, weights: Any, level: Any, epsilon: Any, called: str = "epsilon") -> None:
    """Refuse settings that a report on scores could not use, before the threshold is made that it is to judge."""
    confidence(level)
    _weights(weights, scores)
    if epsilon is not None:
        _noises(epsilon, scores.names, called)


def _goal(threshold: Any, alpha: Any) -> tuple[float, float, Any]:
    """Read a threshold, or a number with its alpha; None for how it was made if that is not known."""
    if hasattr(threshold, "alpha") and (hasattr(threshold, "coverage") or hasattr(threshold, "value_at")):
        if alpha is not None and number(alpha, "alpha") != threshold.alpha:
            raise BadInput(f"alpha {alpha!r} is not that of the threshold, {threshold.alpha!r}; leave it out.")
        return float(getattr(threshold, "value", math.nan)), float(threshold.alpha), threshold
    value = number(threshold, "threshold")
    if alpha is None:
        raise BadInput("a threshold that is a plain number does not say what it is to cover; give alpha, such as 0.1.")
    missed = number(alpha, "alpha")
    if not 0 < missed < 1:
        raise BadInput(f"alpha must lie strictly between 0 and 1, not {alpha!r}; give 0.1 for a coverage of 0.9.")
    return value, missed, None


def _weights(weights: Any, table: SiteTable) -> tuple[tuple[float, ...], str]:
    """Return what each site counts in the mixture, and what that is called."""
    if isinstance(weights, str) and weights in ("sites", "records"):
        sizes = [records.size if weights == "records" else 1 for records in table.records]
        return tuple(size / sum(sizes) for size in sizes), weights
    if not isinstance(weights, Mapping):
        raise BadInput(f"weights must be 'sites', 'records' or a mapping from site to weight, not {weights!r}; choose.")
    given = [number(value, where) for value, where in per_site(weights, table.names, "weights")]
    if any(0 < value < LEAST for value in given) or min(given) < 0 or not math.isfinite(sum(given)):
        worst = table.names[int(np.argmin([value if math.isfinite(value) else -math.inf for value in given]))]
        raise BadInput(f"the weight of site {worst!r} must be 0, or finite and at least {LEAST:g}; correct it.")
    if abs(sum(given) - 1) > 1e-9:
        raise BadInput(f"the weights sum to {sum(given):.12g}, not to 1; divide each by their sum.")
    return tuple(value / sum(given) for value in given), "given"


def _noises(epsilon: Any, names: tuple[str, ...], called: str = "epsilon") -> tuple[NoisyCount, ...]:
    """Return the noise of each site's count."""
    noises = []
    for value, where in per_site(epsilon, names, called):
        try:
            noises.append(noisy_count(number(value, where)))
        except BadInput as error:
            raise BadInput(str(error).replace("epsilon", where, 1) if where != "epsilon" else str(error)) from None
    return tuple(noises)
