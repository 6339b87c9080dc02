"""What a conformal regressor and a conformal classifier share: sites are scored, one threshold comes back."""

import copy
import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import column_or_1d, validate_data

from sottovoce.api.conformal.sites import check_rows, read_pairs, refuse_shared, refused_covariates
from sottovoce.api.conformal.threshold import conformal_threshold
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import kind_of
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.settings import check_edges, check_settings

_PASSED = ("epsilon", "bins", "grid", "mechanism", "guarantee", "delta", "rule", "statistics", "exact")


class ConformalEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """A model of scikit-learn, and a threshold of its scores from many sites; scores and calibration data are not kept.

    A subclass knows its models, reads responses, and scores them.
    """

    @abstractmethod
    def _default(self) -> Any:
        """Return the model for whoever gives none."""

    @abstractmethod
    def _models(self) -> tuple[Any, ...]:
        """Return the models to fit, or those that are fitted already."""

    @abstractmethod
    def _responses(self, y: Any, name: str) -> npt.NDArray[Any]:
        """Read the responses of a site into a contiguous array."""

    @abstractmethod
    def _site_scores(self, X: Any, responses: npt.NDArray[Any], name: str) -> Floats:  # noqa: N803
        """Score the records of a site."""

    @abstractmethod
    def _ends(self) -> tuple[Any, Any]:
        """Return the smallest and the largest score, as public as the settings."""

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:  # noqa: N803
        """Fit the model, forgetting any threshold before; a model that is ``prefit`` is taken as it is.

        Parameters
        ----------
        X, y
            Training data; not those of the calibration.
        **fit_params
            Passed on to the model's own ``fit``.
        """
        models = self._models()
        if not self.prefit:
            # the model itself complains of no responses at all
            responses = None if y is None else column_or_1d(y, warn=True)
            for model in models:
                model.fit(X, responses, **fit_params)
        return self._take(models)

    def conformalize(self, sites: Any, y: Any = None, *, site: Any = None) -> Self:
        """Find the threshold from the calibration data of many sites, each of which sends one message.

        Parameters
        ----------
        sites
            A mapping from site to its (X, y); a sequence of such pairs; or one table X of all rows.
        y, site
            With one table: its responses, and the label of every row's site (None: all are of one site).
        """
        self._opened("conformalize")
        minimum, maximum = self._ends()
        private = self.epsilon is not None
        promise = (self.alpha, self.guarantee, self.delta, self.rule, self.statistics, self.exact)
        check_settings(*promise, self.mechanism, private)  # before the models score every site
        check_edges(minimum, maximum, self.bins, self.grid, self.mechanism, private)
        scores = self.score_sites(sites, y, site=site)
        self.threshold_ = conformal_threshold(
            scores,
            self.alpha,
            minimum=minimum,
            maximum=maximum,
            # a copy: seeded dice give every call the same numbers, as a seed does in scikit-learn
            randomness=copy.deepcopy(self.randomness),
            **{name: getattr(self, name) for name in _PASSED},
        )
        return self

    def score_sites(self, sites: Any, y: Any = None, *, site: Any = None) -> dict[str, Floats]:
        """Return the scores of every site's records: for whoever may see the records, since scores tell of them.

        Parameters
        ----------
        sites, y, site
            As in ``conformalize``.
        """
        self._opened("score_sites")
        pairs = read_pairs(sites, y, site)
        responses = {name: self._responses(given, name) for name, (_, given) in pairs.items()}
        for name, (covariates, _) in pairs.items():
            check_rows(name, covariates, responses[name])
        refuse_shared(responses)
        for name, (covariates, _) in pairs.items():
            self._check_columns(covariates, name)
        return {name: self._site_scores(pairs[name][0], responses[name], name) for name in pairs}

    def _opened(self, method: str) -> tuple[Any, ...]:
        """Return the fitted models, or say what has to be called first."""
        if not hasattr(self, "estimator_"):
            if not self.prefit:
                raise NotFittedError(
                    f"This {type(self).__name__} instance is not fitted yet: call fit(X, y) before {method}, or give "
                    "a fitted estimator with prefit=True."
                )
            self._take(self._models())
        return self.estimator_ if isinstance(self.estimator_, tuple) else (self.estimator_,)

    def _threshold(self, method: str) -> float:
        """Return the threshold, or say what has to be called first."""
        self._opened(method)
        if not hasattr(self, "threshold_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not conformalized yet: call conformalize(sites) before "
                f"{method}."
            )
        return float(self.threshold_.value)

    def _take(self, models: tuple[Any, ...]) -> Self:
        """Keep fitted models, and forget what belonged to those before."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.estimator_ = models if len(models) > 1 else models[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(models[0], name):
                setattr(self, name, getattr(models[0], name))
        return self

    def _check_columns(self, X: Any, name: str) -> None:  # noqa: N803
        """Refuse a site whose columns are not those of the model; names of columns are public."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the model itself warns of names that are missing
                validate_data(self, X, reset=False, skip_check_array=True)
        except ValueError as error:
            raise BadInput(f"X of site {name!r} does not fit the model: {' '.join(str(error).split())}") from None
        except TypeError as error:
            raise refused_covariates(name, X, error) from None

    def _asked(self, question: Any, X: Any, name: str | None) -> Any:  # noqa: N803
        """Ask a model something of rows; at a site its own complaints are not repeated."""
        if name is None:
            return question(X)
        try:
            return question(X)
        except NotFittedError:
            raise
        except (ValueError, TypeError) as error:
            raise refused_covariates(name, X, error) from None

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there is a model to predict with."""
        return bool(self.prefit) or hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        """Take over what the model itself accepts."""
        tags = super().__sklearn_tags__()
        inner = self._default() if self.estimator is None else self.estimator
        inner = inner[0] if isinstance(inner, tuple | list) and inner else inner
        if hasattr(inner, "__sklearn_tags__"):
            found = get_tags(inner)
            tags.input_tags, tags.non_deterministic = found.input_tags, found.non_deterministic
        return tags


def where_of(name: str | None) -> str:
    """Say at which site, if at one."""
    return "" if name is None else f" of site {name!r}"


def refuse_other(model: Any, method: str) -> None:
    """Refuse a model without a method."""
    if not hasattr(model, method):
        raise BadInput(f"the estimator is {kind_of(model)} without {method}: give one that has it.")


def chosen(value: Any, allowed: tuple[str, ...]) -> str:
    """Return the name of a score, or refuse."""
    if value not in allowed:
        raise BadInput(f"conformity_score must be {' or '.join(map(repr, allowed))}, not {value!r}; choose one.")
    return str(value)
