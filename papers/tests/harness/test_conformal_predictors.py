"""The quantile forest against weights counted by hand, the network where quantiles are known, and their scores."""

from typing import Any

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal import quantile_forest, quantile_network
from sottovoce_papers.simulation.conformal.data_sets import DataSet
from sottovoce_papers.simulation.conformal.paper_predictors import PREDICTORS, forest_scores

LEVELS = (0.1, 0.25, 0.5, 0.9)


def population(n: int, seed: int) -> tuple[Floats, Floats]:
    """Draw normal responses whose mean and spread grow with the first of three features."""
    source = dice(seed).generator()
    x = source.uniform(-1, 1, (n, 3))
    return x, 2 * x[:, 0] + (0.5 + 0.4 * x[:, 0]) * source.normal(size=n)


@pytest.mark.parametrize("leaf", [1, 5])
def test_a_forest_weighs_training_records_as_its_leaves_do(leaf: int) -> None:
    x, y = population(80, 1)
    new, _ = population(7, 2)
    forest = quantile_forest.grow(x, y, seed=3, trees=9, leaf=leaf)
    order = np.argsort(y)
    homes, theirs = forest.trees.apply(x[order]), forest.trees.apply(new)
    for place, found in enumerate(quantile_forest.quantiles(forest, new, LEVELS)):
        weights = np.zeros(80)
        for tree, bag in enumerate(forest.trees.estimators_samples_):
            inside = [i for i in bag if homes[i, tree] == theirs[place, tree]]
            for i in inside:
                weights[i] += 1 / len(inside) / 9
        below = np.cumsum(weights)
        assert below[-1] == pytest.approx(1.0)
        assert found.tolist() == [y[order][np.argmax(below >= level - 1e-9)] for level in LEVELS]


def test_out_of_bag_quantiles_cover_records_that_their_trees_have_not_seen() -> None:
    x, y = population(600, 4)
    forest = quantile_forest.grow(x, y, seed=5, trees=60, leaf=20)
    responses, ends = quantile_forest.out_of_bag(forest, (0.05, 0.95))
    assert len(responses) == 600
    # about 0.9; six standard errors are 0.07
    assert 0.83 < np.mean((ends[:, 0] <= responses) & (responses <= ends[:, 1])) < 0.97


def test_a_forest_is_the_same_from_the_same_seed_and_another_from_another() -> None:
    x, y = population(100, 6)
    one, same, other = (quantile_forest.quantiles(quantile_forest.grow(x, y, s, 10), x, LEVELS) for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_network_finds_the_quantiles_of_a_known_distribution() -> None:
    x, y = population(1500, 7)
    network = quantile_network.train(x, y, (0.1, 0.9), dice(8).generator(), epochs=80, rate=3e-3)
    new, responses = population(4000, 9)
    low, high = quantile_network.predict(network, new).T
    # 0.8 if it were perfect; 1,500 records and 80 epochs leave it within a few points
    assert 0.74 < np.mean((low <= responses) & (responses <= high)) < 0.86
    true = 2 * 1.2816 * (0.5 + 0.4 * new[:, 0])
    assert np.corrcoef(high - low, true)[0, 1] > 0.9


def test_the_slopes_of_a_network_are_those_of_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantile_network, "DROPPED", 0.0)
    source = dice(10).generator()
    layers = quantile_network._first(3, 2, source)
    x, y, levels = source.normal(size=(5, 3)), source.normal(size=5), np.array([0.1, 0.9])
    slopes = quantile_network._slopes(layers, x, y, levels, source)
    for part, slope in zip(layers, slopes, strict=True):
        spot = (0,) * part.ndim
        values = []
        for step in (1e-6, -1e-6):
            part[spot] += step
            values.append(quantile_network.pinball(quantile_network._through(layers, x), y, levels))
            part[spot] -= step
        assert slope[spot] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-7)


def test_a_network_stops_when_it_does_not_improve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantile_network, "PATIENCE", 3)
    source = dice(11).generator()
    asked: list[int] = []
    whole = quantile_network._slopes

    def counted(*given: Any) -> list[Floats]:
        asked.append(1)
        return whole(*given)

    monkeypatch.setattr(quantile_network, "_slopes", counted)
    quantile_network.train(
        source.normal(size=(60, 2)), source.normal(size=60), (0.1, 0.9), source, epochs=500, rate=0.05
    )
    assert len(asked) < 200


@pytest.mark.parametrize("name", PREDICTORS)
def test_scores_do_not_depend_on_the_unit_of_the_responses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantile_network.train, "__defaults__", (5, quantile_network.RATE))
    x, y = population(120, 12)
    train, rest = np.arange(60), np.arange(60, 120)
    one, other = (
        PREDICTORS[name](DataSet("made up", x, scale * y), train, rest, dice(13).generator()) for scale in (1.0, 8.0)
    )
    assert one.scores == pytest.approx(other.scores, rel=1e-6, abs=1e-9)
    assert one.lengths == pytest.approx(other.lengths, rel=1e-6, abs=1e-9)


def test_a_forest_scores_its_own_records_too() -> None:
    x, y = population(200, 14)
    found = forest_scores(DataSet("made up", x, y), np.arange(100), np.arange(100, 200), dice(15).generator())
    assert found.rest.scores.shape == (100,)
    assert found.unseen.max() > 0
