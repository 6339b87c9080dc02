"""`sv.expected_shortfall`: what it estimates, in both tails and in every unit, and what it refuses."""

import copy
import datetime as dt
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

import sottovoce as sv
from sottovoce.sim.randomness import dice

LOSSES = dice(31).generator().gamma(2.0, 10.0, 40_000)
SITES = {"north": LOSSES[:25_000], "south": LOSSES[25_000:]}
BOUNDS = (0, 150)
pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")


def of_gamma(tau: float) -> tuple[float, float]:
    quantile = float(stats.gamma(2, scale=10).ppf(tau))
    return quantile, 20 * float(stats.gamma(3, scale=10).sf(quantile)) / (1 - tau)


def asked(sites: Any = SITES, tau: float = 0.9, epsilon: Any = 4.0, seed: int = 1, **given: Any) -> Any:
    return sv.expected_shortfall(sites, tau, epsilon, **{"bounds": BOUNDS, "randomness": dice(seed), **given})


@pytest.mark.parametrize("method", ["certified", "staged"])
def test_both_numbers_have_intervals_that_hold_them(method: str) -> None:
    quantile, shortfall = of_gamma(0.9)
    made = asked(method=method)
    assert made.value_at_risk.interval.low < quantile < made.value_at_risk.interval.high
    assert made.interval.low < shortfall < made.interval.high
    assert made.interval.low <= made.estimate <= made.interval.high
    assert made.interval.high - made.interval.low < 12
    assert made.value_at_risk.estimate < made.estimate
    assert made.reports <= len(LOSSES)
    assert made.value_at_risk.reports < made.reports
    assert "every distribution" in made.guarantee
    assert (method == "staged") == ("its upper end" in made.guarantee)


def test_it_holds_at_least_as_often_as_it_says() -> None:
    """Of 60 runs, the ends at the level .6 miss no more often than chance allows with probability 1e-6."""
    shortfall, source = of_gamma(0.8)[1], dice(37).generator()
    ends = []
    for i in range(60):
        made = asked([source.gamma(2.0, 10.0, 8_000)], 0.8, 4.0, seed=100 + i)
        ends.append(made.interval_at(0.6))
    most = stats.binom.isf(1e-6, 60, 0.2)
    assert sum(end.high < shortfall for end in ends) <= most
    assert sum(end.low > shortfall for end in ends) <= most
    assert any(end.high < shortfall for end in ends)


def test_a_lower_tail_is_an_upper_one_turned_round() -> None:
    made = asked({name: -column for name, column in SITES.items()}, 0.1, tail="lower", bounds=(-150, 0))
    quantile, shortfall = of_gamma(0.9)
    assert made.tail == "lower"
    assert made.value_at_risk.interval.low < -quantile < made.value_at_risk.interval.high
    assert made.interval.low < -shortfall < made.interval.high
    assert made.estimate < made.value_at_risk.estimate
    assert "lowest 0.1" in made.estimand


@pytest.mark.parametrize("tail", ["upper", "lower"])
def test_whole_numbers_are_told_apart_though_they_are_dithered(tail: str) -> None:
    counts = np.minimum(dice(5).generator().poisson(3.0, 40_000), 20)
    turned, tau = (counts, 0.9) if tail == "upper" else (20 - counts, 0.1)
    made = asked({"a": turned}, tau, 6.0, tail=tail, bounds=(0, 20))
    s = stats.poisson(3.0).sf(np.arange(20))
    shortfall = float(np.minimum(s / 0.1, 1.0).sum())
    shortfall = shortfall if tail == "upper" else 20 - shortfall
    assert made.value_at_risk.plan.resolution == 1
    assert made.interval.low < shortfall < made.interval.high
    assert made.interval.high - made.interval.low < 1.5


def test_what_lies_beyond_a_bound_counts_as_the_bound() -> None:
    made = asked(tau=0.9, bounds=(0, 50), epsilon=6.0)
    x = np.linspace(of_gamma(0.9)[0], 50, 100_001)
    limited = x[0] + float(trapezoid(stats.gamma(2, scale=10).sf(x), x)) / 0.1
    assert made.interval.low < limited < made.interval.high
    assert made.interval.high < of_gamma(0.9)[1] < 56


def test_levels_are_nested_at_no_cost() -> None:
    made = asked()
    ends = [made.interval_at(level) for level in (0.5, 0.8, 0.95, 0.97, 0.99, 0.999)]
    assert all(a.low >= b.low and a.high <= b.high for a, b in pairwise(ends))


def test_it_can_be_kept_and_told() -> None:
    made = asked()
    other = type(made).from_dict(made.to_dict())
    assert (other.estimate, other.interval, other.warnings) == (made.estimate, made.interval, made.warnings)
    assert other.summary() == made.summary()
    assert copy.deepcopy(made).interval == made.interval
    assert "expected shortfall" in repr(made)
    for word in ("Value at risk:", "Shortfall:", "0.95 interval:", "Promise:"):
        assert word in str(made)


