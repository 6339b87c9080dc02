"""A threshold through the public call: order, rank and value, what it promises, and what it never shows."""

import importlib
import math
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.result import ConformalThreshold
from sottovoce.server.conformal.votes import weighted_rank

pickle: Any = importlib.import_module("pickle")
SECRET = 0.7182818284590452


def scores(sites: int = 10, n: int = 100, seed: int = 1) -> dict[str, Any]:
    source = sv.sim.dice(seed).generator()
    return {f"h{i}": abs(source.normal(size=n)) for i in range(sites)}


@pytest.mark.parametrize("n", [1, 8, 9, 10, 19, 99, 100, 1000])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 1 / 3, 0.5])
def test_one_site_is_split_conformal(n: int, alpha: float) -> None:
    values = np.arange(1.0, n + 1) + 0.5
    order = math.ceil((1 - alpha) * (n + 1) * (1 - 1e-12))
    if order > n:
        with pytest.raises(sv.Infeasible, match="at least"):
            sv.conformal_threshold([values], alpha)
        return
    t = sv.conformal_threshold([values], alpha)
    assert (t.value, t.orders["site 1"], t.rank) == (order + 0.5, (order,), 1)
    assert t.coverage == pytest.approx(order / (n + 1), abs=1e-12)


def test_the_value_is_the_rank_of_the_orders() -> None:
    given = scores()
    t = sv.conformal_threshold(given)
    assert (t.orders["h3"], t.rank, t.votes["h3"]) == ((92,), 4, 1)
    assert t.value == sorted(sorted(each)[91] for each in given.values())[3]
    paper = sv.conformal_threshold(given, rule="paper")
    assert paper.value == min(sorted(each)[94] for each in given.values())
    three = sv.conformal_threshold(given, statistics=3)
    sent = sorted(sorted(each)[order - 1] for name, each in given.items() for order in three.orders[name])
    assert three.value == sent[(three.rank or 0) - 1]


@pytest.mark.parametrize(("alpha", "delta"), [(0.1, None), (0.01, None), (0.1, 0.05), (0.02, 0.5)])
def test_as_many_scores_as_are_said_to_be_needed_are_enough_and_one_less_is_not(
    alpha: float, delta: float | None
) -> None:
    promise: dict[str, Any] = {} if delta is None else {"guarantee": "training-conditional", "delta": delta}
    with pytest.raises(sv.Infeasible) as refused:
        sv.conformal_threshold([[1.0], [2.0]], alpha, **promise)
    needed = int(str(refused.value).split("at least ")[1].split(" ")[0].replace(",", ""))
    values = np.arange(float(needed))
    for parts in (1, 2):
        assert math.isfinite(sv.conformal_threshold(np.array_split(values, parts), alpha, **promise).value)
        with pytest.raises(sv.Infeasible, match=f"at least {needed:,} are needed"):
            sv.conformal_threshold(np.array_split(values[1:], parts), alpha, **promise)


@pytest.mark.parametrize(
    "settings",
    [{}, {"statistics": 2}, {"exact": True}, {"guarantee": "training-conditional", "delta": 0.2}],
)
def test_coverage_is_what_it_says_to_be(settings: dict[str, Any]) -> None:
    """Uniform scores: a value is its own coverage. 4,000 calibrations, false alarm 1e-6 for each figure."""
    source, sizes, runs = sv.sim.dice(5).generator(), [7, 20, 60, 150], 4000
    t = sv.conformal_threshold([source.random(n) for n in sizes], 0.1, **settings)
    assert isinstance(t, ConformalThreshold)
    sent, votes = [], []
    for (name, n), own in zip(t.sizes.items(), (np.sort(source.random((runs, n))) for n in sizes), strict=True):
        assert own.shape[1] == n
        sent.append(own[:, np.array(t.orders[name]) - 1])
        votes += [t.votes[name]] * len(t.orders[name])
    ranks = np.where(source.random(runs) < t.chance, t.choice.rank, t.choice.rank - 1)
    every = np.hstack(sent)
    values = np.array([weighted_rank(row, np.array(votes), int(rank)) for row, rank in zip(every, ranks, strict=True)])
    assert abs(values.mean() - t.coverage) < 4.9 * t.spread / math.sqrt(runs)
    assert values.std() == pytest.approx(t.spread, rel=0.07)
    assert abs(np.mean(values >= 0.9) - t.confidence) < 4.9 * 0.5 / math.sqrt(runs)
    assert t.coverage == 0.9 or "exact" not in settings


