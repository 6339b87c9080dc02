"""The picture of coverage by site: written for every number of sites, and saying what it shows."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.conformal.report import coverage_report
from sottovoce.api.conformal.threshold import conformal_threshold
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.plot import ROWS, distribution_density
from sottovoce.server.conformal.report import CoverageReport, Prediction

pytest.importorskip("matplotlib")
HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def report(number: int = 3, scale: float = 1.5, **options: object) -> CoverageReport:
    """Return a report on sites of which the first has larger scores."""
    sites = {
        f"our $site$ {i}": (scale if i == 1 else 1.0) * (np.arange(200) + 0.5) / 200 + i / 1e6
        for i in range(1, number + 1)
    }
    return coverage_report(0.9, sites, alpha=0.1, **options)  # type: ignore[arg-type]


def words(found: CoverageReport, path: Path) -> str:
    """Draw to SVG and return the words in it."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        return found.plot(path).read_text()


@pytest.mark.parametrize("suffix", HEADS)
def test_the_file_is_what_its_ending_says(tmp_path: Path, suffix: str) -> None:
    assert report().plot(tmp_path / f"run{suffix}").read_bytes().startswith(HEADS[suffix])


def test_the_picture_says_target_mixture_worst_and_sites(tmp_path: Path) -> None:
    found = report()
    expected = Prediction(0.8, dict.fromkeys(found.weights, 0.81))
    text = words(dataclasses.replace(found, homogeneous=0.9023, predicted=expected), tmp_path / "run.svg")
    for part in (
        f"Coverage {found.mixture.estimate:.3f} on average, 0.600 at our $site$ 1",
        "1 of 3 sites is below 0.9 beyond chance",
        "target 0.9",
        "promised 0.9023, if sites were alike",
        "site below target, beyond chance, with 0.95 interval",
        "to be expected of a new calibration",
        f"mixture {found.mixture.estimate:.4f}",
        "0.6000",
        "600",
        *found.weights,
    ):
        assert part in text


def test_what_is_not_known_is_not_drawn(tmp_path: Path) -> None:
    text = words(report(scale=1.0, epsilon=1.0, randomness=sv.sim.dice(1)), tmp_path / "run.svg")
    assert "no site is below 0.9 beyond chance" in text
    for absent in ("promised", "to be expected", "site below target"):
        assert absent not in text


@pytest.mark.parametrize("number", [1, 30, ROWS, ROWS + 50])
def test_every_number_of_sites_has_room(tmp_path: Path, number: int) -> None:
    text = words(report(number), tmp_path / "run.svg")
    assert ("and 51 more" in text) == (number > ROWS)
    assert text.count("our $site$") == min(number, ROWS - (number > ROWS)) + 1  # the title names the worst
    assert f"{200 * number:,}" in text


def law_words(path: Path, **options: object) -> tuple[Threshold, str]:
    from matplotlib import rc_context

    scores = [np.linspace(0, 1, 60 + i) + i / 1e6 for i in range(10)]
    threshold = conformal_threshold(scores, 0.1, **options)  # type: ignore[arg-type]
    with rc_context({"svg.fonttype": "none"}):
        return threshold, threshold.plot(path).read_text()


def test_the_law_of_a_threshold_is_drawn_with_target_and_mean(tmp_path: Path) -> None:
    threshold, text = law_words(tmp_path / "law.svg")
    for part in (
        f"Coverage {threshold.coverage:.4f} on average, standard deviation {threshold.spread:.4f}",
        "over calibrations of 10 sites with 645 scores",
        f"coverage ≥ 0.9: probability {threshold.confidence:.3f}",
        f"probability {1 - threshold.confidence:.3f}",
        "target 0.9",
        f"promised on average: {threshold.coverage:.4f}",
    ):
        assert part in text


def test_a_private_law_is_a_bound(tmp_path: Path) -> None:
    threshold, text = law_words(tmp_path / "law.svg", epsilon=4.0, maximum=1.0, randomness=sv.sim.dice(1))
    assert f"Coverage at least {threshold.coverage:.4f} on average" in text
    assert f"probability at least {threshold.confidence:.3f}" in text
    assert f"probability at most {1 - threshold.confidence:.3f}" in text


@pytest.mark.parametrize(("sites", "n"), [(1, 9), (1, 500), (10, 100), (40, 12)])
def test_the_density_has_the_mass_and_mean_of_the_law(sites: int, n: int) -> None:
    threshold = conformal_threshold([np.linspace(0, 1, n) + i / 1e6 for i in range(sites)], 0.1)
    levels, density = distribution_density(*threshold.distribution)
    width = np.diff(levels)
    middle, height = (levels[1:] + levels[:-1]) / 2, (density[1:] + density[:-1]) / 2
    assert float(height @ width) == pytest.approx(1.0, abs=2e-3)
    assert float((height * middle) @ width) == pytest.approx(threshold.coverage, abs=2e-3)
    assert float((height * (middle >= 0.9)) @ width) == pytest.approx(threshold.confidence, abs=0.01)


@pytest.mark.parametrize("name", ["run.jpeg", "absent/run.png"])
def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(sv.BadInput, match=name.split("/")[0]):
        report().plot(tmp_path / name)
