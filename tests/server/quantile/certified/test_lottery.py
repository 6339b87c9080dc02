"""The lottery between sites: its law, its replay, every record once, and lots that find nobody."""

import numpy as np
import pytest
from scipy.special import chdtrc

from sottovoce.core.arrays import Ints
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.certified import lottery as module
from sottovoce.server.quantile.certified.lottery import Lottery, lasting, planned, unanswered
from sottovoce.server.quantile.certified.lottery import drawn as of_all

CROWD = SiteProfile(np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.5, 0.9, 0.3, 0.8]), np.full(4, 10_000_000))
LOTS = CROWD.shares / CROWD.rates
LAW = LOTS / LOTS.sum()  # the probability of a site is its share over its rate


def drawn(lottery: Lottery, counts: list[int]) -> Ints:
    return np.array([lottery.draw(count)[0] for count in counts])


def ways(monkeypatch: pytest.MonkeyPatch, single: bool) -> None:
    """Draw lots one by one, or as binomial counts, whatever their number."""
    monkeypatch.setattr(module, "SINGLE", 1 << 30 if single else -1)


@pytest.mark.parametrize("single", [True, False], ids=["one by one", "as counts"])
def test_sites_are_drawn_by_share_over_rate(monkeypatch: pytest.MonkeyPatch, single: bool) -> None:
    # chi-square of 200,000 lots over four sites: false alarm 1e-6 for the fixed coin, once
    ways(monkeypatch, single)
    lots = drawn(Lottery(CROWD, b"law"), [50_000] * 4).sum(axis=0)
    expected = 200_000 * LAW
    assert float(chdtrc(3, np.sum((lots - expected) ** 2 / expected))) > 1e-6


@pytest.mark.parametrize("single", [True, False], ids=["one by one", "as counts"])
@pytest.mark.parametrize("site", range(4))
def test_the_lots_of_a_query_are_binomial(monkeypatch: pytest.MonkeyPatch, single: bool, site: int) -> None:
    # 1,500 queries of 60 lots in bins of at least twenty expected: false alarm 1e-6 each for the fixed coin, once
    from scipy.stats import binom

    ways(monkeypatch, single)
    lots = drawn(Lottery(CROWD, b"binomial"), [60] * 1_500)[:, site]
    assert np.all(drawn(Lottery(CROWD, b"binomial"), [60] * 3).sum(axis=1) == 60)
    chances = binom.pmf(np.arange(61), 60, LAW[site]) * 1_500
    edges = [0]
    while chances[edges[-1] :].sum() >= 40:
        edges.append(edges[-1] + 1 + int(np.flatnonzero(np.cumsum(chances[edges[-1] :]) >= 20)[0]))
    expected = np.add.reduceat(chances, edges)
    seen = np.add.reduceat(np.bincount(lots, minlength=61), edges)
    assert float(chdtrc(len(edges) - 1, np.sum((seen - expected) ** 2 / expected))) > 1e-6


def test_draws_do_not_depend_on_one_another() -> None:
    # correlation of 3,000 neighbouring draws: within five standard errors, false alarm 6e-7 for the fixed coin, once
    lots = drawn(Lottery(CROWD, b"apart"), [40] * 3_000)[:, 0]
    assert abs(float(np.corrcoef(lots[:-1], lots[1:])[0, 1])) < 5 / np.sqrt(2_999)


@pytest.mark.parametrize("single", [True, False], ids=["one by one", "as counts"])
def test_the_same_coin_draws_the_same_and_another_does_not(monkeypatch: pytest.MonkeyPatch, single: bool) -> None:
    ways(monkeypatch, single)
    counts = [100, 2_000, 1, 0, 30_000]
    first, again, other = (drawn(Lottery(CROWD, coin), counts).tolist() for coin in (b"a", b"a", b"b"))
    assert first == again != other


