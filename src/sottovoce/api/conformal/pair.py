"""The two quantile regressors of conformalized quantile regression (Romano, Patterson and Candès, 2019)."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from sottovoce.core.checks import number
from sottovoce.core.errors import BadInput

# How libraries call the level of a quantile loss, and the loss. scikit-learn's QuantileRegressor has no other loss, and
# its `alpha` is a penalty: `quantile` is looked for first.
_LEVELS = ("quantile", "quantile_alpha", "alpha")
_LOSSES = ("loss", "objective")
_QUANTILE_LOSSES = ("quantile", "reg:quantileerror")

OTHERS = "give a pair (low, high) of regressors, or one whose predict returns two columns"


def quantile_pair(estimator: Any, alpha: Any) -> tuple[Any, ...]:
    """Return unfitted regressors of the quantiles alpha / 2 and 1 - alpha / 2, or the one that predicts both.

    Parameters
    ----------
    estimator
        A pair of regressors; one with a quantile loss, which is cloned at the two levels; or one whose prediction has
        two columns.
    alpha
        The part of new responses that may be missed.

    Examples
    --------
    >>> from sklearn.linear_model import QuantileRegressor
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
