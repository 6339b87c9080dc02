"""Sites in turn, side by side, and through bytes: one result, and a state that survives at every step."""

import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.integration import opener, read_given
from sottovoce.client.door import Door
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile.site import Site
from sottovoce.core import codec
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.local.integration import ask_in_turn
from sottovoce.local.runner import run, through_bytes
from sottovoce.protocol.card import identity
from sottovoce.server.integration.method import IntegrationMethod
from sottovoce.server.integration.plan import IntegrationPlan, check_settings, plan_integration
from sottovoce.server.method import converse, restore
from sottovoce.sim.randomness import dice

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
DRAWN = dice(11).generator()
SITES: dict[str, Any] = {
    "ours": DRAWN.standard_normal(1_500),
    "north": DRAWN.standard_normal(1_800),
    "open": DRAWN.standard_normal(200),
    "told": sv.SiteSummary(0.1, 0.1, n=90),
}
BUDGETS = {"ours": 5.0, "north": 6.0, "open": math.inf}
Opened = Callable[[int], Site | OpenSite]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Uncompiled, the order's arithmetic wraps round aloud."""
    with np.errstate(over="ignore"):
        yield


def planned(
    method: str, sites: Any = SITES, resolution: float | None = None, chains: int = 4
) -> tuple[IntegrationPlan, Opened]:
    given, random = read_given("ours", sites, "refuse"), dice(5)
    assert given.table is not None
    settings = check_settings(method, 0.95, 0.5, "printed", "z", 1.96, None, chains)
    budgets = {name: BUDGETS[name] for name in given.table.names}
    known: dict[str, Any] = {"simulated": True, "resolution": resolution}
    plan = plan_integration(settings, given.names, given.table.roster, given.summaries, 0.5, budgets, **known)
    return plan, opener(plan, given.table, random)


def doors(plan: IntegrationPlan, opened: Opened) -> list[Door]:
    study = identity(plan.card())
    # a site that gave a summary is never asked: any door will do
    return [Door(opened(k if site.study is not None else 0), study) for k, site in enumerate(plan.asked)]


@compiled
@pytest.mark.parametrize("method", ["valid", "ivw", "target"])
@pytest.mark.parametrize("resolution", [None, 0.5])
def test_in_turn_side_by_side_and_through_bytes_are_one(method: str, resolution: float | None) -> None:
    plan, opened = planned(method, resolution=resolution)
    over_sites = ask_in_turn(IntegrationMethod(plan), opened)
    plan, opened = planned(method, resolution=resolution)
    beside = run(IntegrationMethod(plan), doors(plan, opened))
    plan, opened = planned(method, resolution=resolution)
    asks = IntegrationMethod(plan)
    sent = asks.outcome(converse(asks, through_bytes(asks, doors(plan, opened), identity(plan.card()))))
    assert over_sites == beside == sent
    asked = sv.integrated_quantile(
        "ours", SITES, 0.5, BUDGETS, method=method, chains=4, resolution=resolution, randomness=dice(5)
    )
    assert asked == over_sites
    assert asked.to_dict() == over_sites.to_dict()


@compiled
@pytest.mark.parametrize("method", ["valid", "ivw"])
def test_a_study_goes_on_from_the_bytes_of_its_state(method: str) -> None:
    plan, opened = planned(method)
    whole = ask_in_turn(IntegrationMethod(plan), opened)
    plan, opened = planned(method)
    asks = IntegrationMethod(plan)
    gather = through_bytes(asks, doors(plan, opened), identity(plan.card()))
    state, steps = asks.init(), 0
    while (queries := asks.query(state)) is not None:
        state = asks.step(state, gather(queries))
        steps += 1
        if steps % 50 == 0 or steps < 50:
            asks, state = IntegrationMethod(plan), restore(asks, codec.to_bytes(state))
    assert asks.outcome(state) == whole


@compiled
def test_a_target_whose_search_fails_spends_no_other_record() -> None:
    told: list[int] = []
    opened_sites: list[Site | OpenSite] = []
    plan, opened = planned("valid", {"ours": np.full(1_500, 7.25), "north": SITES["north"]})

    def kept(k: int) -> Site | OpenSite:
        opened_sites.append(opened(k))
        return opened_sites[-1]

    with pytest.raises(SearchFailed):
        ask_in_turn(IntegrationMethod(plan), kept, told.append)
    assert [site.size for site in opened_sites] == [1_500]
    assert 0 < sum(told) == opened_sites[0].spent


@compiled
@pytest.mark.parametrize("method", ["valid", "ivw"])
def test_a_source_whose_search_fails_is_left_out_however_it_is_asked(method: str) -> None:
    # no search finds its way among equal records, and of 720 none leaves seven chains 100 each
    sites = {**SITES, "north": np.full(1_800, 7.25) if method == "valid" else SITES["north"][:720]}
    told: list[int] = []
    plan, opened = planned(method, sites, chains=7)
    over_sites = ask_in_turn(IntegrationMethod(plan), opened, told.append)
    plan, opened = planned(method, sites, chains=7)
    beside = run(IntegrationMethod(plan), doors(plan, opened))
    assert over_sites == beside
    assert [site.name for site in over_sites.lost] == ["north"]
    assert over_sites.reports == sum(told)


@compiled
def test_records_without_variance_end_the_study_before_a_budget_is_spent() -> None:
    sites = {**SITES, "open": np.full(200, 7.0)}
    plan, opened = planned("valid", sites)
    entered: list[int] = []

    def kept(k: int) -> Site | OpenSite:
        entered.append(k)
        return opened(k)

    with pytest.raises(BadInput, match="source 'open' has no variance"):
        ask_in_turn(IntegrationMethod(plan), kept)
    assert [plan.asked[k].name for k in entered] == ["open"]