def test_the_same_dice_give_the_same_answer_through_one_site_or_many() -> None:
    assert asked().interval == asked().interval
    many = {f"s{i:03}": LOSSES[i::200] for i in range(200)}
    made = asked(many, epsilon=6.0)
    assert made.interval.low < of_gamma(0.9)[1] < made.interval.high


def test_sites_count_by_their_shares() -> None:
    high = {"a": SITES["north"], "b": SITES["south"] + 20.0}
    made = asked(high, shares={"a": 0.1, "b": 0.9}, epsilon={"a": 6.0, "b": 5.0}, bounds=(0, 170))
    both = stats.gamma(2, scale=10)
    x = np.linspace(0, 170, 170_001)
    s = 0.1 * both.sf(x) + 0.9 * both.sf(x - 20)
    shortfall = float(np.minimum(s / 0.1, 1).sum()) * (x[1] - x[0])
    assert made.interval.low < shortfall < made.interval.high
    assert made.shares == pytest.approx({"a": 0.1, "b": 0.9})


def test_durations_and_no_privacy() -> None:
    waits = np.round(LOSSES[:20_000] * 1e6).astype("timedelta64[us]")
    made = asked([waits], bounds=("0s", "150s"), epsilon=math.inf)
    assert made.interval.low < of_gamma(0.9)[1] < made.interval.high
    assert not made.private
    assert made.interval.high - made.interval.low < 10
    assert "s" in made.format(made.estimate)


def test_a_quantile_at_the_bound_leaves_nothing_beyond() -> None:
    made = asked([np.where(LOSSES > 10, 150.0, 0.0)], tau=0.6)
    assert made.interval.high == 150.0
    assert made.estimate <= 150.0
    whole = asked({"a": np.where(LOSSES > 10, 20, np.rint(LOSSES))}, tau=0.6, bounds=(0, 20), resolution=1)
    assert whole.value_at_risk.estimate == 20
    assert whole.estimate == whole.interval.high == 20


@pytest.mark.parametrize("atom", [0.0, 0.999, 0.999999999])
@pytest.mark.parametrize("method", ["certified", "staged"])
def test_a_quantile_close_to_the_bound_ends_with_an_answer(atom: float, method: str) -> None:
    made = asked([150 * np.where(LOSSES > 20, np.maximum(LOSSES / 100 % 1e-3, atom), LOSSES / 200)], 0.7, method=method)
    assert made.interval.low <= made.estimate <= made.interval.high <= 150


def test_few_records_with_a_large_budget_are_enough() -> None:
    made = asked([LOSSES[:800]], 0.6, 12.0, split=0.5)
    assert made.interval.low < of_gamma(0.6)[1] < made.interval.high


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"bounds": None}, "needs bounds="),
    ({"bounds": (5, 1)}, "low < high"),
    ({"tail": "both"}, "tail 'both' is unknown"),
    ({"method": "sequence"}, "for a shortfall method"),
    ({"split": 0.0}, "split must lie strictly"),
    ({"split": 0.01, "tau": 0.95}, "asked of 1% of the records, needs about"),
    ({"sites": [LOSSES[:500]], "tau": 0.5, "epsilon": 9.0, "split": 0.5}, "250 records are left to ask beyond"),
    ({"tau": 1.5}, "tau"),
    ({"tau": {"north": 0.5, "south": 0.6}}, "tau must be"),
    ({"tau": 0.99999}, "records"),
    ({"sites": {"a": [dt.date(2020, 1, 1)] * 30, "b": ["x"] * 30}}, "."),
]


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_bad_input_is_one_sentence(given: dict[str, Any], words: str) -> None:
    told: list[int] = []
    with pytest.raises((sv.BadInput, sv.Infeasible), match=words):
        asked(progress=told.append, **given)
    assert not told


def test_a_site_too_small_to_be_split_is_left_out() -> None:
    with pytest.warns(UserWarning, match="site 'tiny' has too few records"):
        made = asked({**SITES, "tiny": LOSSES[:50] + 1e-7})
    assert set(made.epsilon) == {"north", "south"}
    assert made.value_at_risk.left_out == ("tiny",)


def test_a_far_bound_is_warned_of_before_anybody_answers() -> None:
    with pytest.warns(UserWarning, match="of the way from the quantile to the far bound"):
        asked([LOSSES[:12_000]], 0.9, 1.0)
    told = sv.explain(sv.expected_shortfall, SITES, 0.9, 4.0, bounds=BOUNDS)
    assert told.to_dict()["split"] == 0.25
    made = asked(split=0.25)
    assert made.interval.high - made.interval.low < told.width["expected shortfall, at most"] < 150
