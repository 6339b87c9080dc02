"""What the regressor takes from scikit-learn, or the little of it that a fit needs where that is not installed."""

import inspect
from typing import TYPE_CHECKING, Any, Self

from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    import sklearn
else:
    try:
        import sklearn
    except ModuleNotFoundError:
        sklearn = None


class PlainRegressor:
    """Parameters by name, as scikit-learn's estimators have them."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise BadInput(f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        known = self._defaults()
        given = {name: value for name, value in self.get_params().items() if value is not known[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the parameters' names and defaults."""
        told = inspect.signature(cls.__init__).parameters
        return {name: each.default for name, each in told.items() if name != "self"}


class PlainNotFitted(ValueError, AttributeError):
    """The estimator was not fitted."""


def check_is_fitted(estimator: Any) -> None:
    """Refuse an estimator that was not fitted."""
    if sklearn is not None:
        from sklearn.utils import validation

        validation.check_is_fitted(estimator)
    elif not hasattr(estimator, "result_"):
        name = type(estimator).__name__
        raise PlainNotFitted(f"this {name} instance is not fitted yet: call fit with records before using it")


def d2_pinball_score(y: Any, fitted: Any, *, sample_weight: Any, alpha: float) -> float:
    """Return the part of the check loss that fitted quantiles explain."""
    if sklearn is None:
        raise BadInput("score needs scikit-learn: install it with: pip install scikit-learn")
    from sklearn import metrics

    return float(metrics.d2_pinball_score(y, fitted, sample_weight=sample_weight, alpha=alpha))


def _bases() -> tuple[tuple[type, ...], type[UserWarning]]:
    """Return the classes that a regressor is made of, and how a column vector is warned of."""
    if sklearn is None:
        return (PlainRegressor,), UserWarning
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.exceptions import DataConversionWarning

    return (RegressorMixin, BaseEstimator), DataConversionWarning


REGRESSOR, DataConversionWarning = _bases()
