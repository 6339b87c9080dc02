"""The picture of a run: written for every method and unit, refused before anything is spent where it cannot be."""

from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.server.picture import check_path
from sottovoce.server.quantile.result import QuantileResult, plot

pytest.importorskip("matplotlib")
HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def run(sites: int = 2, **options: object) -> QuantileResult:
    waits = sv.sim.dice(1).generator().gamma(2.0, 10.0, size=(sites, 24_000 // sites))
    columns = {f"site ${place}$ of many": column for place, column in enumerate(waits)}
    return sv.federated_quantile(columns, 0.5, 3.0, randomness=sv.sim.dice(2), **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def staged() -> QuantileResult:
    return run()


@pytest.mark.parametrize("suffix", HEADS)
def test_the_file_is_what_its_ending_says(staged: QuantileResult, tmp_path: Path, suffix: str) -> None:
    path = staged.plot(tmp_path / f"run{suffix}")
    assert path.read_bytes().startswith(HEADS[suffix])


def test_the_picture_says_estimate_interval_sites_and_reference(staged: QuantileResult, tmp_path: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        path = plot(staged, tmp_path / "run.svg", reference=("in the open", 17.0), measure="waiting time")
    text = path.read_text()
    for said in (staged.format(staged.estimate), staged.format(staged.interval.low), "in the open: 17", "waiting time"):
        assert said in text
    assert "site $0$ of many" in text
    assert "ε 3" in text


@pytest.mark.parametrize("method", ["regression", "self-normalised"])
def test_a_long_trajectory_with_open_ends_is_drawn(method: str, tmp_path: Path) -> None:
    assert run(method=method).plot(tmp_path / "run.png").stat().st_size > 10_000


def test_many_sites_share_the_last_bar(tmp_path: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        text = run(sites=30).plot(tmp_path / "run.svg").read_text()
    assert "11 other sites" in text


def test_dates_are_written_as_dates(tmp_path: Path) -> None:
    from matplotlib import rc_context

    days = np.datetime64("2013-01-01") + sv.sim.dice(3).generator().integers(0, 300, 60_000)
    result = sv.federated_quantile({"one": days}, 0.5, 3.0, randomness=sv.sim.dice(4))
    with rc_context({"svg.fonttype": "none"}):
        text = result.plot(tmp_path / "run.svg").read_text()
    assert result.format(result.estimate) in text
    assert result.format(result.estimate).startswith("2013-")


@pytest.mark.parametrize("name", ["run.jpeg", "run", "absent/run.png", "folder.png"])
def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(sv.BadInput, match=name.split("/")[0]):
        check_path(tmp_path / name)


def test_a_folder_is_made_when_asked(tmp_path: Path) -> None:
    assert check_path(tmp_path / "new" / "run.png", make_folder=True).parent.is_dir()


def test_without_matplotlib_the_sentence_says_how_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(sv.BadInput, match=r"pip install matplotlib"):
        check_path(tmp_path / "run.png")
