"""The summary of a helped quantile holds everything a reader needs, within a page's width."""

import dataclasses
import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.unit import Unit
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration.weighted import REASONS
from sottovoce.server.description import WIDTH
from sottovoce.server.integration.combine import KnownSite, LostSite
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.server.integration.summary import against_own, validity, width_text

LONG = "a site whose name is much longer than the column"
TOLD = {
    "ours": sv.SiteSummary(17.0, 0.3, n=900),
    "north": sv.SiteSummary(16.9, 0.2, n=4_000),
    "south": sv.SiteSummary(17.1, 0.2),
}


def told(target: str = "ours", sites: object = TOLD, **options: object) -> IntegratedResult:
    return sv.integrated_quantile(target, sites, 0.5, 1.0, **options)  # type: ignore[arg-type]


def flat(result: IntegratedResult) -> str:
    text = result.summary()
    assert max(map(len, text.splitlines())) <= WIDTH
    return " ".join(text.split())


def of(result: IntegratedResult, *known: KnownSite, **others: object) -> IntegratedResult:
    return dataclasses.replace(result, known=known, **others)  # type: ignore[arg-type]


def site(name: str, kind: str, place: float, half: float, epsilon: float | None, records: int) -> KnownSite:
    return KnownSite(
        name, kind, SiteEstimate(place, half / 1.96), place - half, place + half, epsilon, records, records, 30
    )


def test_everything_is_told() -> None:
    result = told(level=0.9)
    text = flat(result)
    assert str(result) == result.summary()
    for part in (
        "One site helped by others, tau = 0.5",
        result.estimand,
        f"Estimate: {result.format(result.estimate)}",
        f"0.9 interval: [{result.format(result.interval.low)}, {result.format(result.interval.high)}]",
        f"({100 * (1 - result.length_ratio):.1f} % shorter than its own)",
        f"Target's own: [{result.format(result.target.low)}, {result.format(result.target.high)}]",
        "Method: valid: covers whatever the sources' differences",
        "Private: no record was read",
        f"Promise: {result.promise}",
    ):
        assert part in text
    assert "Left out" not in text
    assert "Warning" not in text


def test_each_site_has_role_kind_records_budget_interval_and_weight() -> None:
    known = (site("ours", "private", 17.0, 0.5, 0.5, 20_000), site("open one", "open", 17.1, 0.25, math.inf, 1_234))
    result = of(told(), *known, private=False)
    lines = result.summary().splitlines()
    target, first, sources, second = lines[lines.index("target") : lines.index("target") + 4]
    assert (target, sources) == ("target", "sources")
    weights = result.weights
    assert " ".join(first.split()) == f"ours private 20,000 0.5 17.0 [16.5, 17.5] {weights['ours']:.3f}"
    assert " ".join(second.split()) == f"open one open 1,234 inf 17.10 [16.85, 17.35] {weights['open one']:.3f}"
    assert "Asked: 30 rounds, 21,234 reports" in flat(result)
    assert "Private: no (simulation, or no budget at some site)" in flat(result)


def test_a_long_name_keeps_its_beginning_and_intervals_go_below() -> None:
    known = [site(f"{LONG} {i}", "private", 17.0 + i / 10, 0.5, 0.5, 20_000) for i in range(3)]
    text = of(told(), *known).summary()
    assert sum("a site whose name is much" in line and "…" in line for line in text.splitlines()) == 3
    assert "[16.5, 17.5]" in [line.strip() for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_target_alone_is_called_so() -> None:
    text = flat(told("ours", {"ours": TOLD["ours"]}))
    assert "One site alone" in text
    assert " sources " not in text.partition("----")[2].partition("Promise")[0]


@pytest.mark.parametrize("method", REASONS)
def test_a_method_that_is_not_valid_says_so_once(method: str) -> None:
    known = {name: dataclasses.replace(summary, n=400) for name, summary in TOLD.items()}
    result = told("ours", known, method=method)
    text = flat(result)
    assert f"Method: {method} (printed variance, z" in text
    assert text.count("ot uniformly valid") == 1
    assert validity(result) in text


def test_a_known_bound_is_told_with_its_condition() -> None:
    text = flat(told(method="known-bound", bound=0.25))
    assert "known-bound: valid if every source differs from the target by at most its bound" in text
    assert "Bound: 0.25, for every source" in text
    text = flat(told(method="known-bound", bound={"north": 0.25, "south": 1}))
    assert "Bound: north 0.25, south 1" in text


def test_a_contradicted_bound_is_a_warning() -> None:
    far = {**TOLD, "north": sv.SiteSummary(30.0, 0.2)}
    assert "Warning: the bound of source 'north' is contradicted" in flat(
        told("ours", far, method="known-bound", bound=1)
    )


def test_sources_left_out_are_named() -> None:
    unknown = {**TOLD, "few": sv.SiteSummary(17.0, 0.2, n=3)}
    result = dataclasses.replace(told("ours", unknown), lost=(LostSite("astray", 1.0, 900, True),))
    text = flat(result)
    assert "Left out: few, astray (2 of 4 sources)" in text
    assert "source 'few' is left out" in text
    [row] = [line for line in result.summary().splitlines() if line.startswith("  few")]
    assert row.endswith("left out")


def test_a_source_without_an_error_has_no_interval() -> None:
    text = told("ours", {**TOLD, "doubtful": sv.SiteSummary(17.2, trusted=False)}).summary()
    [row] = [line for line in text.splitlines() if line.startswith("  doubtful")]
    assert row.split()[1:4] == ["summary", "17.2", "none"]


def test_hints_are_for_the_holder_of_the_records() -> None:
    hinted = dataclasses.replace(told(), hints=("look at ties",))
    assert hinted.hints == ("look at ties",)
    assert "ties" not in flat(hinted) + repr(hinted) + hinted._repr_html_()


def test_lengths_are_compared_in_words() -> None:
    result = told(method="target")
    assert against_own(told("ours", {"ours": TOLD["ours"]})) == "as long as its own"
    for half, said in ((10.0, "shorter"), (0.1, "longer")):
        own = dataclasses.replace(result.target, low=17.0 - half, high=17.0 + half)
        helped = of(result, own, *result.known[1:])
        assert against_own(helped) == f"{100 * abs(1 - helped.length_ratio):.1f} % {said} than its own"
    endless = dataclasses.replace(result.target, high=math.inf)
    assert against_own(of(result, endless, *result.known[1:])) == "its own is unbounded"


def test_dates_and_durations_stay_within_the_page() -> None:
    days = np.datetime64("2013-05-01") + np.arange(-4000, 4000) // 20
    columns = {"ours": days, LONG: days + 1}
    dice = sv.sim.dice(4)
    result = sv.integrated_quantile(
        "ours", columns, 0.5, math.inf, method="known-bound", bound="3 days", randomness=dice
    )
    text = flat(result)
    assert "Estimate: 2013-0" in text
    assert "Bound: 3 days, for every source" in text
    assert "Resolution: 1 day; the interval covers the rounded value" in text
    moments = dataclasses.replace(result, unit=Unit("datetime", "s", "+02:00"), resolution=0.0)
    assert "+02:00" in flat(moments)


def test_widths_are_written_in_their_unit() -> None:
    assert [width_text(Unit("date", "D"), width) for width in (1.0, 2.5, math.inf)] == ["1 day", "2.5 days", "inf"]
    assert width_text(Unit("duration", "s"), 90.0) == "1 min 30 s"
    assert width_text(Unit("number"), 1234567.0) == "1,234,567"
