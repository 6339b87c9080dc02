"""Public weights of a survey: a weighted quantile is covered where the plain one is not, in every question."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.client.answered import MEMORY
from sottovoce.sim.randomness import dice

N = 20_000
SOURCE = dice(3).generator()
FEW = {name: np.array([0.5, 1.0, 3.0])[SOURCE.integers(0, 3, N)] for name in ("north", "south")}
MANY = {name: np.exp(0.4 * SOURCE.normal(size=N)) for name in ("north", "south")}


def values(weights: dict[str, Any]) -> dict[str, Any]:
    """Return records that are the larger, the more they count."""
    return {name: SOURCE.normal(10.0, 3.0, N) + 4 * np.log(own) for name, own in weights.items()}


def weighted(columns: dict[str, Any], weights: dict[str, Any], tau: float) -> float:
    every, own = np.concatenate(list(columns.values())), np.concatenate(list(weights.values()))
    order = np.argsort(every)
    below = np.cumsum(own[order])
    return float(every[order][np.searchsorted(below, tau * below[-1])])


COLUMNS = {"few": values(FEW), "many": values(MANY)}
WEIGHTS = {"few": FEW, "many": MANY}


@pytest.mark.parametrize("kind", ["few", "many"])
@pytest.mark.parametrize("method", ["staged", "certified", "sequence", "regression"])
def test_the_weighted_quantile_is_held_and_the_plain_one_is_not(kind: str, method: str) -> None:
    columns, weights = COLUMNS[kind], WEIGHTS[kind]
    found = sv.federated_quantile(columns, 0.5, 3.0, weights=weights, method=method, randomness=dice(1))
    truth, plain = weighted(columns, weights, 0.5), float(np.median(np.concatenate(list(columns.values()))))
    low, high = found.interval_at(1 - 1e-6)
    assert low <= truth <= high
    low, high = found.interval
    assert not low <= plain <= high


@pytest.mark.parametrize("kind", ["few", "many"])
def test_the_result_says_what_counts_and_what_it_costs(kind: str) -> None:
    found = sv.federated_quantile(COLUMNS[kind], 0.5, 3.0, weights=WEIGHTS[kind], randomness=dice(1))
    text = " ".join(found.summary().split())
    assert "each counted by its weight (weighted)" in text
    every = np.concatenate(list(WEIGHTS[kind].values()))
    kish = every.sum() ** 2 / (every**2).sum()
    assert found.plan.effective == pytest.approx(kish, rel=0.01)
    assert "of equal weight" in text
    assert set(found.shares) == set(found.epsilon) == set(found.variance_shares) == {"north", "south"}
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert found.shares["north"] == pytest.approx(WEIGHTS[kind]["north"].sum() / every.sum(), rel=2e-3)
    assert found.to_dict()["records"] == {"north": N, "south": N}
    again = type(found).from_dict(found.to_dict())
    assert again.summary() == found.summary()


def test_weights_all_alike_change_nothing() -> None:
    columns = COLUMNS["few"]
    plain = sv.federated_quantile(columns, 0.5, 3.0, randomness=dice(1))
    one = sv.federated_quantile(columns, 0.5, 3.0, weights={"north": 2.0, "south": 2}, randomness=dice(1))
    assert one.estimate == plain.estimate
    assert one.interval == plain.interval


def test_a_weight_a_site_is_its_share() -> None:
    columns = COLUMNS["few"]
    heavy = sv.federated_quantile(columns, 0.5, 3.0, weights={"north": 3.0, "south": 1.0}, randomness=dice(1))
    shares = sv.federated_quantile(columns, 0.5, 3.0, shares={"north": 0.75, "south": 0.25}, randomness=dice(1))
    assert heavy.shares == pytest.approx(shares.shares)
    assert heavy.interval == shares.interval


def test_shares_of_sites_and_weights_within_them() -> None:
    equal = sv.federated_quantile(COLUMNS["few"], 0.5, 3.0, weights=FEW, shares="equal", randomness=dice(1))
    assert equal.shares == pytest.approx({"north": 0.5, "south": 0.5})
    budgets = {"north": 1.0, "south": 3.0}
    given = sv.federated_quantile(
        COLUMNS["few"], 0.5, budgets, weights=FEW, shares={"north": 0.9, "south": 0.1}, randomness=dice(1)
    )
    assert given.shares == pytest.approx({"north": 0.9, "south": 0.1})
    assert given.epsilon == pytest.approx(budgets)


FRAME = pd.DataFrame(
    {
        "x": np.concatenate(list(COLUMNS["few"].values())),
        "w": np.concatenate(list(FEW.values())),
        "clinic": np.repeat(["north", "south"], N),
        "half": np.tile(["a", "b"], N),
    }
)

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "several levels": lambda table: sv.federated_quantiles(table, [0.25, 0.75], 3.0, randomness=dice(2)).results[1],
    "shortfall": lambda table: (
        sv.expected_shortfall(table, 0.75, 4.0, bounds=(-20, 60), randomness=dice(2)).value_at_risk
    ),
    "groups": lambda table: sv.group_quantiles(
        sv.read_frame(FRAME, value="x", site="clinic", group="half", weight="w"), 0.75, 3.0, randomness=dice(2)
    ).groups["a"],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_takes_a_table_with_weights(question: str) -> None:
    found = QUESTIONS[question](sv.read_frame(FRAME, value="x", site="clinic", weight="w"))
    low, high = found.interval_at(1 - 1e-6)
    assert low <= weighted(COLUMNS["few"], FEW, 0.75) <= high
    low, high = found.interval_at(0.9)
    assert not low <= float(np.quantile(FRAME["x"], 0.75)) <= high


def test_rows_with_weights_are_the_rows_without() -> None:
    MEMORY.clear()
    sv.federated_quantile(COLUMNS["few"], 0.5, 1.0, weights=FEW)
    with pytest.warns(UserWarning, match="have cost epsilon 2 in all"):
        found = sv.federated_quantile(COLUMNS["few"], 0.5, 1.0)
    assert found.epsilon_in_all == pytest.approx({"north": 2.0, "south": 2.0})
    MEMORY.clear()


def test_a_plan_counts_the_weights() -> None:
    plain = sv.explain(sv.federated_quantile, COLUMNS["many"], 0.5, 1.0)
    heavy = sv.explain(sv.federated_quantile, COLUMNS["many"], 0.5, 1.0, weights=MANY)
    assert 1.02 * plain.width < heavy.width < 1.3 * plain.width
    certified = [
        sv.explain(sv.federated_quantile, COLUMNS["many"], 0.5, 1.0, weights=weights, method="certified").width
        for weights in (None, MANY)
    ]
    assert certified[1] > 1.3 * certified[0]  # reports are drawn by weight
    assert "of equal weight" in str(heavy)


def test_few_records_of_much_weight_are_certified_and_not_left_out() -> None:
    generator = dice(9).generator()
    values, weights = generator.normal(10.0, 3.0, 3_000), np.ones(3_000)
    values[:5], weights[:5] = 40.0, 100.0  # a seventh of the whole
    with pytest.warns(UserWarning, match="is barely supported"):
        found = sv.federated_quantile([values], 0.5, 2.0, weights=[weights], randomness=dice(1))
    assert found.plan.left_out == ()
    assert found.method == "certified"
    low, high = found.interval
    assert low <= weighted({"one": values}, {"one": weights}, 0.5) <= high


def test_what_several_levels_must_leave_out_is_told_with_its_part() -> None:
    generator = dice(9).generator()
    values, weights = generator.normal(10.0, 3.0, 30_000), np.ones(30_000)
    weights[0] = 2_000.0
    table = sv.read_frame(pd.DataFrame({"x": values, "w": weights}), value="x", weight="w")
    with pytest.warns(UserWarning, match=r"too few records to take part and is left out \(6\.25% of the whole\)"):
        sv.federated_quantiles(table, [0.25, 0.75], 2.0, randomness=dice(1))
