"""The interval as a function of the assumed bound: what a result shows of it."""

import json
import math
import os
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration.sensitivity import curve
from sottovoce.server.integration.result import Sensitivity
from sottovoce.sim.randomness import dice

TARGET = sv.SiteSummary(10.0, 1.0, n=200)
NEAR = {"a": sv.SiteSummary(10.3, 0.3, n=900), "b": sv.SiteSummary(9.9, 0.5, n=400)}


def found(sources: Any = None, bounds: Any = None, **options: Any) -> Sensitivity:
    chosen = NEAR if sources is None else sources
    return sv.integrated_quantile(TARGET, chosen, 0.5, None, **options).sensitivity(bounds)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_the_longer_the_bound_the_longer_the_interval(level: float) -> None:
    shown = found(level=level)
    assert shown.bound[0] == 0
    assert np.all(np.diff(shown.bound) > 0)
    assert np.all(np.diff(shown.length_ratio) > -1e-9)
    assert np.all(shown.low < shown.high)
    assert shown.length_ratio[0] < 0.4
    assert [len(column) for column in shown.columns.values()] == [len(shown.bound)] * 4
    assert list(shown.columns) == ["bound", "low", "high", "length_ratio"]
    assert 0.98 < shown.length_ratio[-1] <= 1
    assert shown.length_ratio == pytest.approx((shown.high - shown.low) / np.diff(TARGET.measured().interval(level))[0])


def test_each_point_is_the_interval_under_that_known_bound() -> None:
    shown = found()
    for i in (0, 5, 40):
        bound = float(shown.bound[i])
        known = sv.integrated_quantile(TARGET, NEAR, 0.5, None, method="known-bound", bound=bound)
        assert tuple(shown.interval_at(bound)) == pytest.approx(tuple(known.interval), rel=1e-12)
        assert (shown.low[i], shown.high[i]) == pytest.approx(tuple(known.interval), rel=1e-7)
    assert tuple(shown.interval_at(math.inf)) == pytest.approx(TARGET.measured().interval(0.95))


def test_where_the_gain_is_lost() -> None:
    shown = found()
    own = np.diff(shown.interval_at(math.inf))[0]
    gains = [1 - np.diff(shown.interval_at(shown.lost * share))[0] / own for share in (0.9, 1, 1.1)]
    assert gains[1] == pytest.approx(0.05, abs=1e-6)
    assert gains[0] > 0.05 > gains[2]
    assert shown.lost in shown.bound


def test_bounds_refuted_by_the_data() -> None:
    assert found().refuted == 0
    far = found({"a": sv.SiteSummary(16.0, 0.3, n=900), "b": sv.SiteSummary(10.0, 0.3)})
    assert 3.0 < far.refuted < 6.0
    assert far.refuted in far.bound
    marked = [row.endswith("refuted by the data") for row in far.table(len(far.bound)).splitlines()]
    assert sum(marked) == np.count_nonzero(far.bound < far.refuted) > 0
    assert f"Bounds below {far.refuted:.6g} are refuted" in " ".join(str(far).split())
    assert "refuted" not in str(found())


def test_the_sentence_about_choosing_beforehand_is_always_there() -> None:
    shown = found()
    assert "chosen before the data were seen" in shown.note
    assert " ".join(str(shown).split()).endswith(shown.note)
    assert shown.to_dict()["note"] == shown.note
    assert len(shown.table(5).splitlines()) == len(shown.table(3).splitlines()) + 2


def test_strict_json() -> None:
    for shown in (found(), found(bounds=[0.0, math.inf]), found({"a": sv.SiteSummary(1e9, 1e-3)})):
        told = json.loads(json.dumps(shown.to_dict(), allow_nan=False))
        assert len(told["bound"]) == len(told["low"]) == len(told["high"]) == len(told["length_ratio"])
        assert told["level"] == 0.95


def test_bounds_of_ones_own() -> None:
    shown = found(bounds=(2.0, 0.5, 1))
    assert shown.bound.tolist() == [0.5, 1.0, 2.0]
    assert found(bounds=np.array([0.25])).length_ratio.shape == (1,)
    assert str(found(bounds=[1e308])).splitlines()[1].endswith("1.000")


@pytest.mark.parametrize("bounds", [5.0, "1", b"1", [], [math.nan], [-1.0], ["wide"], [None], [[1.0]]])
def test_bounds_that_are_none(bounds: Any) -> None:
    with pytest.raises(BadInput, match="bound"):
        found(bounds=bounds)


@pytest.mark.parametrize("bound", [-1.0, math.nan, "wide", None, [1.0]])
def test_one_bound_that_is_none(bound: Any) -> None:
    with pytest.raises(BadInput, match="bound"):
        found(bounds=[1.0]).interval_at(bound)


def test_sources_without_a_trusted_error_have_no_part_in_it() -> None:
    doubtful = {"c": {"estimate": 99.0, "trusted": False}}
    assert found({**NEAR, **doubtful}, [0.5]).describe().values == found(bounds=[0.5]).describe().values
    for sources in ({}, doubtful, {"few": sv.SiteSummary(10.0, 0.1, n=3)}):
        with pytest.raises(BadInput, match="no source with a standard error"):
            found(sources)


@pytest.mark.parametrize("method", ["valid", "conservative", "known-bound", "ivw"])
def test_it_does_not_depend_on_the_method(method: str) -> None:
    options: dict[str, Any] = {"method": method, "bound": 1.0} if method == "known-bound" else {"method": method}
    assert found(bounds=[0.5], **options).describe().values == found(bounds=[0.5]).describe().values


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="a whole study takes long uncompiled")
def test_sites_of_one_private_design_share_a_bias_that_no_bound_removes() -> None:
    draws = dice(1).generator()
    clinics = {name: draws.gamma(2.0, 10.0, 9000) for name in ("ours", "north")}
    private = sv.integrated_quantile("ours", clinics, 0.5, 2.0, randomness=dice(2))
    shown = private.sensitivity([0.0])
    target, source = (site.measured for site in private.known)
    apart = curve(target, [source], 0.95, [0.0], common=False)
    assert apart.length_ratio[0] < shown.length_ratio[0] < 1


def test_a_precise_source_that_leaves_suddenly_is_not_overlooked() -> None:
    # few degrees of freedom of the target make two valleys, the second a thousandth of the way wide
    target, sources = SiteEstimate(0.0, 1.0, 4.0), [SiteEstimate(0.0, 0.0291, 30.0), SiteEstimate(0.0, 516.0, 30.0)]
    shown = curve(target, sources, 0.95, np.linspace(0.0, 4.0, 41), common=[True, False])
    assert np.all(np.diff(shown.length_ratio) > -1e-6)
    assert np.all(shown.length_ratio <= 1)
    alone = curve(target, sources[:1], 0.95, shown.bound, common=[True])
    assert np.all(shown.length_ratio <= alone.length_ratio + 1e-6)
