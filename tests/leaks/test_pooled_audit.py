"""Pooled thresholds spend what they say, exactly: one record's answer, and the sum of all sites' noisy histograms."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.exact import logarithm, within
from sottovoce.protocol.messages import Query, Study, SumQuery, Tally
from sottovoce.protocol.selection.geometric import Polya, polya
from sottovoce.server.conformal.coverage.pooled_modes import choose_local
from sottovoce.sim.randomness import dice


def questioned_site(scores: Records, epsilon: float, dice: RandomSource | None = None) -> Site:
    return Site(scores, Study(0.5, epsilon), dice)


def answer_above(site: Site, edges: Sequence[float]) -> Tally:
    """Ask as the server does: every edge at equally many records."""
    return site.tally(Query(1, tuple(edges), (site.size // len(edges),) * len(edges)))


def tally_law(scores: Sequence[float], edges: Sequence[float], channel: Channel) -> Counter[tuple[int, ...]]:
    """The exact law of a site's tally, over all orders and all throws."""
    each = len(scores) // len(edges)
    distribution: Counter[tuple[int, ...]] = Counter()
    for order in itertools.permutations(scores):
        chances = []
        for b, edge in enumerate(edges):
            sums = {0: Fraction(1)}
            for score in order[b * each : (b + 1) * each]:
                yes = Fraction(channel.weights[int(score > edge)][1], channel.total)
                grown: Counter[int] = Counter()
                for ones, chance in sums.items():
                    grown[ones] += chance * (1 - yes)  # type: ignore[assignment]
                    grown[ones + 1] += chance * yes  # type: ignore[assignment]
                sums = dict(grown)  # type: ignore[arg-type]
            chances.append(sums)
        for outcome in itertools.product(*(range(each + 1) for _ in edges)):
            distribution[outcome] += math.prod(chances[b][ones] for b, ones in enumerate(outcome))  # type: ignore[assignment]
    return distribution


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_one_record_moves_a_tally_by_its_budget_at_most(epsilon: float) -> None:
    channel = questioned_site(Records(np.zeros(4)), epsilon).channel
    edges, worst = (1.0, 2.0), Fraction(0)
    for before, after in ((0.0, 5.0), (1.5, 5.0), (0.0, 1.5)):
        for rest in itertools.combinations_with_replacement((0.0, 1.5, 5.0), 3):
            one, other = (tally_law((moved, *rest), edges, channel) for moved in (before, after))
            worst = max(worst, *(Fraction(one[o]) / Fraction(other[o]) for o in one))
            worst = max(worst, *(Fraction(other[o]) / Fraction(one[o]) for o in one))
    assert worst > 1
    assert within(worst, epsilon)


def test_the_stated_epsilon_is_the_channels() -> None:
    choice = choose_local([3_000, 3_000], [1.0, 2.5], bins=4)
    for epsilon, stated in zip((1.0, 2.5), choice.epsilons, strict=True):
        channel = questioned_site(Records(np.zeros(4)), epsilon).channel
        assert stated == channel.epsilon == logarithm(Fraction(channel.weights[0][0], channel.weights[0][1]))
        assert within(channel.ratio, epsilon)


def test_answers_without_a_budget_are_the_same_for_any_scores() -> None:
    # at the smallest budgets a throw decides alone: the same dice give any two populations equal tallies
    tallies = {
        answer_above(questioned_site(Records(np.full(300, score)), 1e-15, dice(4)), [1.0, 2.0, 3.0]).ones
        for score in (0.0, 9.0)
    }
    assert len(tallies) == 1
    frank = {
        answer_above(questioned_site(Records(np.full(300, score)), 1.0, dice(4)), [1.0, 2.0, 3.0]).ones
        for score in (0.0, 9.0)
    }
    assert len(frank) == 2


def sum_law(noise: Polya, most: int) -> list[Fraction]:
    """What the law of one summed difference is proportional to at 0, ..., most: the shares of all sites convolved."""
    long = most + 60
    share = [noise.weight(count) for count in range(long + 1)]
    one_side = [Fraction(1)] + [Fraction(0)] * long
    for _ in range(noise.sites):
        one_side = [sum((one_side[i] * share[k - i] for i in range(k + 1)), Fraction(0)) for k in range(long + 1)]
    return [sum((one_side[i] * one_side[i + d] for i in range(long + 1 - d)), Fraction(0)) for d in range(most + 1)]


@pytest.mark.parametrize("sites", [1, 2, 3])
def test_shares_add_to_two_sided_geometric_noise(sites: int) -> None:
    noise = Polya(1 << 62, sites)  # ratio 1/4: what the sums leave off is below 4^-60
    found = sum_law(noise, 6)
    for distance, mass in enumerate(found):
        assert abs(mass / found[0] - noise.ratio**distance) < Fraction(1, 10**15)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_a_replaced_record_moves_the_sum_by_its_budget_at_most(epsilon: float) -> None:
    noise, cells = polya(epsilon, 5), 6
    generator = dice(9).generator()
    worst = Fraction(1)
    for _ in range(300):
        before = generator.integers(0, 5, cells + 1)
        taken = generator.choice(np.flatnonzero(before))
        after = before.copy()
        after[taken] -= 1
        after[generator.integers(0, cells + 1)] += 1
        seen = before[1:] + generator.integers(-3, 4, cells)
        # the lowest cell is not sent; the normalising constants are the same
        exponent = int(np.abs(seen - after[1:]).sum() - np.abs(seen - before[1:]).sum())
        ratio = noise.ratio**-exponent
        assert within(ratio, epsilon)
        worst = max(worst, ratio)
    assert worst == 1 / noise.ratio**2  # reached, so the stated epsilon is not too large either
    assert noise.epsilon == logarithm(worst)


def test_the_sum_of_messages_has_the_audited_law() -> None:
    # the frequency of a zero and of +-1 among 9,000 summed cells, five standard deviations each
    noise, sites, cells = polya(2.0, 3), 3, 9_000
    edges = np.arange(cells) + 1.0
    query = SumQuery(tuple(edges.tolist()), noise.numerator, sites)
    messages = [SharingSite(Records(np.zeros(4)), sites, 99.0, dice(seed)).answer(query) for seed in range(sites)]
    total = np.sum([np.array(message.counts, dtype=np.uint32) for message in messages], axis=0, dtype=np.uint32)
    signed = total.view(np.int32)
    p = float(noise.ratio)
    for distance, chance in ((0, (1 - p) / (1 + p)), (1, 2 * p * (1 - p) / (1 + p))):
        found = int(np.count_nonzero(np.abs(signed) == distance))
        assert abs(found - cells * chance) < 5 * math.sqrt(cells * chance * (1 - chance))
