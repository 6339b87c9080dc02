"""The table of a coverage report holds everything, worst site first, within a page's width."""

import dataclasses

import numpy as np

import sottovoce as sv
from sottovoce.api.conformal.report import coverage_report
from sottovoce.server.conformal.report import CoverageReport, Prediction
from sottovoce.server.conformal.summary import FLATTERED, ROWS
from sottovoce.server.description import WIDTH

LONG = "a hospital whose name is much longer than the column"


def report(number: int = 3, **options: object) -> CoverageReport:
    """Return a report on sites of which the first has scores half as large again."""
    sites = {
        f"site {i}": (1.5 if i == 1 else 1.0) * (np.arange(200) + 0.5) / 200 + i / 1e6 for i in range(1, number + 1)
    }
    return coverage_report(0.9, sites, alpha=0.1, **options)  # type: ignore[arg-type]


def expecting(found: CoverageReport) -> CoverageReport:
    expected = Prediction(0.8123, {site.name: 0.7654 for site in found.sites})
    return dataclasses.replace(found, homogeneous=0.9023, predicted=expected)


def flat(found: CoverageReport) -> str:
    text = found.summary()
    assert max(map(len, text.splitlines())) <= WIDTH
    return " ".join(text.split())


def test_everything_is_told() -> None:
    found = expecting(report())
    text = flat(found)
    assert str(found) == found.summary()
    mixture, worst = found.mixture, found.worst
    for part in (
        "Coverage by site, target 0.9",
        "Threshold: 0.9",
        f"Mixture: {mixture.estimate:.4f} [{mixture.low:.4f}, {mixture.high:.4f}] (sites count alike; 0.95 guaranteed)",
        "Promised: 0.9023, on average over calibrations, if all sites had one distribution",
        "Expected: 0.8123, likewise, under the distributions the sites do have",
        f"Worst: site 1: {worst.coverage:.4f} [{worst.low:.4f}, {worst.high:.4f}]",
        "Below: 1 of 3 sites (marked *) is below 0.9 beyond chance: one or more wrongly so with probability 0.025",
        "Own 0.9: quantiles from 0.897502 to 1.34625, median 0.897503",
        f"Caution: {FLATTERED}",
        f"Caution: {found.promise}",
    ):
        assert part in text


def test_each_site_has_a_line_and_the_worst_is_first() -> None:
    found = expecting(report())
    lines = found.summary().splitlines()
    [head] = [place for place, line in enumerate(lines) if line.startswith("site ") and "scores" in line]
    assert lines[head].split() == [
        "site",
        "scores",
        "covered",
        "coverage",
        "0.95",
        "interval",
        "expected",
        "own",
        "0.9",
    ]
    rows = [" ".join(line.split()) for line in lines[head + 2 : head + 5]]
    for row, site, own in zip(rows, found.sites, ("1.346", "0.8975", "0.8975"), strict=True):
        mark = "*" if site.below else ""
        assert row == (
            f"{site.name} 200 {site.covered} {site.coverage:.4f}{mark} [{site.low:.4f}, {site.high:.4f}] 0.7654 {own}"
        )
    assert rows[0].startswith("site 1 200 120 0.6000* ")


def test_what_is_not_known_has_no_column_and_a_reason() -> None:
    text = flat(report(epsilon=1.0, randomness=sv.sim.dice(1)))
    assert "expected" not in text
    assert "own 0.9" not in text.lower()
    assert "Promised" not in text
    assert "0.95 interval epsilon" in text
    found = dataclasses.replace(report(epsilon=1.0), homogeneous=0.9023)
    assert f"Expected: not known under the sites' own distributions: {found.unpredicted}" in flat(found)
    assert f"Protected: {found.promise}" in flat(found)
    found = dataclasses.replace(found, private_threshold=True)
    assert "Promised: at least 0.9023, on average" in flat(found)


def test_no_failure_is_said_plainly() -> None:
    found = coverage_report(0.99, {"a": np.linspace(0, 1, 100)}, alpha=0.1, weights="records")
    text = flat(found)
    assert "Below: no site is below 0.9 beyond chance" in text
    assert "(sites count by size; 0.95 guaranteed)" in text
    assert "*" not in text


def test_many_sites_share_the_last_line() -> None:
    found = report(ROWS + 60)
    lines = found.summary().splitlines()
    rest = found.sites[ROWS - 1 :]
    assert f"and 61 more, coverage {rest[0].coverage:.4f} to {rest[-1].coverage:.4f}" in lines
    assert sum(line.startswith("site ") for line in lines) == ROWS  # the head and all but one
    assert "more, coverage" not in report(ROWS).summary()


def test_long_names_and_numbers_stay_within_the_page() -> None:
    sites = {LONG: 1e-7 * np.linspace(0, 1, 30_000), "b": np.linspace(-123456.7, 1e8, 1_234)}
    found = coverage_report(12345.678, sites, alpha=0.1, weights={LONG: 0.5, "b": 0.5})
    text = expecting(found).summary()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "…" in text
    assert "(given weights; 0.95 guaranteed)" in text


def test_missing_values_are_counted() -> None:
    found = coverage_report(0.9, {"a": [0.1, None, 0.95]}, alpha=0.1, missing="drop")
    assert "Left out: 1 missing values" in flat(found)
