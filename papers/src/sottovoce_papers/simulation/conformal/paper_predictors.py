"""The three predictors of the paper's section 5 and the scores of records that they have not seen.

Ridge regression, its penalty chosen by cross-validation, gives absolute residuals (split conformal prediction). A
quantile forest and a quantile network give two ends and the scores of conformalized quantile regression (Romano,
Patterson and Candès 2019). Responses are in units of the mean absolute training response, as there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.conformal.scores import absolute_residuals, quantile_scores
from sottovoce_papers.simulation.conformal import quantile_forest, quantile_network
from sottovoce_papers.simulation.conformal.data_sets import DataSet
from sottovoce_papers.simulation.conformal.real_scores import Scored
from sottovoce_papers.simulation.families import Generator

ALPHA = 0.1
NETWORK_LEVELS = (0.1, 0.9)
SEEDS = 1 << 31  # scikit-learn's seeds have 32 bits

Predictor = Callable[[DataSet, Any, Any, Generator], Scored]


def ridge(held: DataSet, train: Any, rest: Any, generator: Generator) -> Scored:
    """Return the absolute residuals of ridge regression; nothing is drawn."""
    from sklearn.linear_model import RidgeCV
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    del generator
    responses = in_units(held, train)
    with threadpool_limits(1):
        predicted = RidgeCV().fit(held.features[train], responses[train]).predict(held.features[rest])
    return Scored(absolute_residuals(np.asarray(predicted), responses[rest]), np.zeros(len(rest)))


def forest(held: DataSet, train: Any, rest: Any, generator: Generator) -> Scored:
    """Return the scores of a quantile forest."""
    return forest_scores(held, train, rest, generator).rest


class ForestScores(NamedTuple):
    """Scores of new records, and those of the training records by the trees that have not seen them."""

    rest: Scored
    unseen: Floats


def forest_scores(held: DataSet, train: Any, rest: Any, generator: Generator) -> ForestScores:
    """Return the scores of a quantile forest with tuned levels, of new records and of its own."""
    responses = in_units(held, train)
    grown = quantile_forest.grow(held.features[train], responses[train], int(generator.integers(SEEDS)))
    levels = quantile_forest.tuned_levels(grown, ALPHA)
    own, bands = quantile_forest.out_of_bag(grown, levels)
    ends = quantile_forest.quantiles(grown, held.features[rest], levels)
    return ForestScores(_scored(ends, responses[rest]), quantile_scores(bands[:, 0], bands[:, 1], own))


def network(held: DataSet, train: Any, rest: Any, generator: Generator) -> Scored:
    """Return the scores of a quantile network."""
    responses = in_units(held, train)
    trained = quantile_network.train(held.features[train], responses[train], NETWORK_LEVELS, generator)
    return _scored(quantile_network.predict(trained, held.features[rest]), responses[rest])


PREDICTORS: dict[str, Predictor] = {"ridge": ridge, "forest": forest, "network": network}


def in_units(held: DataSet, train: Any) -> Floats:
    """Return all responses in units of the mean absolute training response.

    >>> in_units(DataSet("two", np.zeros((2, 1)), np.array([-4.0, 2.0])), [0]).tolist()
    [-1.0, 0.5]
    """
    return np.asarray(held.responses / np.mean(np.abs(held.responses[train])))


def _scored(ends: Floats, responses: Floats) -> Scored:
    return Scored(quantile_scores(ends[:, 0], ends[:, 1], responses), ends[:, 1] - ends[:, 0])
