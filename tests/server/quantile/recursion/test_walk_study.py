"""A study refuses what cannot be run, and plans so that sites do not run out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.quantile.recursion.method import metropolis, ring
from sottovoce.server.quantile.recursion.schedule import constant, decay, elapsed
from sottovoce.server.quantile.recursion.walk import WalkStudy, horizon

STUDY = WalkStudy(
    np.array([0.4, 0.6]),
    np.array([0.25, 0.75]),
    (binary(1.0), binary(2.0)),
    np.array([100, 50]),
    elapsed("every:1", 100),
    0.0,
    decay([0.5, 0.5]),
)


def test_the_estimand_has_the_weighted_level() -> None:
    assert STUDY.tau == pytest.approx(0.55)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"taus": np.array([0.5])}, "one entry for each"),
        ({"taus": np.array([0.5, 1.0])}, "strictly between"),
        ({"shares": np.array([0.5, 0.4])}, "sum to one"),
        ({"shares": np.array([1.5, -0.5])}, "positive"),
        ({"sizes": np.array([100, 0])}, "needs a record"),
        ({"participation": 0.0}, "participation"),
        ({"participation": 0.5, "mixing": metropolis(ring(2), [0.25, 0.75])}, "leave the graph out"),
        ({"start": float("nan")}, "finite"),
    ],
)
def test_impossible_studies_are_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        replace(STUDY, **change)


@pytest.mark.parametrize("part", [0.1, 0.35, 0.8])
@pytest.mark.parametrize("longest", [1, 9])
def test_horizon_leaves_four_standard_deviations(part: float, longest: int) -> None:
    turns = horizon(5000, 20, part, longest)
    part = np.ceil(part * 20 - 1e-9) / 20
    assert turns * part + 4 * np.sqrt(turns * longest * part * (1 - part)) == pytest.approx(5000, abs=2)


def test_burn_in_counts_what_the_pace_counts() -> None:
    lengths = elapsed("every:4", 100)  # five rounds of one, then 24 of up to four
    assert replace(STUDY, elapsed=lengths, burn=0.2).burnt == int(0.2 * len(lengths)) == 5
    assert replace(STUDY, elapsed=lengths, burn=0.2, pace=constant(100, 1.0)).burnt == 8  # 5 + 3 * 4 <= 20 < 5 + 4 * 4


def test_everybody_present_spends_everything() -> None:
    assert horizon(777, 3, 1.0, 50) == 777
