"""The gate: the closed form on both sides, the sentence that says what is missing, and what may be expected."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.feasibility import PAIRS, SCARCE, STAGES, Limits, check, expected, reach, support

PAGE = Path(__file__).parents[3] / "docs" / "choose.md"


def pooled(sizes: list[int], rate: float) -> SiteProfile:
    counts = np.array(sizes, dtype=np.int64)
    return SiteProfile(counts / counts.sum(), np.full(len(sizes), rate), counts)


def most(limits: Limits, tau: float) -> float:
    """Return the largest ratio: that of the design, or the one at which the search costs too much."""
    return min(limits.refuse, 0.02 / min(tau, 1 - tau))


@pytest.mark.parametrize("limits", [STAGES, PAIRS], ids=["stages", "pairs"])
@pytest.mark.parametrize("rate", [0.25, 0.462, 0.9])
@pytest.mark.parametrize("tau", [0.02, 0.1, 0.25, 0.5, 0.8])
def test_the_closed_form_divides_refused_from_accepted(rate: float, tau: float, limits: Limits) -> None:
    # pooled shares and one rate: N = 1 / (4 * .04^2 r^2 t0^2) = 156.25 / (r^2 t0^2) for the stages, at every level
    needed = 1 / (2 * most(limits, tau) * rate * min(tau, 1 - tau)) ** 2
    assert limits is PAIRS or needed == pytest.approx(156.25 / (rate * min(tau, 1 - tau)) ** 2)
    with pytest.raises(Infeasible):
        check(pooled([math.floor(needed * 0.999)], rate), tau, ("a",), limits)
    measured = check(pooled([math.ceil(needed * 1.001)], rate), tau, ("a",), limits)
    assert measured.ratio == pytest.approx(most(limits, tau), rel=2e-3)


@pytest.mark.parametrize(("tau", "refuse"), [(0.5, 0.04), (0.75, 0.08), (0.1, 0.15)])
def test_pairs_go_further_in_the_tails_and_no_further_at_the_median(tau: float, refuse: float) -> None:
    assert PAIRS.at(tau)[:2] == pytest.approx((0.03, refuse))
    assert STAGES.at(tau)[:2] == pytest.approx(STAGES[:2])


def test_without_limits_those_of_the_stages_hold() -> None:
    between = pooled([40_000], 0.5)
    assert STAGES.refuse < support(between, 0.1).ratio < PAIRS.refuse
    with pytest.raises(Infeasible):
        check(between, 0.1, ("a",))
    assert check(between, 0.1, ("a",), PAIRS).ratio == support(between, 0.1).ratio


def test_the_sentence_names_the_records_that_the_design_needs() -> None:
    for limits, needed in ((STAGES, "63,000"), (PAIRS, "4,500")):
        with pytest.raises(Infeasible, match=f"about {needed} records"):
            check(pooled([4_000], 0.5), 0.1, ("a",), limits)


def test_pairs_begin_where_the_stages_end_and_only_within_the_zone_of_warnings() -> None:
    assert STAGES.warn == PAIRS.warn < SCARCE == STAGES.refuse < PAIRS.refuse
    for tau in (0.01, 0.2, 0.45, 0.5):
        assert PAIRS.at(tau).warn < SCARCE <= PAIRS.at(tau).refuse


def test_how_the_records_lie_over_sites_does_not_matter_when_pooled() -> None:
    one, many = support(pooled([10_000], 0.5), 0.3), support(pooled([1000, 2000, 7000], 0.5), 0.3)
    assert one.ratio == pytest.approx(many.ratio)
    assert many.variance_shares == pytest.approx((0.1, 0.2, 0.7))


def test_the_levels_are_treated_alike_on_both_sides() -> None:
    assert support(pooled([5000], 0.5), 0.2).ratio == pytest.approx(support(pooled([5000], 0.5), 0.8).ratio)


def test_the_sentence_names_the_number_of_records() -> None:
    with pytest.raises(Infeasible) as refusal:
        check(pooled([4000, 4000], 0.26), 0.5, ("north", "south"))
    text = str(refusal.value)
    assert "0.5 quantile" in text
    assert "about 9,300 records" in text
    assert "there are 8,000" in text
    assert "site" not in text  # neither site is to blame more than the other
    assert isinstance(refusal.value, BadInput)


def test_the_sentence_names_the_site_that_drives_the_noise() -> None:
    crowd = SiteProfile(np.array([0.1, 0.8, 0.1]), np.full(3, 0.5), np.array([100_000, 500, 100_000]))
    with pytest.raises(Infeasible, match=r"site 'tiny' causes 100% of the noise"):
        check(crowd, 0.5, ("north", "tiny", "south"))


def test_the_number_of_records_would_be_enough() -> None:
    crowd = pooled([3000, 1000], 0.25)
    needed = support(crowd, 0.5).records_for(4000, 0.04)
    grown = SiteProfile(crowd.shares, crowd.rates, np.ceil(crowd.sizes * (needed / 4000)).astype(np.int64))
    assert check(grown, 0.5, ("a", "b")).ratio <= 0.04
    assert needed == 10_000


@pytest.mark.parametrize("bounded", [False, True])
def test_an_interval_reaches_less_far_with_more_records_and_further_with_more_confidence(bounded: bool) -> None:
    crowd, more = pooled([600, 400], 0.7), pooled([2400, 1600], 0.7)
    for tau in (0.4, 0.5, 0.6):
        low, high = reach(crowd, tau, 0.95, bounded)
        assert tau - low == pytest.approx(high - tau)
        near, far = reach(more, tau, 0.95, bounded), reach(crowd, tau, 0.99, bounded)
        assert far[0] < low < near[0] < tau < near[1] < high < far[1]
        factor = (high - low) / (near[1] - near[0])  # four times the records: twice the search beside half the noise
        assert factor == pytest.approx(2) if bounded else factor > 2


def test_bounds_save_the_search_and_an_end_beyond_all_levels_is_none() -> None:
    crowd = pooled([300], 0.76)
    (low, high), (lower, higher) = reach(crowd, 0.5, bounded=True), reach(crowd, 0.5)
    assert 0 < lower < low < 0.5 < high < higher < 1
    assert reach(crowd, 0.9, bounded=True)[1] == 1
    assert reach(pooled([100], 0.5), 0.5) == (0, 1)


def test_the_page_has_the_reach_of_few_records() -> None:
    rows = re.findall(r"^\| ([\d,]+) ((?:\| [^|]+\([^|]+\) ){6})\|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 4
    for records, cells in rows:
        sizes = [int(records.replace(",", ""))]
        asked = [(tau, epsilon) for tau in (0.5, 0.75) for epsilon in (1.0, 2.0, 4.0)]
        for (tau, epsilon), cell in zip(asked, cells.split("|")[1:], strict=True):
            crowd = pooled(sizes, rate_of(binary(epsilon)))
            words = []
            for bounded in (True, False):
                low, high = reach(crowd, tau, bounded=bounded)
                both = f"{100 * low:.0f} to {100 * high:.0f} %" if high < 1 else f"{100 * low:.0f} % to open"
                words.append(both if low > 0 else "open")
            assert cell.strip() == f"{words[0]} ({words[1]})"


def test_what_is_expected_is_said_in_words() -> None:
    assert expected(0.383, 0.617) == "from about the 38 % quantile to the 62 % quantile"
    assert expected(0.8849, 0.9151) == "from about the 88.5 % quantile to the 91.5 % quantile"
    assert expected(0.0, 0.617) == "up to about the 62 % quantile, its lower end open or far out"
    assert expected(0.383, 1.0) == "from about the 38 % quantile on, its upper end open or far out"
    assert expected(0.0, 1.0) == "with both ends open or far out"
