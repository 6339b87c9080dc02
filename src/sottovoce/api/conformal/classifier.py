"""Prediction sets of any classifier, calibrated at many sites in one round, as a scikit-learn estimator."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression

from sottovoce.api.conformal.estimator import ConformalEstimator, checked_predictions, chosen, refuse_other, where_of
from sottovoce.core.arrays import Bools, Floats
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.server.conformal.scores import (
    LabelScores,
    aps_scores,
    before_scores,
    label_set,
    lac_scores,
    with_likeliest,
)

# Probabilities in single precision add up to one less exactly than this.
_SUM = 1e-3
_SCORES: dict[str, LabelScores] = {"lac": lac_scores, "aps-inclusive": aps_scores, "aps": before_scores}


class FederatedConformalClassifier(ClassifierMixin, ConformalEstimator):  # type: ignore[misc]
    """A classifier with sets that hold the label of a new record with probability 1 - alpha, calibrated at many sites.

    Every site scores its own records with the fitted model and sends one message; scores never leave it, and with
    ``epsilon`` the message is differentially private.

    Parameters
    ----------
    estimator
        A classifier with ``predict_proba``; None for logistic regression.
    alpha
        The part of new labels that may be missed.
    conformity_score
        "lac": one minus the probability of the label; the smallest sets on average, some of them empty. "aps": the
        probabilities cumulated from the largest down to the label's, without its own, so that sets adapt to the row
        and none is empty. "aps-inclusive": with the label's own; where the model is sure its sets are far larger, and
        the most probable label is always kept, as in MAPIE, which can only raise the coverage. Labels of one
        probability are cumulated together.
    epsilon
        The budget of a record for its site's one message, one for all or a mapping from site; None for no privacy.
    maximum, minimum
        With epsilon: the range of the scores; 1 and 0 unless given, between which all of them lie.
    bins, grid, mechanism
        With epsilon: the number of steps between the ends, or all edges themselves; how a site answers in private,
        by default as gives the shortest sets.
    guarantee, delta
        "marginal", or "training-conditional" with probability 1 - delta over the calibration data.
    rule, statistics, exact
        How orders and ranks are chosen, how many order statistics a site sends, and whether coverage is made exact by
        randomisation; see ``conformal_threshold``, to which these are passed as they are.
    prefit
        Take the estimator as it is, fitted elsewhere; then ``fit`` need not be called.
    randomness
        None for the operating system's entropy; `sim.dice(seed)` for simulation, which makes the result not private.

    Attributes
    ----------
    threshold_
        The ``ConformalThreshold``: its value, coverage, orders, votes and budget.
    thresholds_
        With ``by``, in its place: the ``ConformalThresholds``, one for each group.
    estimator_, classes_
        The fitted model and its labels, in the order of the columns of a set.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 300)[:, None]
    >>> y = np.where(x[:, 0] + 0.8 * np.sin(1000 * x[:, 0]) > 0, "ill", "well")
    >>> sites = {"north": (x[1::3], y[1::3]), "south": (x[2::3], y[2::3])}
    >>> model = FederatedConformalClassifier(alpha=0.1).fit(x[::3], y[::3]).conformalize(sites)
    >>> model.classes_.tolist(), model.predict_set([[-1.0], [0.0], [1.0]]).tolist()
    (['ill', 'well'], [[False, True], [True, True], [True, False]])
    """

    def __init__(
        self,
        estimator: Any = None,
        alpha: Any = 0.1,
        *,
        conformity_score: str = "lac",
        epsilon: Any = None,
        maximum: Any = None,
        minimum: Any = None,
        bins: Any = None,
        grid: Any = None,
        mechanism: str = "auto",
        guarantee: str = "marginal",
        delta: Any = 0.1,
        rule: str = "closest",
        statistics: Any = 1,
        exact: bool = False,
        prefit: bool = False,
        randomness: RandomSource | None = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.conformity_score = conformity_score
        self.epsilon = epsilon
        self.maximum = maximum
        self.minimum = minimum
        self.bins = bins
        self.grid = grid
        self.mechanism = mechanism
        self.guarantee = guarantee
        self.delta = delta
        self.rule = rule
        self.statistics = statistics
        self.exact = exact
        self.prefit = prefit
        self.randomness = randomness

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the model's labels, (n,)."""
        (model,) = self._opened("predict")
        return np.asarray(model.predict(X))

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the model's probabilities, (n, classes)."""
        return self._probabilities(X, "predict_proba")

    def predict_set(self, X: Any, *, site: Any = None, group: Any = None) -> Bools:  # noqa: N803
        """Tell for every row which of ``classes_`` are in its set, (n, classes).

        After ``conformalize(..., by=...)`` name the rows' ``site``, or their ``group``: one for all rows or one a row.
        """
        threshold = self._threshold("predict_set", X, site, group)
        probabilities = self._probabilities(X, "predict_set")
        sets = label_set(self._label_scores(probabilities), threshold)
        return with_likeliest(sets, probabilities) if self._kind == "aps-inclusive" else sets

    def _probabilities(self, X: Any, method: str, name: str | None = None, n: int | None = None) -> Floats:  # noqa: N803
        """Return the model's probabilities, checked."""
        (model,) = self._opened(method)
        told = self._asked(model.predict_proba, X, name)
        where = f" for the rows{where_of(name)}"
        found = checked_predictions(told, n, len(self.classes_), "probabilities", where)
        if found.min() < -_SUM or np.abs(found.sum(axis=1) - 1).max() > _SUM:
            raise BadInput(f"the model gives probabilities that do not add up to 1{where}: give another model.")
        return found

    @property
    def _kind(self) -> str:
        return chosen(self.conformity_score, tuple(_SCORES))

    def _label_scores(self, probabilities: Floats) -> Floats:
        """Score every label of every row."""
        return _SCORES[self._kind](probabilities)

    def _default(self) -> Any:
        return LogisticRegression()

    def _models(self) -> tuple[Any, ...]:
        chosen(self.conformity_score, tuple(_SCORES))
        model = self._default() if self.estimator is None else self.estimator
        refuse_other(model, "predict_proba")
        return (model if self.prefit else clone(model),)

    def _take(self, models: tuple[Any, ...]) -> Any:
        classes = models[0].classes_
        if isinstance(classes, list):
            raise BadInput("the model predicts several labels a row: give one classifier for each of them.")
        super()._take(models)
        self.classes_ = np.asarray(classes)
        return self

    def _responses(self, y: Any, name: str) -> npt.NDArray[Any]:
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise BadInput(f"y of site {name!r} has the shape {labels.shape}: give one label for each row.")
        return np.ascontiguousarray(labels)

    def _site_scores(self, X: Any, responses: npt.NDArray[Any], name: str) -> Floats:  # noqa: N803
        column = {label: place for place, label in enumerate(self.classes_.tolist())}
        try:
            places = np.array([column[label] for label in responses.tolist()])
        except (KeyError, TypeError):
            raise BadInput(
                f"y of site {name!r} holds a label that the model does not know: fit the model to all labels."
            ) from None
        scores = self._label_scores(self._probabilities(X, "score_sites", name, responses.size))
        return np.take_along_axis(scores, places[:, None], axis=1)[:, 0]

    def _ends(self) -> tuple[Any, Any]:
        needed = self.epsilon is not None and self.grid is None and self.maximum is None
        return self.minimum, 1.0 if needed else self.maximum
