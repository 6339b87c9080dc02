"""The picture of a helped quantile: written for every number of sources and every unit, and saying what it shows."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.inference.integration.sensitivity import BEFOREHAND
from sottovoce.server.integration.plot import _frame, _rows
from sottovoce.server.integration.result import IntegratedResult

pytest.importorskip("matplotlib")
HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def told(sources: int = 2, shift: float = 0.0, **options: object) -> IntegratedResult:
    sites = {"our $site$": sv.SiteSummary(17.0, 0.3, n=900)}
    sites |= {f"source {i}": sv.SiteSummary(17.0 + shift + i / 100, 0.2 + i / 100) for i in range(sources)}
    return sv.integrated_quantile("our $site$", sites, 0.5, 1.0, **options)  # type: ignore[arg-type]


def words(result: object, path: Path) -> str:
    """Draw to SVG and return the words in it."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        return result.plot(path).read_text()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("suffix", HEADS)
def test_the_file_is_what_its_ending_says(tmp_path: Path, suffix: str) -> None:
    assert told().plot(tmp_path / f"run{suffix}").read_bytes().startswith(HEADS[suffix])


def test_the_picture_says_estimate_sites_weights_and_caution(tmp_path: Path) -> None:
    result = told()
    text = words(result, tmp_path / "run.svg")
    assert result.format(result.estimate) in text
    assert f"{100 * (1 - result.length_ratio):.1f} % shorter than its own" in text
    assert "our $site$ (target)" in text
    assert "with help" in text
    for name in ("source 0", "source 1"):
        assert name in text
        assert f"{100 * result.weights[name]:.1f} %" in text
    assert BEFOREHAND in text
    assert "gain below 5 % from" in text
    assert "refuted" not in text


def test_without_sources_there_is_no_curve(tmp_path: Path) -> None:
    text = words(told(0), tmp_path / "run.svg")
    assert "without help" in text
    assert "100.0 %" in text
    assert BEFOREHAND not in text


def test_many_sources_share_the_last_row(tmp_path: Path) -> None:
    result = told(40)
    text = words(result, tmp_path / "run.svg")
    assert "and 21 more" in text
    rows = _rows(result)
    assert len(rows) == 1 + 19 + 1 + 1
    shown = {row.name for row in rows}
    lightest = min(result.weights[name] for name in shown if name.startswith("source"))
    assert all(weight <= lightest for name, weight in result.weights.items() if name not in {*shown, "our $site$"})
    assert "more" not in " ".join(row.name for row in _rows(told(20)))


def test_refuted_bounds_are_marked(tmp_path: Path) -> None:
    result = told(2, shift=3.0)
    assert result.length_ratio > 0.995
    text = words(result, tmp_path / "run.svg")  # no bound would buy anything, so there is no curve to argue with
    assert "no gain" in text
    assert "the sources differ too much from the target" in text
    assert "refuted by the data" not in text
    assert "refuted by the data" in words(result.sensitivity(), tmp_path / "curve.svg")


@pytest.mark.parametrize("bounds", [[0.0], [0.5, math.inf], [0.1, 1.0, 5.0], [i / 10 for i in range(30)]])
def test_a_curve_of_chosen_bounds_is_drawn(tmp_path: Path, bounds: list[float]) -> None:
    curve = told(2, shift=3.0).sensitivity(bounds)
    assert "length / own" in words(curve, tmp_path / "curve.svg")


def test_a_source_without_an_error_has_no_ends(tmp_path: Path) -> None:
    sites = {"ours": sv.SiteSummary(17.0, 0.3), "doubtful": sv.SiteSummary(17.2, trusted=False)}
    result = sv.integrated_quantile("ours", sites, 0.5, 1.0)
    text = words(result, tmp_path / "run.svg")
    assert "doubtful" in text
    assert BEFOREHAND not in text
    low, high = _frame(_rows(result))
    assert 15 < low < high < 19


def test_a_source_far_off_does_not_squeeze_the_rest(tmp_path: Path) -> None:
    sites = {"ours": sv.SiteSummary(17.0, 0.3), "far": sv.SiteSummary(1e6, 0.2), "wide": sv.SiteSummary(17.0, 500.0)}
    result = sv.integrated_quantile("ours", sites, 0.5, 1.0)
    low, high = _frame(_rows(result))
    assert 15 < low < high < 19
    assert "estimate 1,000,000" in words(result, tmp_path / "run.svg")


def test_a_source_left_out_is_shown_as_such(tmp_path: Path) -> None:
    sites = {"ours": sv.SiteSummary(17.0, 0.3), "few": sv.SiteSummary(17.0, 0.2, n=3)}
    assert "left out" in words(sv.integrated_quantile("ours", sites, 0.5, 1.0), tmp_path / "run.svg")


def test_a_target_with_an_open_end_is_drawn(tmp_path: Path) -> None:
    result = told(1)
    endless = dataclasses.replace(result.target, high=math.inf)
    text = words(dataclasses.replace(result, known=(endless, *result.known[1:])), tmp_path / "run.svg")
    assert "with help" in text


@pytest.mark.parametrize(
    ("start", "step", "bound", "said"),
    [
        (np.datetime64("2013-05-01"), np.timedelta64(1, "D"), ", days", ">2013-1"),
        (np.timedelta64(600, "s"), np.timedelta64(7, "s"), " min", " min"),
        (np.datetime64("2013-05-01T12:00:00"), np.timedelta64(60, "s"), " min", ">2013-05-0"),
    ],
    ids=["dates", "durations", "moments"],
)
def test_times_are_written_as_times(
    tmp_path: Path, start: np.datetime64, step: np.timedelta64, bound: str, said: str
) -> None:
    columns = {
        name: start + (np.arange(size) * 7919 % size) * 400 // size * step for name, size in (("a", 900), ("b", 4000))
    }
    result = sv.integrated_quantile("a", columns, 0.5, math.inf, randomness=sv.sim.dice(3))
    for text in (words(result, tmp_path / "run.svg"), words(result.sensitivity(), tmp_path / "curve.svg")):
        assert said in text
        assert bound in text


@pytest.mark.parametrize("name", ["run.jpeg", "absent/run.png"])
def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    result = told(1)
    for drawn in (result, result.sensitivity()):
        with pytest.raises(sv.BadInput, match=name.split("/")[0]):
            drawn.plot(tmp_path / name)
