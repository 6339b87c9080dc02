"""What the counts of covered scores say: of every site, worst first, and of the mixture of all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sottovoce.inference.conformal import counts as inference
from sottovoce.inference.conformal import mixture_limits


class CoverageSaid(NamedTuple):
    """A site's count of covered scores, out of how many, and how much less likely each further step of noise is."""

    covered: int
    n: int
    fall: float


@dataclass(frozen=True)
class SiteCoverage:
    """The coverage at one site with its two-sided interval; ``below`` if it fails the target, judged with all sites.

    ``p_value`` is of "the coverage is at least the target". In a private report ``covered`` has its noise, and may lie
    outside 0 to ``n``; intervals and p-values account for it.
    """

    name: str
    n: int
    covered: int
    coverage: float
    low: float
    high: float
    p_value: float
    below: bool


class Mixture(NamedTuple):
    """The coverage of a score from a site drawn by ``weights`` ("sites", "records" or "given")."""

    estimate: float
    low: float
    high: float
    weights: str


def judge(names: Sequence[str], said: Sequence[CoverageSaid], target: float, level: float) -> tuple[SiteCoverage, ...]:
    """Judge every site, worst first."""
    p_values = [inference.at_most(count, n, target, fall) for count, n, fall in said]
    # half of what the level leaves: a site that is flagged has its whole two-sided interval below the target
    below = inference.rejected(p_values, (1 - level) / 2)
    rows = []
    for name, (count, n, fall), p_value, flag in zip(names, said, p_values, below, strict=True):
        low, high = inference.limits(count, n, level, fall)
        rows.append(SiteCoverage(name, n, count, min(max(count / n, 0.0), 1.0), low, high, p_value, flag))
    return tuple(sorted(rows, key=lambda row: (row.coverage, row.high, row.name)))


def mix(said: Sequence[CoverageSaid], weights: Sequence[float], weights_name: str, level: float) -> Mixture:
    """Return the coverage over all sites, with its limits."""
    counts, sizes, falls = zip(*said, strict=True)
    mean = sum(weight * count / n for weight, count, n in zip(weights, counts, sizes, strict=True))
    low, high = mixture_limits.limits(counts, sizes, weights, level, falls)
    return Mixture(min(max(mean, 0.0), 1.0), low, high, weights_name)
