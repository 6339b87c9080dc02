"""Public mixtures: the best two kinds, optimal gains, and subsets with chosen inclusion probabilities."""

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.box_channel import box_channel
from sottovoce.server.regression.families import (
    Setting,
    best_cq,
    box_mixture,
    box_parts,
    inclusions,
    shared_box,
    systematic,
)
from sottovoce.server.regression.mixing import MixedPart, best_pair, boxes, mixture
from sottovoce.server.regression.omega import block_moments, covariance, covariates, omega


def test_two_kinds_against_a_fine_search() -> None:
    side, slope = np.array([2.0, 0.7, 0.1, 0.5]), np.array([0.01, 0.3, 0.9, 0.5])
    pair = best_pair(side, slope, 1.0, 9.0)
    grid = np.linspace(0, 1, 2001)
    traces = [
        (1 / (side[i] * t + side[j] * (1 - t)) + 9 / (slope[i] * t + slope[j] * (1 - t)))
        for i in range(4)
        for j in range(4)
        for t in grid[1:-1]
    ]
    assert pair.trace == pytest.approx(min(traces), rel=1e-5)


def test_information_adds() -> None:
    known, tau = covariates(3), 0.75
    parts = [MixedPart(box_channel("side", 1.0, 2), ()), MixedPart(box_channel("slopes", 1.0, 1, 1, 3), None)]
    parts.append(MixedPart(box_channel("box", 1.0, 2, 2, 3), None))
    channel = mixture("all", (tau,), 1.0, known, parts)
    told = np.zeros(4)
    for block in channel.blocks:
        seconds = np.diagonal(block_moments(block.channel, block.slopes, (tau,), 0, known))
        spoken = block.inclusion(3) > 0
        told[spoken] += block.probability * block.inclusion(3)[spoken] / seconds[spoken]
    assert np.diagonal(omega(channel)) == pytest.approx(1 / told, rel=1e-12)


def test_every_shape_of_the_table_is_what_its_channel_tells() -> None:
    known = covariates(3, 0.2)
    for taus in ((0.8,), (0.2, 0.5, 0.9)):
        table = boxes(taus, 3.0, known)
        for index in range(0, len(table.kinds), 97):
            channel = table.channel(index, 3.0)
            for level in range(len(taus)):
                seconds = np.diagonal(block_moments(channel, None, taus, level, known))
                if channel.kinds > 1:
                    assert table.side[level, index] == pytest.approx(1 / seconds[0], rel=1e-6)
                if channel.slopes:
                    assert table.slope[level, index] == pytest.approx(channel.slopes / 3 / seconds[1], rel=1e-6)


@pytest.mark.parametrize(("tau", "p", "epsilon"), [(0.5, 2, 2.0), (0.75, 5, 4.0), (0.9, 1, 1.0)])
def test_the_best_cq_is_the_best(tau: float, p: int, epsilon: float) -> None:
    known = covariates(p)
    found = best_cq(Setting(tau, epsilon, known), boxes((tau,), epsilon, known))
    trace = np.trace(covariance(found, known))
    for q in (2, 3, 4, 5, 8):
        for s in range(1, p + 2):
            assert trace <= np.trace(covariance(cq(tau, p, epsilon, q, s), known)) * (1 + 1e-7)


def test_a_free_law_over_blocks_gains_and_boxes_gain_more() -> None:
    known = covariates(5)
    wanted = Setting(0.75, 4.0, known)
    table = boxes((0.75,), 4.0, known)
    plain = np.trace(covariance(cq(0.75, 5, 4.0, 3, 2), known))
    shapes = ((2, 0, 1), (2, 1, 3), (1, 2, 3))  # of CQ(3, 2): the side alone, with a slope, and slopes
    parts = [part for shape in shapes for part in box_parts(wanted, box_channel("cq", 4.0, *shape))]
    distribution = np.trace(covariance(mixture("cq:3,2 optimised", (0.75,), 4.0, known, parts), known))
    best = np.trace(covariance(box_mixture(wanted, table.take(table.width == 1)), known))
    wide = np.trace(covariance(box_mixture(wanted, table), known))
    assert wide < 0.95 * best <= 0.95 * distribution * (1 + 1e-6) < 0.95 * plain


def test_sharing_costs_what_the_notes_found() -> None:
    known, taus = covariates(2), (0.25, 0.75)
    table = boxes((0.25,), 4.0, known)
    alone = np.trace(covariance(box_mixture(Setting(0.25, 4.0, known), table), known))
    shared = shared_box(taus, 4.0, known)
    factors = [np.trace(covariance(shared, known, level)) / alone for level in range(2)]
    assert factors == pytest.approx([1.13, 1.13], abs=0.01)


def test_a_rare_block_stays_only_where_it_is_needed() -> None:
    known = covariates(1, 1e-6)
    side, slope = MixedPart(box_channel("side", 0.5, 2), ()), MixedPart(box_channel("slopes", 0.5, 1, 1, 2), (1,))
    needed = mixture("both", (0.5,), 0.5, known, [side, slope])
    assert 0 < min(block.probability for block in needed.blocks) < 1e-4
    both = MixedPart(box_channel("box", 0.5, 2, 1, 2), (1,))
    assert mixture("enough", (0.5,), 0.5, known, [side, both]).blocks[0].channel is both.channel


def test_a_budget_that_no_box_can_express_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadInput, match=r"epsilon 1e-12 is too small .*; give a larger budget"):
        boxes((0.5,), 1e-12, covariates(2))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_subsets_have_the_inclusion_probabilities(size: int) -> None:
    importance = np.array([8.0, 1.0, 3.0, 0.5, 2.0, 1.0])
    wanted = inclusions(importance, size)
    assert wanted.sum() == pytest.approx(size, abs=1e-12)
    assert wanted.max() <= 1.0
    seen = np.zeros(6)
    for subset, share in systematic(wanted):
        assert len(subset) == size
        seen[[j - 1 for j in subset]] += share
    assert seen == pytest.approx(wanted, abs=1e-9)
