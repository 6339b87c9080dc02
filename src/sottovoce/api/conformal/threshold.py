"""A conformal threshold from the scores of many sites, in one round, private or not."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sottovoce.client.conformal.covered import count_covered
from sottovoce.client.conformal.site import CalibrationSite
from sottovoce.client.reading.table import SCORES, SiteTable, read_sites
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import check_callers, number, per_site
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.local.conformal.one_round import ask
from sottovoce.protocol.calibration import CellQuery, OrderQuery
from sottovoce.protocol.selection import selection
from sottovoce.server.conformal.base import SiteFacts, Threshold
from sottovoce.server.conformal.coverage.choose import lower_neighbour
from sottovoce.server.conformal.plan import Plan, plan
from sottovoce.server.conformal.result import ConformalThreshold
from sottovoce.server.conformal.settings import Settings, check_edges, check_settings
from sottovoce.server.conformal.weighted_rank import weighted_rank

LARGEST = 100.0  # a budget beyond it protects nobody

LARGEST = 1000.0  # epsilon; no mechanism could spend a tenth of it


def conformal_threshold(
    scores: Any,
    alpha: float = 0.1,
    *,
    epsilon: Any = None,
    maximum: float | None = None,
    minimum: float | None = None,
    bins: int | None = None,
    grid: Any = None,
    mechanism: str = "sparse-vector",
    guarantee: str = "marginal",
    delta: float = 0.1,
    rule: str = "closest",
    statistics: int = 1,
    exact: bool = False,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
) -> Threshold:
    """Find the threshold below which a new score falls with probability 1 - alpha, each site sending one message.

    Parameters
    ----------
    scores
        A mapping from site to its calibration scores (numpy, Arrow, pandas, polars, a list), a sequence of columns, or
        what `read_frame` or `read_files` returned. The larger a score, the worse the model's prediction was.
    alpha
        The part of new scores that may lie above the threshold.
    epsilon
        None: each site sends order statistics of its scores. Else the budget of a score for its site's one message, or
        a mapping from site to budget (``math.inf`` for a site that is not private).
    maximum, minimum
        With epsilon: the public range of the scores, chosen without a look at them; minimum is 0 unless given. Scores
        outside are counted where they are, so the promise holds anyway.
    bins
        With epsilon: the number of steps between minimum and maximum; 100 by default, 16 for "local", 32 for
        "aggregate".
    grid
        With epsilon: the edges themselves, instead of maximum and bins.
    mechanism
        With epsilon: "sparse-vector" (default), "exponential", or the "paper"'s; "local": every score answers one
        question through randomised response; "aggregate": sites send noisy counts to a secure sum.
    guarantee
        "marginal": on average over calibrations. "training-conditional": for one calibration, but for a part ``delta``
        of them.
    delta
        The part of calibrations that may fall short of 1 - alpha (training-conditional).
    rule
        "closest" (default): the coverage that strays least from 1 - alpha. "paper": the smallest mean; with
        "training-conditional" the paper's theorem 3.3.
    statistics
        How many order statistics a site sends, 1 to 5; three come within a few percent of all scores in one place.
    exact
        Take one of two neighbouring ranks at random, so that the mean coverage is 1 - alpha exactly (scores without
        ties).
    randomness
        None for the operating system's entropy; `sim.dice` for simulation, which makes the result not private.
    missing
        "refuse" missing values, or "drop" and count them.

    Returns
    -------
    The threshold, its exact coverage and what it was made from.

    Examples
    --------
    >>> import sottovoce as sv
    >>> source = sv.sim.dice(1).generator()
    >>> scores = {f"hospital {i}": abs(source.normal(size=100)) for i in range(1, 11)}
    >>> t = sv.conformal_threshold(scores, alpha=0.1)
    >>> t.orders["hospital 1"], t.rank, round(t.coverage, 4), round(t.spread, 4)
    ((92,), 4, 0.9023, 0.012)
    >>> private = sv.conformal_threshold(scores, 0.1, epsilon=1.0, maximum=5.0, randomness=sv.sim.dice(2))
    >>> private.coverage >= 0.9, private.epsilon["hospital 1"] <= 1.0
    (True, True)
    """
    private = epsilon is not None
    settings = check_settings(alpha, guarantee, delta, rule, statistics, exact, mechanism, private)
    check_callers(randomness, None)
    edges = check_edges(minimum, maximum, bins, grid, mechanism, private)
    table = scores if isinstance(scores, SiteTable) else read_sites(scores, missing=missing, needs=SCORES)
    if table.unit.kind != "number":
        raise BadInput(f"scores must be numbers, not {table.unit.plural}; give the scores of the model.")
    budgets = _budgets(epsilon, table.names)
    dice = SystemEntropy() if randomness is None else randomness
    facts = [SiteFacts(records.size, budget) for records, budget in zip(table.records, budgets, strict=True)]
    if settings.pooled and edges is not None:
        from sottovoce.api.conformal.pooled import pooled_threshold

        return pooled_threshold(table, settings, facts, edges, dice, _hints(table, edges))
    made = plan(facts, settings, 0 if edges is None else len(edges) + 1)
    return _run(table, settings, facts, made, edges, dice)


def _run(
    table: SiteTable,
    settings: Settings,
    facts: Sequence[SiteFacts],
    made: Plan,
    edges: Floats | None,
    dice: RandomSource,
) -> ConformalThreshold:
    """Ask every site once, and take the rank of their answers."""
    line = () if edges is None else tuple(edges.tolist())
    queries: list[OrderQuery | CellQuery] = []
    spent: list[float] = []
    for fact, orders in zip(facts, made.orders, strict=True):
        if math.isinf(fact.epsilon) or settings.mechanism is None:
            queries.append(OrderQuery(orders))
            spent.append(math.inf)
        else:
            queries.append(CellQuery(settings.mechanism, orders[0], fact.epsilon, line))
            spent.append(selection(settings.mechanism, fact.size, orders[0], len(line) + 1, fact.epsilon).epsilon)
    rank, choice, chance = made.choice.rank, made.choice, 1.0
    if settings.exact:
        lower = lower_neighbour(made.kinds, made.number, choice)
        chance = min((1 - settings.alpha - lower.mean) / (choice.mean - lower.mean), 1.0)
        if int(dice.words(1)[0]) >= int(chance * 2.0**64):
            rank = lower.rank
    sites = [
        CalibrationSite(records, fact.epsilon, own)
        for records, fact, own in zip(table.records, facts, dice.split(len(facts)), strict=True)
    ]
    heard = ask(sites, queries)
    values = np.concatenate([np.array(said) for said in heard])
    votes = np.repeat(made.votes, [len(said) for said in heard])
    return ConformalThreshold(
        value=weighted_rank(values, votes, rank),
        settings=settings,
        names=table.names,
        facts=tuple(facts),
        plan=made,
        taken=rank,
        chance=chance,
        spent=tuple(spent) if settings.mechanism is not None else None,
        edges=line,
        unbounded=tuple(
            name for name, said in zip(table.names, heard, strict=True) if any(math.isinf(value) for value in said)
        ),
        seeded=not dice.private or table.seeded,
        per_person=table.per_person,
        dropped=sum(table.dropped.values()),
        hints=() if edges is None else _hints(table, edges),
    )


def _budgets(epsilon: Any, names: tuple[str, ...]) -> list[float]:
    """Return the budget of every site, infinite where there is none."""
    if epsilon is None:
        return [math.inf] * len(names)
    budgets = [number(value, where) for value, where in per_site(epsilon, names, "epsilon")]
    for budget, (value, where) in zip(budgets, per_site(epsilon, names, "epsilon"), strict=True):
        if not budget > 0 or LARGEST < budget < math.inf:
            raise BadInput(f"{where} must be positive and at most {LARGEST:g}, not {value!r}; leave it out for none.")
        if LARGEST < budget < math.inf:
            raise BadInput(f"{where} {value!r} protects nobody; give at most {LARGEST:g}, or math.inf for no privacy.")
    if all(map(math.isinf, budgets)):
        raise BadInput("epsilon is infinite everywhere, which is no privacy; leave it out for order statistics.")
    return budgets


def _hints(table: SiteTable, edges: Floats) -> tuple[str, ...]:
    """Tell whoever holds the scores, and nobody else, where the public grid does not cover them."""
    top = float(edges[-1])
    above = [records.size - count_covered(records, top) for records in table.records]
    if not any(above):
        return ()
    where = sum(count > 0 for count in above)
    return (
        f"not to be passed on: {sum(above):,} of {sum(records.size for records in table.records):,} scores at "
        f"{where:,} site{'' if where == 1 else 's'} lie above the grid, which ends at {top:g}: the promise holds, "
        "but the set grows, to infinity if they are many; next time choose a larger maximum",
    )
