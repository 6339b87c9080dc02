"""What a result says of itself is true: bounds, rounding, privacy, and who was asked."""

import math
import os

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.inference.integration.known_bound import ALLOWANCE
from sottovoce.server.integration.combine import common, effective
from sottovoce.sim import dice

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)
G = dice(5).generator()
OURS, NORTH, SOUTH = (G.gamma(2.0, 10.0, n) for n in (6000, 9000, 8000))


@compiled
def test_private_sources_share_their_bias_whatever_the_target_is() -> None:
    epsilon = {"ours": math.inf, "north": 2.0, "south": math.inf}
    sites = {"ours": OURS, "north": NORTH, "south": SOUTH}
    result = sv.integrated_quantile("ours", sites, 0.5, epsilon, method="known-bound", bound=0.0, randomness=dice(1))
    assert [site.kind for site in result.known] == ["open", "private", "open"]
    assert common(result.sources) == [True, False]
    curve = result.sensitivity()
    weights = dict(result.weights)
    found = curve.curve.at(0.0)
    assert found.bias == pytest.approx(weights["north"] * ALLOWANCE * result.sources[0].measured.std_error)


@compiled
def test_a_summary_target_is_not_rounded_to_the_step_of_others() -> None:
    salaries = np.round(G.normal(47_300, 9000, 9000), -3)
    target = sv.SiteSummary(47_300.0, 20.0)
    result = sv.integrated_quantile(target, {"n": salaries}, 0.5, 2.0, resolution=1000, randomness=dice(2))
    assert result.resolution == 0.0
    assert result.interval.low < 47_300 < result.interval.high
    assert result.interval.high - result.interval.low < 90


def test_half_a_step_is_added_to_the_bound_between_a_summary_and_dithered_records() -> None:
    salaries = np.round(G.normal(47_300, 9000, 900), -3)
    told = {"told": sv.SiteSummary(47_000.0, 5.0)}
    coarse = sv.integrated_quantile(
        salaries, told, 0.5, math.inf, resolution=1000, method="known-bound", bound=100.0, randomness=dice(2)
    )
    assert coarse.settings.slack == 500.0
    assert coarse.combination.high - coarse.combination.low > 2 * 500 * coarse.weights["told"]
    assert coarse.settings.bound == {"told": 100.0}


@compiled
def test_the_promise_names_seeds_and_summaries() -> None:
    sites = {"ours": OURS, "south": SOUTH, "told": sv.SiteSummary(17.0, 0.3)}
    epsilon = {"ours": 2.0, "south": math.inf}
    seeded = sv.integrated_quantile("ours", sites, 0.5, epsilon, randomness=dice(2))
    assert "Not so at south" in seeded.promise
    assert "simulation and protects nobody" in seeded.promise
    assert "Nothing is said of told" in seeded.promise
    real = sv.integrated_quantile("ours", sites, 0.5, epsilon)
    assert "simulation" not in real.promise
    assert not real.private


@compiled
@pytest.mark.parametrize("method", ["target", "known-bound"])
def test_who_cannot_count_is_not_asked(method: str) -> None:
    bound = math.inf if method == "known-bound" else None
    result = sv.integrated_quantile(
        {"ours": OURS}, {"north": NORTH}, 0.5, 2.0, method=method, bound=bound, randomness=dice(2)
    )
    assert result.reports <= len(OURS)
    assert result.idle == ("north",)
    assert dict(result.weights) == {"ours": 1.0, "north": 0.0}
    assert set(result.epsilon) == {"ours"}


def test_one_summary_given_twice_is_one_site() -> None:
    told = sv.SiteSummary(1.0, 1.0)
    with pytest.raises(sv.BadInput, match="the target's records are among the sources"):
        sv.integrated_quantile(told, [told], 0.5, None)


