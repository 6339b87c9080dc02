"""Scikit-learn's own checks of an estimator, and that nobody pays for scikit-learn who does not use it."""

import math
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor

GUESSES: dict[str, Any] = {"bounds": (-200, 200), "density": 0.4, "size": 1.0}
# with the operating system's dice no two fits are equal, which is what makes them private
UNREPEATABLE = dict.fromkeys(
    (
        "check_fit_idempotent",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_supervised_y_2d",
    ),
    "compares two fits, and without seeded dice no two are equal",
)
TWICE = {"check_fit_score_takes_y": "gives the rows of fit to partial_fit, and real people answer once"}
SEVERAL = {"check_regressors_train": "expects one prediction a row, and several levels give one each"}
REGRESSORS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "no privacy": ({"epsilon": math.inf, "randomness": sv.sim.dice(1)}, {}),
    "private": ({"epsilon": 8.0, "randomness": sv.sim.dice(1)}, {}),
    "a small budget": ({"epsilon": 2.0, "randomness": sv.sim.dice(1), "channel": "cq:2,1"}, {}),
    "groups": ({"epsilon": 8.0, "randomness": sv.sim.dice(1), "inference": "groups"}, {}),
    "the system's dice": ({"epsilon": 8.0}, UNREPEATABLE | TWICE),
    "several levels": ({"tau": [0.25, 0.75], "epsilon": 8.0, "randomness": sv.sim.dice(1)}, SEVERAL),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.mark.parametrize("kind", REGRESSORS)
def test_check_estimator(kind: str) -> None:
    options, expected = REGRESSORS[kind]
    done = check_estimator(
        PrivateQuantileRegressor(**{**GUESSES, **options}), expected_failed_checks=expected, on_skip=None
    )
    assert len(done) > 45
    failed = {each["check_name"] for each in done if each["status"] == "xfail"}
    assert failed <= set(expected)
    skipped = {each["check_name"] for each in done if each["status"] == "skipped"}
    assert skipped <= {"check_array_api_input", "check_pipeline_consistency"}


def test_the_checks_notice_a_model_that_forgets_its_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sottovoce.api.regression.stream.read_features", lambda X, names, p, levels, warn: X[:, :p]  # noqa: N803
    )  # fmt: skip
    with pytest.raises(AssertionError, match="does not check for consistency between input number"):
        check_estimator(PrivateQuantileRegressor(**GUESSES, epsilon=8.0, randomness=sv.sim.dice(1)), on_skip=None)


def test_scikit_learn_is_imported_with_the_regressor_and_not_before() -> None:
    code = (
        "import sys, sottovoce\n"
        "assert 'sklearn' not in sys.modules and 'PrivateQuantileRegressor' in dir(sottovoce)\n"
        "sottovoce.PrivateQuantileRegressor\n"
        "print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
