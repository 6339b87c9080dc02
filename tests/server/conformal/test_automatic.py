"""Which mechanism is taken: by forecast, from public numbers alone, and what was named is left alone."""

import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.errors import Infeasible
from sottovoce.server.conformal.automatic import CELLS
from sottovoce.server.conformal.methods import FINE, settle
from sottovoce.server.conformal.plan import SiteFacts
from sottovoce.server.conformal.public_grid import check_grid
from sottovoce.server.conformal.settings import MECHANISMS, ConformalSettings, check_settings

FREE = check_grid(None, 10.0, None, None)


def settings_of(mechanism: str = "auto", guarantee: str = "marginal", rule: str = "closest") -> ConformalSettings:
    return check_settings(0.1, guarantee, 0.1, rule, 1, False, mechanism, True)


def taken(sites: int, size: int, epsilon: float, **settings: str) -> str | None:
    return settle(settings_of(**settings), FREE, (SiteFacts(size, epsilon),) * sites).settings.mechanism


@pytest.mark.parametrize(
    ("sites", "size", "epsilon", "mechanism"),
    [
        (50, 20, 1.0, "counts"),  # many small sites
        (200, 5, 2.0, "counts"),
        (500, 20, 0.5, "counts"),
        (5, 200, 1.0, "sparse-vector"),  # few large ones
        (1, 100, 1.0, "sparse-vector"),
        (50, 20, 4.0, "sparse-vector"),  # enough budget
        (50, 1_000, 1.0, "sparse-vector"),  # enough scores
        (2, 10, 8.0, "sparse-vector"),
    ],
)
def test_what_is_taken(sites: int, size: int, epsilon: float, mechanism: str) -> None:
    assert taken(sites, size, epsilon) == mechanism


def test_nothing_is_weighed_where_scores_are_plenty_or_the_rule_is_for_cells() -> None:
    plenty = settle(settings_of(), FREE, (SiteFacts(300, 1.0),) * 50)
    assert (plenty.settings.mechanism, len(plenty.line), plenty.expected) == ("sparse-vector", FINE, None)
    assert taken(50, 20, 1.0, rule="paper") == "sparse-vector"


def test_edges_are_chosen_where_they_are_free_and_kept_where_they_are_given() -> None:
    facts = (SiteFacts(60, 4.0),) * 50
    assert len(settle(settings_of(), FREE, facts).line) in CELLS
    ten = check_grid(None, 10.0, 10, None)
    assert settle(settings_of(), ten, facts).line == tuple(ten.steps(None).tolist())
    given = check_grid(None, None, None, np.geomspace(0.01, 10.0, 90))
    counted = settle(settings_of("counts"), given, (SiteFacts(20, 1.0),) * 50).line
    assert len(counted) < 20
    assert set(counted) < set(given.edges)
    assert counted[-1] == given.edges[-1]


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "auto"])
def test_what_was_named_is_taken(mechanism: str) -> None:
    assert taken(50, 20, 1.0, mechanism=mechanism) == mechanism


def test_sites_without_a_budget_and_of_any_order_are_weighed_alike() -> None:
    facts = [SiteFacts(20, 1.0)] * 30 + [SiteFacts(40, 2.0)] * 10 + [SiteFacts(20, math.inf)]
    one, two = (settle(settings_of(), FREE, given) for given in (facts, facts[::-1]))
    assert one == two
    assert one.expected is not None
    assert one.expected.length > 1


def test_what_nobody_can_promise_is_said_before_anything_is_asked() -> None:
    sites = [np.arange(3.0)] * 2
    with pytest.raises(Infeasible, match=r"no finite set can .*; about [\d,]+ would do"):
        sv.conformal_threshold([each.copy() for each in sites], epsilon=0.1, maximum=10.0)


def test_a_plan_says_what_is_to_be_expected() -> None:
    source = sv.sim.dice(1).generator()
    scores = {f"site {i}": abs(source.normal(size=20)) for i in range(50)}
    said = " ".join(str(sv.explain(sv.conformal_threshold, scores, 0.1, epsilon=2.0, maximum=10.0)).split())
    assert "one noisy count of scores at or below one edge of a public grid" in said
    assert "times the quantile, if scores fall off exponentially" in said
    assert "mechanism 'counts'" in said


def test_a_plan_of_few_edges_knows_no_upper_end() -> None:
    scores = {f"s{i}": abs(sv.sim.dice(i).generator().normal(size=400)) for i in range(3)}
    for sites in (1, 3):
        given = {name: scores[name] for name in list(scores)[:sites]}
        plan = sv.explain(sv.conformal_threshold, given, epsilon=2.0, maximum=5.0, mechanism="counts")
        assert plan.widths[0].high == 1.0
        assert plan.widths[0].value > 0.09
