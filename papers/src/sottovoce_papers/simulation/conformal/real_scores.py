"""Conformity scores of models fitted to real data: absolute residuals, and those of conformalized quantile regression.

The models are scikit-learn's, imported late: ridge regression, boosted trees, and boosted trees of two quantiles. They
are fitted on one thread: where cores are shared, waiting threads cost thirty times the work.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.conformal.scores import absolute_residuals, quantile_scores
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.conformal.data_sets import DataSet
from sottovoce_papers.simulation.conformal.score_distributions import ScoreDistribution, empirical

ROUNDS = 100  # of boosting


class Scored(NamedTuple):
    """Scores of records that the model has not seen, and the length of each one's interval at threshold zero."""

    scores: Floats
    lengths: Floats


def ridge(held: DataSet, train: Any, rest: Any) -> Scored:
    """Return the absolute residuals of ridge regression."""
    from sklearn.linear_model import Ridge

    return _absolute(_fitted(Ridge(), held, train), held, rest)


def boosted(held: DataSet, train: Any, rest: Any) -> Scored:
    """Return the absolute residuals of boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=ROUNDS, early_stopping=False, random_state=1)
    return _absolute(_fitted(model, held, train), held, rest)


def quantiles(held: DataSet, train: Any, rest: Any, alpha: float = 0.1) -> Scored:
    """Return the scores of conformalized quantile regression with boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    ends = []
    for level in (alpha / 2, 1 - alpha / 2):
        model = HistGradientBoostingRegressor(
            loss="quantile", quantile=level, max_iter=ROUNDS, early_stopping=False, random_state=1
        )
        ends.append(_fitted(model, held, train).predict(held.features[rest]))
    return Scored(quantile_scores(ends[0], ends[1], held.responses[rest]), ends[1] - ends[0])


MODELS: dict[str, Callable[[DataSet, Any, Any], Scored]] = {"ridge": ridge, "boosted": boosted, "CQR": quantiles}


def residual_distribution(held: DataSet, seed: int = 1) -> ScoreDistribution:
    """Return the distribution of absolute residuals of boosted trees fitted to the other half of the records."""
    order = dice(seed).generator().permutation(len(held.responses))
    half = len(order) // 2
    return empirical(held.name, boosted(held, order[:half], order[half:]).scores)


def _fitted(model: Any, held: DataSet, train: Any) -> Any:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        return model.fit(held.features[train], held.responses[train])


def _absolute(model: Any, held: DataSet, rest: Any) -> Scored:
    predicted = np.asarray(model.predict(held.features[rest]), dtype=np.float64)
    return Scored(absolute_residuals(predicted, held.responses[rest]), np.zeros(len(predicted)))