def test_a_site_smaller_than_the_order_asked_answers_infinity_and_is_named() -> None:
    with pytest.warns(UserWarning, match="so the answer is infinity: 'tiny'"):
        t = sv.conformal_threshold({"tiny": [1.0, 2.0], "large": np.arange(500.0)}, rule="paper")
    assert "so the answer is infinity: 'tiny' (2 scores, asked for order 3)" in t.warnings[0]
    assert math.isfinite(t.value)
    with pytest.raises(sv.Infeasible, match="finds no finite set"):
        sv.conformal_threshold({"a": [1.0] * 5, "b": [2.0] * 6}, 0.1, rule="paper")


@pytest.mark.parametrize("mechanism", ["auto", "sparse-vector", "counts", "exponential", "paper", "local", "aggregate"])
def test_every_mechanism_gives_an_edge_of_the_public_grid_within_its_budget(mechanism: str) -> None:
    given = scores(4, 3000)
    t = sv.conformal_threshold(given, 0.1, epsilon=2.0, maximum=4.0, mechanism=mechanism)
    assert t.private
    assert t.value in (*t.edges, math.inf)
    assert t.coverage >= 0.9
    assert t.epsilon is not None
    assert all(0 < epsilon <= 2.0 for epsilon in t.epsilon.values())
    assert not sv.conformal_threshold(given, 0.1, epsilon=2.0, maximum=4.0, randomness=sv.sim.dice(1)).private


@pytest.mark.parametrize("mechanism", ["auto", "sparse-vector", "counts", "exponential", "local", "aggregate"])
def test_a_grid_that_does_not_cover_the_scores_is_counted_and_stays_valid(mechanism: str) -> None:
    given = {"a": np.linspace(0, 10, 4000), "b": np.linspace(0, 10, 4001)}
    t = sv.conformal_threshold(given, 0.1, epsilon=4.0, maximum=2.0, mechanism=mechanism, randomness=sv.sim.dice(1))
    assert t.value == math.inf
    assert "6,400 of 8,001 scores at 2 sites lie above the grid" in t.hints[0]
    assert "6,400" not in str(t.to_dict())
    assert pickle.loads(pickle.dumps(t)).hints == ()


def test_budgets_of_sites_may_differ_and_one_may_have_none() -> None:
    t = sv.conformal_threshold(scores(3, 400), epsilon={"h0": 0.5, "h1": 4.0, "h2": math.inf}, maximum=4.0)
    assert t.epsilon == {"h0": pytest.approx(0.5), "h1": pytest.approx(4.0), "h2": math.inf}
    assert t.votes["h0"] <= t.votes["h1"] <= t.votes["h2"]
    assert not t.private


def everything(t: Threshold) -> str:
    return " ".join(map(str, (t, repr(t), t.to_dict(), t.warnings, pickle.dumps(t))))


@pytest.mark.parametrize("settings", [{}, {"epsilon": 1.0, "maximum": 4.0}])
def test_no_score_is_kept_but_the_threshold(settings: dict[str, Any]) -> None:
    given = scores()
    given["h4"][7] = SECRET
    t = sv.conformal_threshold(given, **settings)
    assert str(SECRET)[:8] not in everything(t)
    packed = pickle.dumps(t)
    kept = sum(
        np.float64(each).tobytes() in packed or np.float64(each).byteswap().tobytes() in packed for each in given["h4"]
    )
    assert kept <= (1 if not settings else 0)


def test_printed_words() -> None:
    text = " ".join(str(sv.conformal_threshold(scores(), epsilon=1.0, maximum=4.0)).split())
    for part in ("Private: yes", "at least 0.9", "epsilon 1, computed", "Shuffling the messages would not add"):
        assert part in text
    assert "standard deviation" not in text
