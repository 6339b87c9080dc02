"""The report on coverage by site: counts, verdicts, mixture, expectation and spread; private, or plainly not."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import sottovoce as sv
from sottovoce.api.conformal.report import coverage_report
from sottovoce.api.conformal.threshold import conformal_threshold
from sottovoce.client.reading.table import read_sites
from sottovoce.core.errors import BadInput
from sottovoce.inference import conformal as inference
from sottovoce.server.conformal.coverage.equal import moments
from sottovoce.server.conformal.report import OPEN
from sottovoce.server.conformal.summary import FLATTERED
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]


class Choice(NamedTuple):
    """The rank that was chosen."""

    rank: int


class Made(NamedTuple):
    """A threshold as the report sees it."""

    value: float
    alpha: float
    coverage: float
    epsilon: Mapping[str, float] | None
    orders: Mapping[str, tuple[int, ...]]
    votes: Mapping[str, int]
    sizes: Mapping[str, int]
    choice: Choice
    chance: float = 1.0


def made(names: list[str], value: float, n: int = 100, order: int = 92, rank: int = 4, **other: Any) -> Made:
    coverage = float(moments(len(names), n, order, rank)[0][0])
    known: dict[str, Any] = {
        "orders": dict.fromkeys(names, (order,)),
        "votes": dict.fromkeys(names, 1),
        "sizes": dict.fromkeys(names, n),
    }
    return Made(value, 0.1, coverage, choice=Choice(rank), epsilon=None, **known)._replace(**other)


def grid(n: int, scale: float = 1.0) -> Floats:
    """Return scores spread evenly over 0 to a scale."""
    return scale * (np.arange(n) + 0.5) / n


SITES = {"good": grid(400), "bad": grid(400, 1.3), "small": grid(20, 1.05)}


def test_sites_are_counted_and_the_worst_comes_first() -> None:
    report = coverage_report(0.9, SITES, alpha=0.1)
    assert [site.name for site in report.sites] == ["bad", "small", "good"]
    for site in report.sites:
        assert site.n == len(SITES[site.name])
        assert site.covered == int(np.sum(SITES[site.name] <= 0.9))
        assert site.coverage == site.covered / site.n
        assert (site.low, site.high) == inference.exact_limits(site.covered, site.n, 0.95)
        assert site.p_value == inference.exact_at_most(site.covered, site.n, 0.9)
    assert report.worst is report.sites[0]
    assert report.below == ("bad",)
    assert (report.value, report.alpha, report.target, report.level) == (0.9, 0.1, 0.9, 0.95)


def test_marks_allow_for_the_number_of_sites() -> None:
    # alone, 85 of 100 misses 0.9 no more than chance lets it; 83 does, but not as one of a hundred sites
    for covered, number, marked in ((85, 1, 0), (83, 1, 1), (83, 100, 0), (75, 100, 100)):
        scores = [np.where(np.arange(100) < covered, 0.0, 2.0) + place / 1000 for place in range(number)]
        report = coverage_report(1.0, scores, alpha=0.1)
        assert len(report.below) == marked
        assert all(site.high < 0.9 for site in report.sites if site.below)
    assert report.error == pytest.approx(0.025)


@pytest.mark.parametrize("covered", range(70, 95))
def test_alone_a_site_is_marked_if_its_interval_lies_below(covered: int) -> None:
    scores = [np.where(np.arange(100) < covered, 0.0, 2.0)]
    [site] = coverage_report(1.0, scores, alpha=0.1).sites
    assert site.below is (site.high < 0.9)


def test_the_mixture_has_stated_weights() -> None:
    counts = [360, 277, 17]
    for weights, parts in (
        ("sites", [1 / 3] * 3),
        ("records", [400 / 820, 400 / 820, 20 / 820]),
        ({"good": 0.5, "bad": 0.5, "small": 0}, [0.5, 0.5, 0.0]),
    ):
        report = coverage_report(0.9, SITES, alpha=0.1, weights=weights, level=0.9)
        means = [count / n for count, n in zip(counts, (400, 400, 20), strict=True)]
        assert report.mixture.estimate == pytest.approx(np.dot(parts, means))
        assert report.mixture[1:3] == pytest.approx(
            inference.mixture_limits(counts, (400, 400, 20), parts, 0.9, (0, 0, 0)), rel=1e-9
        )
        assert list(report.weights.values()) == pytest.approx(parts)
        assert report.mixture.weights == (weights if isinstance(weights, str) else "given")


def test_expectation_is_the_promise_where_sites_are_alike() -> None:
    names = [f"site {i}" for i in range(1, 11)]
    threshold = made(names, 0.9)
    # shifted so that no two scores are tied
    report = coverage_report(threshold, [grid(2000) + i * 1e-7 for i in range(10)])
    assert report.homogeneous == threshold.coverage
    assert report.predicted is not None
    assert report.predicted.mixture == pytest.approx(threshold.coverage, abs=2e-5)
    assert list(report.predicted.sites.values()) == pytest.approx([threshold.coverage] * 10, abs=3e-4)


def test_expectation_follows_the_sites_where_they_differ() -> None:
    # one of ten sites has scores twice as large: votes outvote it, and it keeps about half the coverage
    names = [f"site {i}" for i in range(1, 11)]
    scores = [grid(2000, 2.0 if i == 0 else 1.0) + i * 1e-7 for i in range(10)]
    report = coverage_report(made(names, 0.9), scores, weights="records")
    assert report.predicted is not None
    assert report.predicted.sites["site 1"] == pytest.approx(0.455, abs=0.01)
    assert report.predicted.sites["site 2"] == pytest.approx(0.91, abs=0.01)
    assert report.predicted.mixture == pytest.approx(np.mean(list(report.predicted.sites.values())))
    assert report.worst.name == "site 1"


def test_a_rank_that_was_drawn_is_expected_as_often_as_drawn() -> None:
    threshold = made(list(SITES), 0.9, rank=2)
    found = []
    for each in (
        threshold,
        threshold._replace(choice=Choice(1)),
        threshold._replace(chance=0.25),
        threshold._replace(choice=Choice(1), chance=0.5),
    ):
        expected = coverage_report(each, SITES).predicted
        assert expected is not None
        found.append(expected.mixture)
    assert found[2] == pytest.approx(0.25 * found[0] + 0.75 * found[1])
    assert found[3] == pytest.approx(found[1] / 2)  # rank 0 covers nothing


def test_a_threshold_reports_on_itself() -> None:
    draw = sv.sim.dice(4).generator()
    sizes = (40, 90, 200)
    scores = {f"site {n}": np.abs(draw.standard_normal(n)) for n in sizes}
    fresh = {f"site {n}": np.abs(draw.standard_normal(5000)) for n in sizes}
    for statistics in (1, 3):
        threshold = conformal_threshold(scores, 0.1, statistics=statistics)
        report = threshold.coverage_by_site(fresh, weights="records", level=0.9)
        assert report.homogeneous == threshold.coverage
        assert report.predicted is not None
        # the laws of 5,000 fresh scores differ from the common one by about 0.004 at the threshold
        assert report.predicted.mixture == pytest.approx(threshold.coverage, abs=0.02)
        assert report.mixture.weights == "records"
    private = conformal_threshold(scores, 0.1, epsilon=5.0, maximum=4.0, randomness=sv.sim.dice(1))
    assert "made with noise" in str(private.coverage_by_site(fresh).unpredicted)


def test_a_site_that_did_not_vote_is_expected_too() -> None:
    report = coverage_report(made(["good", "bad"], 0.9, rank=1), SITES)
    assert report.predicted is not None
    assert set(report.predicted.sites) == set(SITES)


@pytest.mark.parametrize(
    ("threshold", "options", "why"),
    [
        (0.9, {"alpha": 0.1}, "plain number"),
        (made(["good", "bad", "other"], 0.9, rank=2), {}, "site 'other' took part"),
        (made(["good", "bad", "small"], 0.9, rank=2, epsilon={}), {}, "made with noise"),
        (made(["good", "bad", "small"], 0.9, rank=2), {"epsilon": 1.0}, "noisy count"),
    ],
    ids=["plain", "absent", "private", "noisy"],
)
def test_what_cannot_be_expected_says_why(threshold: Any, options: dict[str, Any], why: str) -> None:
    report = coverage_report(threshold, SITES, **options)
    assert report.predicted is None
    assert why in str(report.unpredicted)
    assert report.to_dict()["predicted"] is None


def test_own_quantiles_are_order_statistics() -> None:
    spread = coverage_report(0.9, SITES, alpha=0.1).spread
    assert spread is not None
    assert spread.sites == {name: np.sort(scores)[math.ceil(0.9 * len(scores)) - 1] for name, scores in SITES.items()}
    assert (spread.least, spread.median, spread.largest) == tuple(np.sort(list(spread.sites.values())))


def test_a_private_report_is_made_of_noisy_counts_alone() -> None:
    report = coverage_report(made(list(SITES), 0.9, rank=2), SITES, epsilon={"good": 1, "bad": 0.5, "small": 2.0})
    assert report.private
    assert report.spread is None
    assert report.epsilon is not None
    assert report.epsilon == pytest.approx({"good": 1.0, "bad": 0.5, "small": 2.0})
    for site in report.sites:
        fall = math.exp(-report.epsilon[site.name])
        assert (site.low, site.high) == pytest.approx(inference.limits(site.covered, site.n, 0.95, fall))
        assert abs(site.covered - np.sum(SITES[site.name] <= 0.9)) < 60  # odds beyond: below 1e-12
        assert 0 <= site.coverage <= 1
    assert "epsilon 2" in report.promise
    assert "simulation" not in report.promise


def test_seeded_noise_repeats_and_is_not_private() -> None:
    one, two, three = (
        coverage_report(0.9, SITES, alpha=0.1, epsilon=0.1, randomness=sv.sim.dice(s)) for s in (1, 1, 2)
    )
    assert one == two != three
    assert not one.private
    assert "simulation and protects nobody" in one.promise


def test_a_report_without_budget_says_what_it_shows() -> None:
    assert coverage_report(0.9, SITES, alpha=0.1).caveats == (FLATTERED, OPEN)
    private = coverage_report(made(list(SITES), 0.9, rank=2, epsilon={"good": 1.0}), SITES)
    assert not private.private
    assert private.promise == f"{OPEN} That the threshold is private does not make it so."


def test_plain_values_are_strict_json() -> None:
    for epsilon in (None, 1.0):
        report = coverage_report(made(list(SITES), math.inf, rank=2), SITES, epsilon=epsilon)
        values = json.loads(json.dumps(report.to_dict(), allow_nan=False))
        assert values["threshold"] is None
        assert [row["name"] for row in values["sites"]] == [site.name for site in report.sites]
        assert values["worst"] == report.worst.name
        assert values["mixture"]["weights"] == "sites"
        assert (values["spread"] is None) == (epsilon is not None)
        assert values["caveats"] == list(report.caveats)


def test_scores_are_hidden_but_for_the_quantiles_of_the_open_report() -> None:
    secret = 123456.789012
    scores = {name: np.append(values, [secret, secret + 1]) for name, values in SITES.items()}
    threshold = made(list(SITES), 0.9, rank=2)
    for report in (coverage_report(threshold, scores), coverage_report(threshold, scores, epsilon=1.0)):
        shown = repr(report) + str(report) + json.dumps(report.to_dict()) + repr(vars(report))
        assert "123456" not in shown
        assert "spread" not in repr(report)
    assert str(np.sort(scores["bad"])[361]) not in str(coverage_report(threshold, scores, epsilon=1.0).to_dict())


def test_tables_and_missing_values_are_taken() -> None:
    table = read_sites(SITES)
    assert coverage_report(0.9, table, alpha=0.1) == coverage_report(0.9, SITES, alpha=0.1)
    gone = {**SITES, "good": np.append(SITES["good"], np.nan)}
    report = coverage_report(0.9, gone, alpha=0.1, missing="drop")
    assert report.dropped == 1
    assert {site.name: site.n for site in report.sites}["good"] == 400


@pytest.mark.parametrize(
    ("threshold", "options", "said"),
    [
        (0.9, {}, "give alpha"),
        (0.9, {"alpha": 1.0}, "alpha must lie strictly between 0 and 1"),
        ("high", {"alpha": 0.1}, "threshold must be a number"),
        (math.nan, {"alpha": 0.1}, "threshold must be a number, not nan"),
        (made(["good"], 0.9, rank=1), {"alpha": 0.2}, "alpha 0.2 is not that of the threshold"),
        (0.9, {"alpha": 0.1, "level": 1.0}, "level must lie strictly"),
        (0.9, {"alpha": 0.1, "weights": "equal"}, "weights must be 'sites', 'records' or a mapping"),
        (0.9, {"alpha": 0.1, "weights": {"good": 1.0}}, "weights says nothing of site 'bad'"),
        (0.9, {"alpha": 0.1, "weights": {"good": 1, "bad": 1, "small": 1}}, "sum to 3, not to 1"),
        (0.9, {"alpha": 0.1, "weights": {"good": 2, "bad": -1, "small": 0}}, "weight of site 'bad'"),
        (0.9, {"alpha": 0.1, "epsilon": 0}, "epsilon 0.0 makes no noisy count"),
        (0.9, {"alpha": 0.1, "epsilon": {"good": 1, "bad": math.inf, "small": 1}}, "epsilon of site 'bad' inf makes"),
        (0.9, {"alpha": 0.1, "epsilon": "1"}, "epsilon must be a number"),
        (0.9, {"alpha": 0.1, "epsilon": 1.0, "randomness": 7}, "randomness must be None or sim.dice"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(threshold: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        coverage_report(threshold, SITES, **options)
    assert str(caught.value).endswith(".")


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(BadInput, match="scores must be numbers, not dates"):
        coverage_report(0.9, {"a": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")}, alpha=0.1)
    with pytest.raises(BadInput, match="infinite number in row 2"):
        coverage_report(0.9, {"a": [0.1, math.inf]}, alpha=0.1)


def test_a_site_agrees_to_every_budget_that_can_be_stated() -> None:
    scores = {name: dice(k).generator().exponential(1.0, 50) for k, name in enumerate("ab")}
    for epsilon in (*range(1, 60), 75, 99.5, 100):
        report = sv.coverage_report(2.0, scores, alpha=0.1, epsilon=epsilon, randomness=dice(1))
        assert report.epsilon is not None
        assert max(report.epsilon.values()) <= epsilon + 1e-12