def test_no_record_answers_twice_and_lots_that_find_nobody_are_counted() -> None:
    crowd = SiteProfile(np.array([0.5, 0.5]), np.array([0.8, 0.8]), np.array([40, 400]))
    lottery = Lottery(crowd, b"dry")
    used, missed = np.zeros(2, dtype=np.int64), 0
    for count in (30, 70, 50, 200):
        taken, missing = lottery.draw(count)
        assert taken.sum() + missing == count
        used, missed = used + taken, missed + missing
    assert used[0] == 40
    assert missed > 0
    assert np.all(used <= crowd.sizes)


def test_one_site_answers_all_and_needs_no_reserve() -> None:
    alone = Lottery(SiteProfile(np.ones(1), np.array([0.7]), np.array([123])), b"")
    assert alone.planned == 123
    assert alone.rate == pytest.approx(0.7)
    taken, missing = alone.draw(100)
    assert (taken.tolist(), missing) == ([100], 0)
    taken, missing = alone.draw(100)
    assert (taken.tolist(), missing) == ([23], 77)


@pytest.mark.parametrize("sizes", [(500, 500, 500, 500), (9_000, 300, 8_000, 50), (10**6, 10**6, 10**6, 10**6)])
def test_planned_reports_seldom_find_a_site_used_up(sizes: tuple[int, ...]) -> None:
    crowd = SiteProfile(CROWD.shares, CROWD.rates, np.array(sizes))
    number = planned(LAW, crowd.sizes)
    assert number <= np.min(crowd.sizes / LAW)
    assert number > np.min((crowd.sizes - 3 * np.sqrt(crowd.sizes)) / LAW)
    missing = [Lottery(crowd, bytes([seed])).draw(number)[1] for seed in range(100)]
    # one site decides: beyond two standard deviations with probability .023; ten of a hundred, false alarm 1e-4
    assert sum(count > 0 for count in missing) <= 10
    assert max(missing) < 5 * np.sqrt(number)


# strata of a survey: most records count little, a few count for many
UNEVEN = SiteProfile(np.array([0.6, 0.38, 0.02]), np.full(3, 0.7), np.array([40_000, 12_000, 30]))


def test_a_few_heavy_records_do_not_end_a_study_early() -> None:
    lots = UNEVEN.shares / UNEVEN.rates
    law = lots / lots.sum()
    assert lasting(law, UNEVEN.sizes) < 2_000
    number = planned(law, UNEVEN.sizes)
    assert number > 10_000
    assert unanswered(law, UNEVEN.sizes, number) < 0.02
    for other in (number // 2, 2 * number):  # neither fewer lots nor more reach less
        reach = [1.7 / np.sqrt(n) + unanswered(law, UNEVEN.sizes, n) for n in (number, other)]
        assert reach[0] <= reach[1] * 1.001


def test_heavy_records_are_asked_evenly_and_their_other_lots_find_nobody() -> None:
    lottery = Lottery(UNEVEN, b"even")
    taken, missing = zip(*(lottery.draw(lottery.planned // 40) for _ in range(40)), strict=True)
    heavy = np.array(taken)[:, 2]
    assert heavy.sum() <= 30
    assert heavy[:20].sum() == pytest.approx(heavy[20:].sum(), abs=4)
    assert sum(missing) / lottery.planned == pytest.approx(
        unanswered(np.array([0.6, 0.38, 0.02]), UNEVEN.sizes, lottery.planned), rel=0.3
    )
    assert all(np.all(each >= 0) for each in taken)


def test_sites_in_proportion_lose_no_lot() -> None:
    sizes = np.array([50_000, 30_000, 20_000])
    law = sizes / sizes.sum()
    assert planned(law, sizes) == lasting(law, sizes) > 98_000
    rate, number, missing = of_all(SiteProfile(law, np.full(3, 0.5), sizes))
    assert rate == pytest.approx(0.5)
    assert (number, missing) == (lasting(law, sizes), 0.0)
