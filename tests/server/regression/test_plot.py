"""The picture of a regression: written for one level and for several, with and without intervals."""

from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.server.regression.plot import _against_tau
from sottovoce.server.regression.summary import row_text

pytest.importorskip("matplotlib")
HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def fitted(n: int, **options: Any) -> PrivateQuantileRegressor:
    source = sv.sim.dice(1).generator()
    trips = {"price in $": source.uniform(0, 10, n), "night": source.uniform(0, 1, n)}
    response = 5.0 + 2.0 * trips["night"] + source.logistic(0.0, 2.0, n)
    guesses = {"bounds": [(0, 10), (0, 1)], "start": 6.0, "density": 0.12, "size": 3.0, "randomness": sv.sim.dice(2)}
    return PrivateQuantileRegressor(**{**guesses, "epsilon": 8.0, **options}).fit(trips, response)


def drawn(model: PrivateQuantileRegressor, folder: Path) -> str:
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        return model.plot(folder / "run.svg").read_text()


@pytest.mark.parametrize("suffix", HEADS)
def test_the_file_is_what_its_ending_says(tmp_path: Path, suffix: str) -> None:
    path = fitted(300).plot(tmp_path / f"run{suffix}")
    assert path.read_bytes().startswith(HEADS[suffix])


def test_one_level_shows_every_slope_with_its_interval(tmp_path: Path) -> None:
    model = fitted(24_000)
    text = drawn(model, tmp_path)
    # label and point are both the change over the bounds: of a column of 0 and 1 the coefficient itself
    assert (model.result_.bounds.low[1], model.result_.bounds.high[1]) == (0, 1)
    shown = row_text(model.result_.row(0, 2, 0.95))
    for said in ("night", "price in $", shown, row_text(model.result_.row(0, 1, 0.95), 10.0), "24,000 people", "95%"):
        assert said in text
    few = drawn(fitted(300, epsilon=1.0), tmp_path)
    assert "(no interval)" in few
    assert "without intervals (too few people)" in few


def test_several_levels_are_drawn_against_tau(tmp_path: Path) -> None:
    text = drawn(fitted(24_000, tau=[0.4, 0.5, 0.6]), tmp_path)
    for said in ("intercept", "night", "tau", "coefficients with 95% intervals"):
        assert said in text
    assert "too few people for intervals" in drawn(fitted(500, tau=[0.2, 0.8], channel="cq:2,1"), tmp_path)


def test_panels_above_a_hidden_one_have_their_levels_written_below() -> None:
    from matplotlib.figure import Figure

    source = sv.sim.dice(1).generator()
    options: dict[str, Any] = {"tau": [0.4, 0.6], "epsilon": 8.0, "density": 0.12, "size": 3.0}
    model = PrivateQuantileRegressor(**options, randomness=sv.sim.dice(2))
    model.fit(source.uniform(-1, 1, (500, 3)), source.logistic(0.0, 2.0, 500))
    figure = Figure()
    _against_tau(figure, model.result_.facts, model.result_.tables(0.95), 0.95)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert (len(shown), len(figure.axes)) == (4, 6)
    assert all(axes.xaxis.get_tick_params()["labelbottom"] for axes in shown)


def test_a_path_to_nowhere_is_refused(tmp_path: Path) -> None:
    model = fitted(300)
    for path in (tmp_path / "run.txt", tmp_path / "nowhere" / "run.png"):
        with pytest.raises(sv.BadInput):
            model.plot(path)