def test_zones_are_not_mixed() -> None:
    moments = pd.date_range("2024-01-01", periods=3000, freq="min")
    zoned = pd.DataFrame({"x": moments.tz_localize("Europe/Berlin"), "site": "berlin"})
    naive = pd.DataFrame({"x": moments, "site": "nowhere"})
    tables = [sv.read_frame(frame, value="x", site="site") for frame in (zoned, naive)]
    with pytest.raises(sv.BadInput):
        sv.integrated_quantile(tables[0], tables[1], 0.5, math.inf)


@pytest.mark.parametrize("known", [{"df": 4.0}, {"n": 5}])
def test_a_published_interval_comes_out_again(known: dict[str, float]) -> None:
    summary = sv.SiteSummary(0.0, interval=(-2.776, 2.776), **known)  # type: ignore[arg-type]
    assert summary.measured().interval(0.95) == pytest.approx((-2.776, 2.776), abs=1e-3)


def test_the_curve_of_an_open_target_ends_at_the_length_of_its_own_interval() -> None:
    skew = np.exp(G.normal(size=100))
    result = sv.integrated_quantile(skew, {"told": sv.SiteSummary(1.0, 0.2)}, 0.5, math.inf, level=0.8)
    own = result.target.high - result.target.low
    low, high = effective(result.target, 0.8).interval(0.8)
    assert high - low == pytest.approx(own)
    curve = result.sensitivity([1e6])
    assert curve.high[0] - curve.low[0] == pytest.approx(own)


@compiled
def test_the_error_of_a_site_does_not_depend_on_the_level_asked() -> None:
    errors = {
        level: sv.integrated_quantile(OURS, {}, 0.5, 4.0, level=level, randomness=dice(3)).target.measured.std_error
        for level in (0.8, 0.95, 0.99)
    }
    assert len(set(errors.values())) == 1


def test_a_whole_number_names_a_target() -> None:
    sites = {3: OURS, 4: SOUTH}
    assert sv.integrated_quantile(3, sites, 0.5, math.inf).target.name == "3"


@compiled
def test_the_same_reports_by_another_method() -> None:
    sites = {"ours": OURS, "north": NORTH, "told": sv.SiteSummary(17.0, 0.3)}
    first = sv.integrated_quantile("ours", sites, 0.5, 3.0, randomness=dice(4))
    for method in ("conservative", "known-bound", "ivw", "valid"):
        bound = 1.0 if method == "known-bound" else None
        again = first.by_method(method, bound=bound)
        assert again.known is first.known
        assert (again.method, again.reports) == (method, first.reports)
    asked = sv.integrated_quantile("ours", sites, 0.5, 3.0, method="known-bound", bound=1.0, randomness=dice(4))
    assert first.by_method("known-bound", bound=1.0).interval == asked.interval
    assert first.by_method("valid").interval == first.interval
    with pytest.raises(sv.BadInput, match="needs bound="):
        first.by_method("known-bound")
    with pytest.raises(sv.BadInput, match="says nothing of source 'told'"):
        first.by_method("known-bound", bound={"north": 1.0})
    with pytest.raises(sv.BadInput, match="number of records of 'told'"):
        first.by_method("decay")
    chained = sv.integrated_quantile("ours", sites, 0.5, 3.0, method="ivw", randomness=dice(4))
    assert chained.by_method("target").weights["ours"] == 1.0
    with pytest.raises(sv.BadInput, match="chains belong to the paper's methods"):
        chained.by_method("valid")


@pytest.mark.parametrize(
    ("options", "match"),
    [({"epsilon": "foo"}, "epsilon must be a number"), ({"epsilon": -1.0}, "positive"), ({"resolution": 3}, "records")],
)
def test_summaries_alone_are_checked_too(options: dict[str, object], match: str) -> None:
    told = {"target": sv.SiteSummary(1.0, 1.0), "sources": [sv.SiteSummary(1.2, 0.5)], "tau": 0.5, "epsilon": None}
    with pytest.raises(sv.BadInput, match=match):
        sv.integrated_quantile(**{**told, **options})  # type: ignore[arg-type]
