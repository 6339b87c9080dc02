"""One quantile over many sites, each record answering once through randomised response.

Beside it, what could be said if all records lay in one place: the sample quantile, between the order statistics of
ranks ``n tau -+ z sqrt(n tau (1 - tau))``, whatever the distribution.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sottovoce.api.asking import spend
from sottovoce.api.quantile.planning import (
    PlannedStudy,
    Progress,
    coin_of,
    doors_of,
    plan_study,
    remember,
    run_sites,
)
from sottovoce.client.reading.table import SiteTable
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import check_callers
from sottovoce.core.random_source import RandomSource
from sottovoce.inference.common import normal
from sottovoce.local.quantile.compiled_walk import run_recursion
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.sequence import SequenceQuantile


@public
def federated_quantile(
    sites: Any,
    tau: Any,
    epsilon: Any,
    *,
    level: float = 0.95,
    method: str = "staged",
    shares: Any = "pooled",
    weights: Any = None,
    schedule: str | Sequence[int] = "every:1",
    participation: float = 1.0,
    graph: Any = None,
    norm: str = "l2",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    kind: str | None = None,
    until: Any = None,
    after: QuantileResult | None = None,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
    censored: Any = None,
    progress: Progress | None = None,
) -> QuantileResult:
    """Estimate one quantile over many sites under local differential privacy, with a confidence interval.

    Parameters
    ----------
    sites
        A mapping from site to a one-dimensional column (numpy, Arrow, pandas, polars, a list), a sequence of columns,
        or what `read_frame` or `read_files` returned.
    tau
        The level, or a mapping from site to level (the estimand is then at the weighted sum of the levels).
    epsilon
        The budget of a record's one report, or a mapping from site to budget; ``math.inf`` for no privacy.
    level
        The confidence level.
    method
        "staged" (default); "certified", whose interval holds for every distribution; "sequence", whose interval does so
        at every time, so that one may look after each round, stop early and go on later; or the paper's recursion with
        the "regression" or the "self-normalised" interval.
    shares
        "pooled" (proportional to size), "equal", or a mapping from site to share: they define the estimand.
    weights
        Public weights of a survey, how much each record counts: a mapping from site to a column with a weight beside
        every record, or to one weight for the whole site. A weight must not depend on the record but through what is
        public. Up to 12 different weights are taken as they are, more are rounded, right on average.
    schedule
        For the paper's recursion: "every:E", "log", or the rounds' lengths.
    participation
        For the paper's recursion: the part of the sites that answers in each round.
    graph
        For the paper's recursion without a server: "ring", or a symmetric matrix that says which sites talk.
    norm
        The norm of the self-normalised interval: "l2" (constant memory), "sup" or "l1".
    bounds
        A public pair that contains the quantile; shortens the search.
    scale
        A rough public spread of the records; shortens the search.
    resolution
        The public step to whose multiples the records are rounded; they are dithered by it and the interval covers
        the atom. Without it that of the type: 1 for whole numbers, truth values (0 and 1) and ordered categories (their
        codes), a day for dates, none for other numbers; 0 to take the records as continuous.
    kind
        What the records are declared to be, where their type does not say: "counts" (whole numbers from 0), "scores"
        (whole numbers), "amounts" (continuous, but heaped at round values, like money).
    until
        For a sequence: the public length of the interval, in the unit of the records (a duration as text for times), at
        which it stops; the other records stay unasked.
    after
        For a sequence: an earlier result of one, which goes on with new records. They must be of the same population,
        that is have the same quantile, and must not have answered before; sites and budgets may be others.
    randomness
        None for the operating system's entropy; `sim.dice` for simulation, which makes the result not private.
    missing
        "refuse" missing values, or "drop" and count them.
    censored
        The public limits beyond which records are known as symbols only, such as "<5", ">200" or "<5,>200": text like
        ``<5`` among the records, and numbers beyond. The interval is then certified, and a quantile beyond a limit is
        reported as the symbol; its number is infinite.
    progress
        Called with the number of records that have just answered.

    Returns
    -------
    The estimate with its interval, tests, budgets, trajectory and summary. Where records are few, a warning says before
    any of them answers how far the interval is expected to reach.

    Examples
    --------
    >>> import sottovoce as sv
    >>> waits = sv.sim.dice(1).generator().gamma(2.0, 10.0, size=(2, 60_000))
    >>> r = sv.federated_quantile({"north": waits[0], "south": waits[1]}, 0.5, {"north": 1.0, "south": 2.0},
    ...                           randomness=sv.sim.dice(2))
    >>> bool(r.interval.low < 16.78 < r.interval.high), r.private, round(r.epsilon["south"], 6)
    (True, False, 2.0)
    """
    study = plan_study(
        sites,
        tau,
        epsilon,
        level=level,
        method=method,
        shares=shares,
        weights=weights,
        schedule=schedule,
        participation=participation,
        graph=graph,
        norm=norm,
        bounds=bounds,
        scale=scale,
        resolution=resolution,
        kind=kind,
        until=until,
        after=after,
        missing=missing,
        censored=censored,
    )
    say_before(*study.warnings)
    return run_study(study, randomness, progress)


def run_study(
    study: PlannedStudy, randomness: RandomSource | None = None, progress: Progress | None = None
) -> QuantileResult:
    """Run a planned study: from here on records answer."""
    plan = study.plan
    check_callers(randomness, progress)
    in_all = spend(study.prepared.table, plan.budgets, randomness)
    if study.recursion is not None:
        sites = study.prepared.open(randomness)
        doors = doors_of(plan, sites, study.method)
        result = run_recursion(plan, study.recursion, study.method, study.level, sites, doors, randomness, progress)
        private = all(site.private for site in sites) and not plan.roster.seeded
    elif study.method == "sequence":
        talk = SequenceQuantile(plan, study.level, coin_of(plan, randomness), study.until, study.after)
        result, private = run_sites(study.prepared, talk, study.method, randomness, progress)
    else:
        certified = study.method == "certified" or plan.atoms
        method = StagedQuantile(plan, study.level, coin_of(plan, randomness), certified)
        result, private = run_sites(study.prepared, method, study.method, randomness, progress)
    return remember(replace(result, private=private, in_all=in_all), study.prepared.table)


class OpenAnswer(NamedTuple):
    """A quantile for which every record was seen."""

    estimate: float
    low: float
    high: float


def pooled_quantile(table: SiteTable, tau: float, level: float = 0.95) -> OpenAnswer:
    """Return the quantile of all records together; it protects nobody.

    >>> from sottovoce.client.reading.table import read_sites
    >>> pooled_quantile(read_sites([range(60), range(60, 101)]), 0.5)
    OpenAnswer(estimate=50.0, low=40.0, high=60.0)
    """
    values = np.sort(np.concatenate([records.values() for records in table.records]))
    n = len(values)
    reach = normal.two_sided(level) * math.sqrt(n * tau * (1 - tau))
    ranks = (n * tau, n * tau - reach, n * tau + reach)
    return OpenAnswer(*(float(values[min(max(math.ceil(rank) - 1, 0), n - 1)]) for rank in ranks))
