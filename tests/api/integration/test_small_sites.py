"""Small sources are left out, and a tiny target is helped as far as validity allows; both are said before."""

import json
import math
import re
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.api.integration import PlannedIntegration, plan_integrated
from sottovoce.sim.randomness import dice

DRAWS = dice(43).generator()
NORTH, FEW = DRAWS.normal(10.0, 2.0, 9000), DRAWS.normal(10.0, 2.0, 300)
TOLD = sv.SiteSummary(10.0, 0.5, n=100)


def test_sources_with_too_few_records_are_left_out_before_anything_is_asked() -> None:
    def planned(sources: dict[str, Any], epsilon: Any = 2.0, **options: Any) -> PlannedIntegration:
        plan = plan_integrated(options.pop("target", TOLD), sources, 0.5, epsilon, **options)
        assert [site.name for site in plan.plan.sources] == ["south"]
        assert [name for name, _ in plan.plan.small] == ["north"]
        return plan

    south = {"south": sv.SiteSummary(16.0, 0.5, n=100)}
    (said,) = planned({"north": FEW, **south}).warnings
    assert re.match("source 'north' is left out, not asked: .*needs about .* and there are 300: add records, or", said)
    (said,) = planned({"north": FEW[:7], **south}, math.inf, level=0.99).warnings
    assert "needs 8 records, and there are 7: add records" in said
    (said,) = planned({"north": NORTH, **south}, method="ivw", chains=91).warnings
    assert "91 chains need 9,100 records" in said
    bounds = {"north": 1.0, "south": 2.0}
    assert planned({"north": FEW, **south}, method="known-bound", bound=bounds).plan.settings.bound == {"south": 2.0}
    with pytest.warns(UserWarning, match="source 'north' is left out"):
        found = sv.integrated_quantile(TOLD, {"north": FEW, **south}, 0.5, 2.0)
    assert found.left_out == ("north",)
    assert found.weights["north"] == 0
    assert "source 'north' is left out" in found.warnings[0]
    assert found.reports == 0


@pytest.mark.filterwarnings("ignore:.*the .* quantile is barely supported:UserWarning")
def test_a_tiny_target_has_its_own_certified_interval_and_spends_no_source() -> None:
    with pytest.warns(UserWarning, match="the target has too few records to be helped: .* about [0-9,]+ records would"):
        found = sv.integrated_quantile(FEW, {"north": NORTH}, 0.5, 2.0, bounds=(0, 200), randomness=dice(3))
    assert found.epsilon.keys() == {"target"}
    assert found.reports <= 300
    assert found.left_out == ("north",)
    assert found.interval == found.target_interval
    assert 0 <= found.interval.low < found.interval.high <= 200
    again = type(found).from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert (again.interval, again.warnings) == (found.interval, found.warnings)
    assert "certified" in found.summary()
