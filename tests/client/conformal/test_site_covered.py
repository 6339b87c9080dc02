"""A site counts what a threshold covers, and the noise that it adds has the law it should."""

import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.client.conformal.site import CoverageSite, count_covered, noisy_covered
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import CoverageCount, CoverageQuery, OrderQuery
from sottovoce.protocol.selection.geometric import WORD, noisy_count

SCORES = Records(np.array([0.5, 2.0, 2.0, 7.0]))


@pytest.mark.parametrize(("threshold", "count"), [(-1.0, 0), (0.5, 1), (2.0, 3), (6.9, 3), (math.inf, 4)])
def test_scores_at_the_threshold_are_covered(threshold: float, count: int) -> None:
    assert count_covered(SCORES, threshold) == count


def test_the_noise_is_two_sided_geometric() -> None:
    noise, n = noisy_count(0.8), 4000
    dice = sv.sim.dice(3)
    steps = np.array([noisy_covered(SCORES, 2.0, noise, dice) - 3 for _ in range(n)])
    edges = range(-6, 7)
    distribution = [noise.fall ** abs(k) * (1 - noise.fall) / (1 + noise.fall) for k in edges]
    expected = np.array([*distribution, 1 - sum(distribution)]) * n
    seen = np.array([*(np.sum(steps == k) for k in edges), np.sum(np.abs(steps) > 6)])
    # chi-square with 13 degrees of freedom exceeds 54 with probability 6e-7
    assert float(np.sum((seen - expected) ** 2 / expected)) < 54


NOISE = noisy_count(1.0).numerator


def test_a_site_counts_once_and_repeats_itself() -> None:
    site = CoverageSite(SCORES, 1.0)  # the system's dice: a second draw would differ
    query = CoverageQuery(2.0, NOISE)
    assert len({site.answer(query) for _ in range(20)}) == 1
    assert site.spent == 4
    for other in (CoverageQuery(2.5, NOISE), CoverageQuery(2.0, NOISE + 1)):
        with pytest.raises(BadInput, match="has sent its one message"):
            site.answer(other)


def test_an_open_site_tells_its_own_quantile_too() -> None:
    assert CoverageSite(SCORES, math.inf).reply(1, CoverageQuery(2.0, 0, (4, 5))) == CoverageCount(3, (7.0, math.inf))
    assert CoverageSite(SCORES, math.inf).reply(1, CoverageQuery(math.inf, 0)) == CoverageCount(4)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (CoverageQuery(2.0, 0), "more than this site's budget of 1"),
        (CoverageQuery(2.0, NOISE - 1), "more than this site's budget of 1"),
        (CoverageQuery(2.0, NOISE, (3,)), "ask it for a count, not for scores"),
        (CoverageQuery(math.nan, NOISE), "not a number"),
        (CoverageQuery(2.0, -1), "out of range"),
        (CoverageQuery(2.0, WORD - 1), "out of range"),
        (OrderQuery((3,)), "asked how many scores are covered"),
    ],
)
def test_a_query_beyond_the_budget_or_out_of_range_spends_nothing(query: CoverageQuery, said: str) -> None:
    site = CoverageSite(SCORES, 1.0)
    with pytest.raises(BadInput, match=said):
        site.reply(1, query)
    assert site.spent == 0
    with pytest.raises(BadInput, match="ranks of scores begin at 1"):
        CoverageSite(SCORES, math.inf).answer(CoverageQuery(2.0, 0, (0,)))
