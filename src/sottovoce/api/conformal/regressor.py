"""Prediction intervals of any regressor, calibrated at many sites in one round, as a scikit-learn estimator."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LinearRegression, QuantileRegressor

from sottovoce.api.conformal.estimator import ConformalEstimator, checked_predictions, chosen, refuse_other, where_of
from sottovoce.client.reading.matrix import open_response, read_response
from sottovoce.core.arrays import Floats
from sottovoce.core.calling import warn
from sottovoce.core.checks import number
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.server.conformal.scores import absolute_residuals, interval, middle, quantile_scores

# How libraries call the level of a quantile loss, and the loss. scikit-learn's QuantileRegressor has no other loss, and
# its `alpha` is a penalty: `quantile` is looked for first.
_LEVELS = ("quantile", "quantile_alpha", "alpha")
_LOSSES = ("loss", "objective")
_QUANTILE_LOSSES = ("quantile", "reg:quantileerror")

OTHERS = "give a pair (low, high) of regressors, or one whose predict returns two columns"


class FederatedConformalRegressor(RegressorMixin, ConformalEstimator):  # type: ignore[misc]
    """A regressor with intervals that hold a new response with probability 1 - alpha, calibrated at many sites.

    Every site scores its own records with the fitted model and sends one message; scores never leave it, and with
    ``epsilon`` the message is differentially private.

    Parameters
    ----------
    estimator
        A regressor; None for linear regression. With "quantiles": a pair (low, high) of regressors; one regressor with
        a quantile loss, which is cloned at alpha / 2 and 1 - alpha / 2; or one whose predict returns two columns, such
        as ``PrivateQuantileRegressor(tau=[0.05, 0.95])``; None for a linear ``QuantileRegressor``.
    alpha
        The part of new responses that may be missed.
    conformity_score
        "absolute" (the absolute residual: intervals of one length) or "quantiles" (conformalized quantile regression:
        how far outside low and high; their length follows the data).
    epsilon
        The budget of a record for its site's one message, one for all or a mapping from site; None for no privacy.
    maximum, minimum
        With epsilon: the public range of the scores, chosen without a look at them. Unless given, minimum is 0, and
        -maximum with "quantiles", whose scores are negative inside.
    bins, grid, mechanism
        With epsilon: the number of steps between the ends, or all edges themselves; how a site answers in private,
        by default as gives the shortest sets.
    guarantee, delta
        "marginal", or "training-conditional" with probability 1 - delta over the calibration data.
    rule, statistics, exact
        How orders and ranks are chosen, how many order statistics a site sends, and whether coverage is made exact by
        randomisation; see ``conformal_threshold``, to which these are passed as they are.
    prefit
        Take the estimator, or the pair, as it is, fitted elsewhere; then ``fit`` need not be called.
    randomness
        None for the operating system's entropy; `sim.dice(seed)` for simulation, which makes the result not private.

    Attributes
    ----------
    threshold_
        The ``ConformalThreshold``: its value, coverage, orders, votes and budget.
    thresholds_
        With ``by``, in its place: the ``ConformalThresholds``, one for each group.
    estimator_
        The fitted model; with "quantiles" a pair, unless one model predicts both.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 300)[:, None]
    >>> y = 2 * x[:, 0] + np.sin(1000 * x[:, 0])
    >>> sites = {"north": (x[1::3], y[1::3]), "south": (x[2::3], y[2::3])}
    >>> model = FederatedConformalRegressor(alpha=0.1).fit(x[::3], y[::3]).conformalize(sites)
    >>> low, high = model.predict_interval([[0.5]])[0]
    >>> bool(low < 1 < high), bool(model.threshold_.coverage >= 0.9)
    (True, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        alpha: Any = 0.1,
        *,
        conformity_score: str = "absolute",
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

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return the model's predictions, (n,); with "quantiles" the middle between low and high."""
        low, high = self._predicted(X, "predict")
        return low if high is low else middle(low, high)

    def predict_interval(self, X: Any, *, site: Any = None, group: Any = None) -> Floats:  # noqa: N803
        """Return the interval of every row, (n, 2); with an infinite threshold it is the whole line.

        After ``conformalize(..., by=...)`` name the rows' ``site``, or their ``group``: one for all rows or one a row.

        With "quantiles" and low - threshold > high + threshold no response is in the set. It is then given as the one
        point in the middle, where MAPIE gives two ends that have crossed; all other intervals are MAPIE's.
        """
        threshold = self._threshold("predict_interval", X, site, group)
        low, high = self._predicted(X, "predict_interval")
        return interval(low, high, np.ravel(threshold))

    def _predicted(
        self, X: Any, method: str, name: str | None = None, n: int | None = None  # noqa: N803
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Return what the models predict as low and high, which are one array with a single prediction a row."""
        models, where = self._opened(method), f" for the rows{where_of(name)}"
        told = [self._asked(model.predict, X, name) for model in models]
        if self._kind == "quantiles" and len(models) == 1:
            both = checked_predictions(told[0], n, 2, "predictions", where, OTHERS)
            return both[:, 0], both[:, 1]
        found = [checked_predictions(each, n, None, "predictions", where) for each in told]
        return found[0], found[-1]

    @property
    def _kind(self) -> str:
        return chosen(self.conformity_score, ("absolute", "quantiles"))

    def _default(self) -> Any:
        quantiles = self.conformity_score == "quantiles"
        return QuantileRegressor(alpha=0.0, solver="highs") if quantiles else LinearRegression()

    def _models(self) -> tuple[Any, ...]:
        given = self._default() if self.estimator is None else self.estimator
        pair = check_pair(given) if isinstance(given, tuple | list) else (given,)
        for model in pair:
            refuse_other(model, "predict")
        if self._kind == "absolute" and len(pair) > 1:
            raise BadInput('the estimator is a pair of regressors: give one, or conformity_score="quantiles".')
        if self.prefit:
            return pair
        return (clone(given),) if self._kind == "absolute" else quantile_pair(given, self.alpha)

    def _responses(self, y: Any, name: str) -> npt.NDArray[Any]:
        where = f"the response y of site {name!r}"
        column = open_response(y, where, _warn)
        return np.ascontiguousarray(read_response(column, where)) if column.size else np.empty(0)

    def _site_scores(self, X: Any, responses: npt.NDArray[Any], name: str) -> Floats:  # noqa: N803
        low, high = self._predicted(X, "score_sites", name, responses.size)
        return absolute_residuals(low, responses) if high is low else quantile_scores(low, high, responses)

    def _ends(self) -> tuple[Any, Any]:
        signed = self._kind == "quantiles" and isinstance(self.maximum, Real)
        return -self.maximum if signed and self.minimum is None else self.minimum, self.maximum


def _warn(text: str) -> None:
    """Warn of a response that is read all the same."""
    warn(text, DataConversionWarning)


def quantile_pair(estimator: Any, alpha: Any) -> tuple[Any, ...]:
    """Return unfitted regressors of the quantiles alpha / 2 and 1 - alpha / 2, or the one that predicts both.

    The two ends of conformalized quantile regression (Romano, Patterson and Candès, 2019).

    The estimator is a pair of regressors; one with a quantile loss, which is cloned at the two levels; or one whose
    prediction has two columns.

    >>> low, high = quantile_pair(QuantileRegressor(), 0.2)
    >>> low.quantile, high.quantile
    (0.1, 0.9)
    """
    if isinstance(estimator, tuple | list):
        low, high = check_pair(estimator)
        return clone(low), clone(high)
    if (name := _level_of(estimator)) is None:
        return (clone(estimator),)
    missed = number(alpha, "alpha")
    if not 0 < missed < 1:
        raise BadInput(f"alpha must lie strictly between 0 and 1, not {alpha!r}; give 0.1 to miss one in ten.")
    return clone(estimator).set_params(**{name: missed / 2}), clone(estimator).set_params(**{name: 1 - missed / 2})


def check_pair(estimators: Sequence[Any]) -> tuple[Any, Any]:
    """Return a pair, refusing a sequence of another length."""
    if len(estimators) != 2:
        raise BadInput(f"the estimator is a sequence of {len(estimators)}: {OTHERS}.")
    return estimators[0], estimators[1]


def _level_of(model: Any) -> str | None:
    """Find the parameter that holds the level of a regressor, or of the only regressor inside it that has one."""
    owners: dict[str, dict[str, Any]] = {}
    for name, value in (model.get_params(deep=True) if hasattr(model, "get_params") else {}).items():
        inside, _, last = name.rpartition("__")
        owners.setdefault(inside, {})[last] = value
    levels: list[str] = []
    losses: list[Any] = []
    for inside, settings in owners.items():
        kind = next((each for each in _LEVELS if each in settings), None)
        loss = next((settings[each] for each in _LOSSES if each in settings), None)
        if kind and loss in ((*_QUANTILE_LOSSES, None) if kind == "quantile" else _QUANTILE_LOSSES):
            levels.append(f"{inside}__{kind}" if inside else kind)
        elif kind and loss:
            losses.append(loss)
    if len(levels) > 1:
        raise BadInput(f"the estimator has several levels, {' and '.join(levels)}: {OTHERS}.")
    if losses and not levels:
        raise BadInput(f'the loss of the estimator is {losses[0]!r}: set it to "quantile", or {OTHERS}.')
    return levels[0] if levels else None
