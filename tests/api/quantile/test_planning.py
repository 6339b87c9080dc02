"""Every bad input has its sentence, and not a single record answers before all of it is checked."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.quantile.levels import plan_levels
from sottovoce.api.quantile.planning import plan_study, prepare
from sottovoce.client.quantile.site import Site
from sottovoce.server.quantile.feasibility import PAIRS, STAGES, Limits, reach
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.sim.randomness import dice


def planned(*given: Any, **public: Any) -> QuantilePlan:
    return prepare(*given, **public).plan


NORTH, SOUTH = np.linspace(-1.0, 1.0, 30_000), np.linspace(0.0, 2.0, 20_000)
SITES = {"north": NORTH, "south": SOUTH}


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no record answer."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a record answered before all input was checked")

    for door in ("tally", "answer", "hand_over"):
        monkeypatch.setattr(Site, door, refuse)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"tau": 0}, "tau must lie strictly between 0 and 1, not 0"),
    ({"tau": 1.0}, "strictly between"),
    ({"tau": -0.2}, "not -0.2"),
    ({"tau": math.nan}, "tau must be a number, not nan"),
    ({"tau": "0.5"}, "tau must be a number, not '0.5'"),
    ({"tau": None}, "tau must be a number, not None"),
    ({"tau": True}, "tau must be a number, not True"),
    ({"tau": [0.5]}, "call federated_quantiles"),
    ({"tau": {"north": 0.5}}, "tau says nothing of site 'south'"),
    ({"tau": {"north": 0.5, "south": 1.5}}, "tau of site 'south' must lie strictly between 0 and 1, not 1.5"),
    ({"epsilon": 0}, "epsilon must be positive"),
    ({"epsilon": -1.0}, "epsilon must be positive, not -1.0"),
    ({"epsilon": 25.0}, "epsilon 25.0 is above 24"),
    ({"epsilon": 1e-300}, "too small"),
    ({"epsilon": math.nan}, "epsilon must be a number, not nan"),
    ({"epsilon": "one"}, "epsilon must be a number, not 'one'"),
    ({"epsilon": 10**400}, "epsilon must be a number"),
    ({"epsilon": {"north": 1.0}}, "epsilon says nothing of site 'south'"),
    ({"epsilon": {"north": 1.0, "south": 1.0, "west": 1.0}}, "epsilon names 'west', which is not a site"),
    ({"epsilon": {"north": 1.0, "south": -2.0}}, "epsilon of site 'south' must be positive, not -2.0"),
    ({"shares": "even"}, "'pooled', 'equal' or a mapping .* not 'even'"),
    ({"shares": [0.5, 0.5]}, "not a list"),
    ({"shares": {"north": 1.0}}, "shares says nothing of site 'south'"),
    ({"shares": {"north": 0.5, "west": 0.5}}, "shares names 'west'"),
    ({"shares": {"north": 1.5, "south": -0.5}}, "share of site 'south' must be positive"),
    ({"shares": {"north": 1.0, "south": 0.0}}, "share of site 'south' must be positive"),
    ({"shares": {"north": math.inf, "south": 0.5}}, "share of site 'north' must be positive and finite"),
    ({"shares": {"north": 0.5, "south": 0.4}}, "sum to 0.9, not to 1"),
    ({"shares": {"north": "half", "south": 0.5}}, "shares of site 'north' must be a number"),
    ({"bounds": (2.0, 1.0)}, r"low < high, not \(2.0, 1.0\)"),
    ({"bounds": (1.0, 1.0)}, "low < high"),
    ({"bounds": (math.nan, 1.0)}, "lower bound is nan"),
    ({"bounds": (0.0, math.inf)}, "upper bound is inf"),
    ({"bounds": (-1e308, 1e308)}, "finite with low < high"),
    ({"bounds": 3.0}, "pair .* not 3.0"),
    ({"bounds": (1.0, 2.0, 3.0)}, "pair"),
    ({"bounds": "12"}, "pair .* not '12'"),
    ({"bounds": ("low", 2.0)}, "lower bound is 'low'"),
    ({"scale": 0.0}, "scale must be positive and moderate, not 0.0; give"),
    ({"scale": -1}, "scale must be positive and moderate, not -1"),
    ({"scale": math.inf}, "scale must be positive and moderate, not inf"),
    ({"scale": 1e-200}, "scale must be positive and moderate, not 1e-200"),
    ({"scale": 1e200}, r"scale must be positive and moderate, not 1e\+200"),
    ({"scale": math.nan}, "scale must be a number, not nan"),
    ({"scale": "90min"}, "scale must be a number, not '90min'"),
    ({"resolution": -0.1}, "resolution must be positive, not -0.1"),
    ({"kind": "prices"}, "kind .prices. is unknown; choose one of .counts., .scores., .amounts."),
    (
        {"kind": "counts", "sites": [np.arange(9).astype("m8[s]")]},
        "kind=.counts. is said of numbers, and the records are durations",
    ),
    ({"resolution": math.inf}, "resolution must be positive"),
    ({"resolution": "0.1"}, "resolution must be a number, not '0.1'"),
    ({"level": 0.0}, "level must lie strictly between 0 and 1"),
    ({"level": 95}, "level must lie strictly between 0 and 1, not 95"),
    ({"level": "95"}, "level must be a number"),
    ({"missing": "ignore"}, "missing"),
    ({"method": "magic"}, "method 'magic' is unknown"),
    ({"sites": {}}, "no sites"),
    ({"sites": NORTH}, "mapping from site to records"),
    ({"sites": {"north": []}}, "site 'north'"),
    ({"sites": {"north": [1.0]}}, "only one record"),
    ({"sites": {"north": [1.0, math.nan, 2.0]}}, "[Ss]ite 'north' .* row 2"),
    ({"sites": {"north": [1.0, math.inf, 2.0]}}, "[Ss]ite 'north'"),
    ({"sites": {"north": ["x", "y"]}}, "[Ss]ite 'north'"),
    ({"sites": {"north": np.zeros(100), "south": np.zeros(50)}}, "one and the same value"),
    ({"sites": {"north": NORTH[:500]}, "tau": 0.9}, "0.9 quantile needs about"),
]


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize(("change", "sentence"), BAD, ids=lambda item: str(item)[:40])
def test_bad_input_is_refused_with_its_sentence_and_nothing_is_spent(change: dict[str, Any], sentence: str) -> None:
    options: dict[str, Any] = {"sites": SITES, "tau": 0.5, "epsilon": 1.0, "randomness": dice(1), **change}
    with pytest.raises(sv.BadInput, match=sentence) as problem:
        sv.federated_quantile(options.pop("sites"), options.pop("tau"), options.pop("epsilon"), **options)
    assert "\n" not in str(problem.value)


def test_pooled_shares_go_by_size_and_equal_shares_do_not() -> None:
    assert planned(SITES, 0.5, 1.0).crowd.shares == pytest.approx([0.6, 0.4])
    assert planned(SITES, 0.5, 1.0, shares="equal").crowd.shares == pytest.approx([0.5, 0.5])
    own = planned(SITES, 0.5, 1.0, shares={"south": 0.3, "north": 0.7})
    assert own.crowd.shares == pytest.approx([0.7, 0.3])
    assert own.shares_name == "custom"


def test_one_value_a_site_is_matched_by_name() -> None:
    plan = planned(SITES, {"south": 0.4, "north": 0.6}, {"south": 2.0, "north": math.inf})
    assert plan.taus.tolist() == [0.6, 0.4]
    assert plan.tau == pytest.approx(0.6 * 0.6 + 0.4 * 0.4)
    assert plan.epsilons == {"north": math.inf, "south": pytest.approx(2.0, abs=1e-8)}
    assert plan.epsilons["south"] <= 2.0
    assert plan.crowd.rates == pytest.approx([1.0, math.tanh(1.0)])


def test_names_that_are_numbers_match_too() -> None:
    assert planned({1.0: NORTH, 2: SOUTH}, 0.5, {1.0: 1.0, 2: 2.0}).names == ("1", "2")


def test_text_and_objects_of_time_become_the_unit_of_the_records() -> None:
    waits = (3600 + 1800 * NORTH).astype(np.int64).astype("timedelta64[s]")
    plan = planned([waits], 0.5, 2.0, bounds=("10min", np.timedelta64(3, "h")), scale="30min", resolution="1s")
    assert (plan.bounds, plan.scale, plan.resolution) == ((599.5, 10_800.5), 1800.0, 1.0)
    days = np.datetime64("2020-01-01", "D") + (100 * NORTH).astype(np.int64).astype("timedelta64[D]")
    plan = planned([days], 0.5, 2.0, bounds=("2019-01-01", "2021-01-01"), scale="2d")
    assert plan.bounds == (17_896.5, 18_628.5)  # where dithered days lie
    assert plan.scale == 2.0
    assert plan.resolution == 1.0  # dates are whole days, so the resolution is known


def test_ties_are_hinted_at_unless_the_resolution_is_given() -> None:
    rounded = np.round(NORTH, 2)
    for sites in ([rounded], [NORTH, rounded]):
        (hint,) = planned(sites, 0.5, 1.0).hints
        assert "tied" in hint
        assert planned(sites, 0.5, 1.0).warnings == ()
    assert planned([rounded], 0.5, 1.0, resolution=0.01).hints == ()
    assert planned([NORTH], 0.5, 1.0).hints == ()


def test_of_many_sites_the_largest_are_looked_at() -> None:
    generator = dice(8).generator()
    fine, tied = [generator.normal(size=150) for _ in range(400)], np.round(generator.normal(size=200))
    assert planned(fine, 0.5, 1.0).hints == ()
    assert planned([*fine, tied], 0.5, 1.0).hints != ()
    assert planned([*fine, tied[:120]], 0.5, 1.0).hints == ()  # 120 records among 60,000 spoil nothing


@pytest.mark.parametrize(
    ("limits", "tau", "factor", "longer", "needed"),
    [  # all over (r t0)^2: stages refuse below 156.25, pairs in the tails below 11.1; both warn below 277.8
        (STAGES, 0.5, 200, "half as long again", "5,300 records"),
        (PAIRS, 0.5, 200, "half as long again, or twice as long", "5,300 records"),
        (PAIRS, 0.1, 50, "half as long again, or twice as long", "140,000 records"),
    ],
    ids=["stages", "pairs at the median", "pairs in a tail"],
)
def test_a_barely_supported_level_is_warned_of_with_the_records_that_would_do(
    limits: Limits, tau: float, factor: float, longer: str, needed: str
) -> None:
    records = int(factor / (math.tanh(0.5) * tau) ** 2)
    (warning,) = planned([np.linspace(0.0, 1.0, records)], tau, 1.0, limits=limits).warnings
    assert "barely supported" in warning
    assert f"may be {longer} as with ample data" in warning
    assert needed in warning
    ample = np.linspace(0.0, 1.0, int(needed.split()[0].replace(",", "")))
    assert planned([ample], tau, 1.0, limits=limits).warnings == ()


FEW: list[tuple[dict[str, Any], str]] = [  # 300 records of rate .76
    ({}, "from about the 13 % quantile to the 87 % quantile"),
    ({"bounds": (0, 100)}, "from about the 29 % quantile to the 71 % quantile"),
    ({"method": "certified", "level": 0.8, "bounds": (0, 100)}, "from about the 33 % quantile to the 67 % quantile"),
    ({"method": "sequence", "tau": 0.75}, "from about the 42 % quantile on, its upper end open or far out"),
    ({"tau": 0.16, "kind": "amounts", "bounds": (0, 100)}, "up to about the 34 % quantile, its lower end open"),
]


@pytest.mark.parametrize(("asked", "words"), FEW, ids=str)
def test_how_far_few_records_reach_is_said_before_any_answers(closed: None, asked: dict[str, Any], words: str) -> None:
    (warning,) = plan_study([np.linspace(0.0, 1.0, 300)], **{"tau": 0.5, "epsilon": 2.0, **asked}).warnings
    assert f"of these records expect an interval {words}" in warning


def test_how_far_few_records_reach_is_said_for_each_level_and_not_where_stages_or_pairs_are_asked(closed: None) -> None:
    several = plan_levels([np.linspace(0.0, 1.0, 900)], [0.4, 0.6], 2.0, bounds=(0, 1)).warnings
    assert ["expect an interval from about" in text for text in several] == [True, True]
    pairs = plan_study([np.linspace(0.0, 1.0, 2_000)], 0.8, 2.0)
    assert ["as with ample data" in text for text in pairs.warnings] == [True]
    certified = plan_study([np.linspace(0.0, 1.0, 2_000)], 0.8, 2.0, method="certified")
    assert ["expect an interval from about" in text for text in certified.warnings] == [True]
    assert plan_study([NORTH], 0.5, 2.0, method="certified").warnings == ()


@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
def test_three_hundred_records_end_about_where_was_said() -> None:
    # mean of 20 ends, each with a standard deviation of .05: .05 is four standard errors, and a bias of .005
    normal, values = NormalDist(50, 10), dice(85).generator().normal(50, 10, (20, 300))
    made = [
        sv.federated_quantile([row], 0.5, 2.0, bounds=(0, 100), randomness=dice(seed))
        for seed, row in enumerate(values)
    ]
    said = reach(made[0].plan.crowd, 0.5, bounded=True)
    ends = np.mean([[normal.cdf(end) for end in result.interval] for result in made], axis=0)
    assert ends == pytest.approx(said, abs=0.05)
    assert sum(low < 50 < high for low, high in (result.interval for result in made)) >= 15  # 3e-4 at .95


def test_limits_and_bounds_do_not_get_in_each_others_way() -> None:
    plan = planned([np.linspace(0.0, 1.0, 20_000)], 0.1, 1.0, bounds=(0.0, 2.0), limits=PAIRS)
    assert plan.bounds == (0.0, 2.0)
    assert STAGES.refuse < plan.support.ratio < PAIRS.refuse


def test_thinned_records_are_judged_by_what_is_left() -> None:
    with pytest.raises(sv.Infeasible, match="there are 3,000"):
        planned([NORTH], 0.2, 1.0, thinned=0.1)


def test_a_site_agrees_to_every_budget_that_can_be_stated() -> None:
    # what a channel realises may, rounded to a float, lie below its exact epsilon: the stated budget is what counts
    for epsilon in np.linspace(2.0, 24.0, 700).tolist():
        prepared = prepare({"north": NORTH}, 0.5, epsilon)
        (site,) = prepared.open(dice(1))
        assert site.channel.epsilon <= epsilon
        assert prepared.plan.study_of(0).epsilon == epsilon
