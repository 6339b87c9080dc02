"""A regression on a file: the parameters are those of the estimator, and what it says is what the estimator says."""

from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.api.regression.file import FileStudy, regression_study
from sottovoce.core.errors import BadInput
from sottovoce.server.regression.settings import DEFAULTS

N = 1000


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    source = sv.sim.dice(1).generator()
    miles = source.uniform(0.0, 30.0, N)
    minutes = 5.0 + 2.0 * miles + source.logistic(0.0, 2.0, N)
    path = tmp_path / "trips.csv"
    path.write_text("minutes,miles\n" + "".join(f"{y},{x}\n" for y, x in zip(minutes, miles, strict=True)))
    return path


def study(path: Path, **options: Any) -> FileStudy:
    guesses = {"bounds": (0, 30), "density": 0.12, "size": 30.0, "epsilon": 6.0, "randomness": sv.sim.dice(2)}
    return regression_study(path, "minutes", ["miles"], **{**guesses, **options})


def test_the_defaults_are_those_of_the_estimator() -> None:
    assert dict(DEFAULTS) == sv.PrivateQuantileRegressor().get_params()


def test_seeded_dice_make_a_simulation(trips: Path) -> None:
    asked: list[int] = []
    found = study(trips).run(asked.append)
    assert sum(asked) == found.to_dict()["people"] == N
    assert found.to_dict()["private"] is False
    assert found.summary().split("\n")[1] == "Response:      minutes"


def test_every_run_throws_a_copy_of_seeded_dice(trips: Path) -> None:
    again = study(trips)
    assert again.run().to_dict() == again.run().to_dict()


def test_predictions_are_made_at_the_smallest_guess_of_the_density(trips: Path) -> None:
    several = study(trips, tau=[0.25, 0.75], density=[0.2, 0.1])
    assert several.explain().to_dict()["density"] == 0.1
    assert "at density 0.1" in str(several.explain())
    assert study(trips, density=None, epsilon=24.0).explain().to_dict()["density"] == 1.0


@pytest.mark.parametrize(
    ("options", "said"),
    [({"taus": 0.5}, "'taus' is no parameter"), ({"level": 2}, "level"), ({"randomness": 7}, "randomness must be")],
)
def test_wrong_parameters_are_refused(trips: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        study(trips, **options)
    with pytest.raises(BadInput, match="progress must be"):
        study(trips).run(7)  # type: ignore[arg-type]
