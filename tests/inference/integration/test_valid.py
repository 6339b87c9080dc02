"""The default combination: inside the interval, exact where sources are far, never worse than its promises."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate, pool
from sottovoce.inference.integration import kabaila_giri, limited_translation
from sottovoce.inference.integration.valid import Valid, combine
from sottovoce.sim.randomness import dice

TARGET = SiteEstimate(10.0, 2.0)
OWN = TARGET.interval(0.95)
levels = st.sampled_from(kabaila_giri.LEVELS)
sites = st.builds(
    SiteEstimate,
    st.floats(-30.0, 50.0),
    st.floats(-4.0, 4.0).map(lambda power: 10.0**power),
    st.sampled_from([5.0, 40.0, math.inf]),
)
crowds = st.lists(sites, min_size=1, max_size=7)
sides = st.tuples(st.floats(0.0, 8.0), st.floats(0.1, 8.0))


def length(found: Valid) -> float:
    return found.high - found.low


def moved(found: Valid, sources: list[SiteEstimate]) -> float:
    return sum(w * (site.estimate - TARGET.estimate) for w, site in zip(found.weights[1:], sources, strict=True))


@settings(deadline=None, max_examples=100)
@given(crowds, sides, levels, st.booleans())
def test_estimate_interval_and_weights_fit_together(
    sources: list[SiteEstimate], half: tuple[float, float], level: float, trusted: bool
) -> None:
    found = combine(TARGET, (TARGET.estimate - half[0], TARGET.estimate + half[1]), sources, level, trusted)
    assert found.low <= found.estimate <= found.high
    assert abs(found.estimate - TARGET.estimate) <= limited_translation.MOST * TARGET.std_error * (1 + 1e-9)
    assert sum(found.weights) == pytest.approx(1.0, abs=1e-9)
    assert min(found.weights) >= 0
    assert TARGET.estimate + moved(found, sources) == pytest.approx(found.estimate, abs=1e-7)
    inflations = [each for row in kabaila_giri.table(level) for each in row.inflation]
    shortest, longest = min(1.0, *inflations), max(1.0, *inflations)  # as the table has them: at .8 down to .82
    assert shortest * sum(half) * (1 - 1e-9) <= length(found) <= longest * sum(half) * (1 + 1e-9)


@settings(deadline=None, max_examples=60)
@given(crowds, levels, st.booleans(), st.integers(0, 6))
def test_the_order_of_the_sources_does_not_matter(
    sources: list[SiteEstimate], level: float, trusted: bool, turn: int
) -> None:
    places = [(i + turn) % len(sources) for i in reversed(range(len(sources)))]
    own = TARGET.interval(level)
    one, two = (combine(TARGET, own, each, level, trusted) for each in (sources, [sources[i] for i in places]))
    assert two[:3] == pytest.approx(one[:3], abs=1e-9)
    if trusted:  # of two sources with one estimate either may be the median
        assert two.weights[1:] == pytest.approx([one.weights[1 + i] for i in places], abs=1e-9)


@pytest.mark.parametrize("shift", [10.4, -10.4, 1e3, -1e9, 1e12])
@pytest.mark.parametrize("trusted", [True, False])
def test_far_sources_leave_the_interval_bit_for_bit(shift: float, trusted: bool) -> None:
    skewed = (7.3, 15.1)
    found = combine(TARGET, skewed, [SiteEstimate(10.0 + shift, 0.1), SiteEstimate(10.0 + shift, 0.2)], 0.95, trusted)
    assert (found.low, found.high) == skewed
    assert found.estimate == pytest.approx(10.0 + math.copysign(0.5, shift))


def test_a_source_near_by_shortens_and_one_in_between_may_lengthen() -> None:
    found = [combine(TARGET, OWN, [SiteEstimate(10.0 + 2.0 * x, 0.2)], 0.95) for x in range(7)]
    ratios = [length(each) / (OWN[1] - OWN[0]) for each in found]
    assert ratios[0] == pytest.approx(0.93, abs=0.02)
    assert 1.0 < max(ratios) < 1.05
    assert ratios[6] == 1.0


def test_sources_that_pull_in_opposite_directions_cancel() -> None:
    # the move is zero but for rounding, and says nothing of the weights
    found = combine(TARGET, OWN, [SiteEstimate(0.0, 10.0**0.5, 5.0), SiteEstimate(24.0, 10.0**0.5, 5.0)], 0.8)
    assert found.estimate == pytest.approx(10.0)
    assert all(0 < weight < 1 for weight in found.weights)


@pytest.mark.parametrize("trusted", [True, False])
def test_an_estimate_held_back_by_an_edge_has_weights_that_lead_there(trusted: bool) -> None:
    # the high edge stops the estimate at once; the low edge follows the pooled sources, the estimate most of them
    stopped = [SiteEstimate(11.5, 0.1), SiteEstimate(11.6, 0.1), SiteEstimate(30.0, 3.0)]
    apart = [SiteEstimate(11.5, 0.05), SiteEstimate(9.0, 0.06), SiteEstimate(9.0, 0.06)]
    for own, sources in (((6.0, 10.01), stopped), ((10.0, 18.0), apart)):
        found = combine(TARGET, own, sources, 0.95, trusted)
        assert found.estimate in (found.low, found.high)
        assert TARGET.estimate + moved(found, sources) == pytest.approx(found.estimate, abs=1e-12)
        assert all(0 <= weight <= 1 for weight in found.weights)


def test_one_stray_among_many_is_outvoted_by_the_estimate() -> None:
    near = [SiteEstimate(10.4, 0.5)] * 4
    calm, disturbed = (combine(TARGET, OWN, [*near, *more], 0.95) for more in ([], [SiteEstimate(500.0, 0.5)]))
    assert abs(disturbed.estimate - calm.estimate) < 0.2
    assert disturbed.weights[-1] < 0.01


def test_without_trust_errors_are_not_read_and_the_median_speaks() -> None:
    estimates = [10.5, 11.0, 800.0]
    crowds = [[SiteEstimate(y, error) for y in estimates] for error in (1e-3, 7.0, math.inf)]
    told = [combine(TARGET, OWN, crowd, 0.95, trusted=False) for crowd in crowds]
    assert told[0] == told[1] == told[2]
    assert told[0].weights[2] > 0
    assert told[0].weights[1] == told[0].weights[3] == 0
    assert told[0][1:3] == pytest.approx(kabaila_giri.interval_untrusted(TARGET, OWN, 11.0, 0.95), rel=1e-12)


def test_the_pooled_sources_change_the_interval() -> None:
    sources = [SiteEstimate(10.5, 0.5), SiteEstimate(11.0, 1.0)]
    found = combine(TARGET, OWN, sources, 0.95)
    assert (found.low, found.high) == pytest.approx(kabaila_giri.interval(TARGET, OWN, pool(sources), 0.95), rel=1e-12)


def test_nothing_to_combine() -> None:
    assert combine(TARGET, (1.0, 12.0), [], 0.95) == Valid(10.0, 1.0, 12.0, (1.0,))
    endless = SiteEstimate(10.0, math.inf)
    assert combine(endless, (-math.inf, 12.0), [TARGET], 0.95) == Valid(10.0, -math.inf, 12.0, (1.0, 0.0))
    for sources in ([], [TARGET]):
        with pytest.raises(BadInput, match=r"has a table for 0\.8, 0\.9, 0\.95, 0\.99 only"):
            combine(TARGET, OWN, sources, 0.94)


@settings(deadline=None, max_examples=40)
@given(crowds, st.floats(-8.0, 10.0), st.floats(-1e6, 1e6), st.booleans())
def test_it_moves_and_stretches_with_the_sites(
    sources: list[SiteEstimate], power: float, shift: float, trusted: bool
) -> None:
    factor = 10.0**power
    shift *= factor

    def there(site: SiteEstimate) -> SiteEstimate:
        return SiteEstimate(shift + factor * site.estimate, factor * site.std_error, site.df)

    plain = combine(TARGET, OWN, sources, 0.95, trusted)
    own = (shift + factor * OWN[0], shift + factor * OWN[1])
    other = combine(there(TARGET), own, [there(site) for site in sources], 0.95, trusted)
    assert other[:3] == pytest.approx([shift + factor * value for value in plain[:3]], abs=1e-6 * factor)


@pytest.mark.parametrize("shift", [0.0, 1.5, 3.0])
@pytest.mark.parametrize("error", [0.1, 1.0])
def test_it_covers_whatever_the_shift_and_errs_little_more_than_the_target(shift: float, error: float) -> None:
    # 3,000 draws: .95 less 5 standard errors, false alarm below 1e-6; so for the mean square, whose bound is 1.0625
    n = 3000
    ours, theirs = dice(11).generator().standard_normal((2, n))
    covered, squares = 0, []
    for y, noise in zip(ours.tolist(), theirs.tolist(), strict=True):
        target, source = SiteEstimate(y, 1.0), SiteEstimate(shift + error * noise, error)
        found = combine(target, target.interval(0.95), [source], 0.95)
        covered += found.low <= 0 <= found.high
        squares.append(found.estimate**2)
    assert covered / n > 0.95 - 5 * math.sqrt(0.95 * 0.05 / n)
    excess = np.array(squares) - ours**2
    assert np.mean(excess) < 0.0625 + 5 * np.std(excess) / math.sqrt(n)
    if shift == 0:
        assert np.mean(squares) < (0.75 if error == 0.1 else 0.85) * np.mean(ours**2)
