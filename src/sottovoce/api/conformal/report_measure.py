"""What the counts of covered scores say: of every site, of the mixture; and what the sites' own laws let expect."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sottovoce.client.conformal.order_values import order_values
from sottovoce.client.conformal.pooled import PooledScores
from sottovoce.client.reading.table import SiteTable
from sottovoce.inference.conformal import counts, mixture_limits
from sottovoce.server.conformal.coverage.heterogeneous import Asked, curve
from sottovoce.server.conformal.report_result import Mixture, Prediction, SiteCoverage, Spread

ROUNDING = 1e-12  # 0.9 * 10 is a little less than 9: what floats cannot tell apart counts as equal


class Said(NamedTuple):
    """A site's count of covered scores, out of how many, and how much less likely each further step of noise is."""

    covered: int
    n: int
    fall: float


def judge(names: Sequence[str], said: Sequence[Said], target: float, level: float) -> tuple[SiteCoverage, ...]:
    """Judge every site, worst first."""
    p_values = [counts.at_most(count, n, target, fall) for count, n, fall in said]
    # half of what the level leaves: a site that is flagged has its whole two-sided interval below the target
    below = counts.rejected(p_values, (1 - level) / 2)
    rows = []
    for name, (count, n, fall), p_value, flag in zip(names, said, p_values, below, strict=True):
        low, high = counts.limits(count, n, level, fall)
        rows.append(SiteCoverage(name, n, count, min(max(count / n, 0.0), 1.0), low, high, p_value, flag))
    return tuple(sorted(rows, key=lambda row: (row.coverage, row.high, row.name)))


def mix(said: Sequence[Said], weights: Sequence[float], weights_name: str, level: float) -> Mixture:
    """Return the coverage over all sites, with its limits."""
    counts, sizes, falls = zip(*said, strict=True)
    mean = sum(weight * count / n for weight, count, n in zip(weights, counts, sizes, strict=True))
    low, high = mixture_limits.limits(counts, sizes, weights, level, falls)
    return Mixture(min(max(mean, 0.0), 1.0), low, high, weights_name)


def predict(made: Any, table: SiteTable, weights: Sequence[float]) -> tuple[Prediction | None, str | None]:
    """Return the coverage to expect from new calibrations under the sites' own laws, or why it is not known."""
    if made is None:
        return None, "of a plain number it is not known how it was made"
    if made.epsilon is not None:
        return None, "the threshold was made with noise, and a site's value is not one of its scores"
    asked_of, sizes, votes = made.orders, made.sizes, made.votes  # made anew at each call
    places = {name: place for place, name in enumerate(table.names)}
    absent = [name for name in asked_of if name not in places]
    if absent:
        return None, f"site {absent[0]!r} took part in the threshold and has no scores here"
    pooled = PooledScores(table.records)
    voters = [places[name] for name in asked_of]
    asked = Asked(
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


def spread(table: SiteTable, target: float) -> Spread:
    """Return the quantile of every site's own scores at the target."""
    tau = target * (1 - ROUNDING)
    own = [float(order_values(records, [max(math.ceil(records.size * tau), 1)])[0]) for records in table.records]
    return Spread(min(own), float(np.median(own)), max(own), dict(zip(table.names, own, strict=True)))
