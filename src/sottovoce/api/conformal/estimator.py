"""What a conformal regressor and a conformal classifier share: sites are scored, one threshold comes back.

The calibration data are read and checked here; the sentences name a site and a row, never a value.
"""

import copy
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import column_or_1d, validate_data

from sottovoce.api.conformal.pairs import check_rows, labels_of, parted_labels, read_pairs, refuse_shared, rows_of
from sottovoce.api.conformal.threshold import PlannedThreshold, plan_threshold, run_threshold
from sottovoce.api.conformal.thresholds import PlannedThresholds, plan_thresholds, run_thresholds
from sottovoce.core.arrays import Floats
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import bad_row, dimensions, kind_of, label_text, sentence, unknown
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.methods import check_edges
from sottovoce.server.conformal.settings import check_settings
from sottovoce.server.conformal.thresholds_told import COMMON
from sottovoce.server.explanation import Explanation

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

    @public
    def conformalize(
        self,
        sites: Any,
        y: Any = None,
        *,
        site: Any = None,
        by: Any = None,
        small: str = COMMON,
        simultaneous: bool = False,
    ) -> Self:
        """Find the threshold from the calibration data of many sites, each of which sends one message.

        Parameters
        ----------
        sites
            A mapping from site to its (X, y); a sequence of such pairs; or one table X of all rows.
        y, site
            With one table: its responses, and the label of every row's site (None: all are of one site).
        by
            None for one threshold for all, ``threshold_``; else as for `conformal_thresholds`, or with one table the
            label of every row's public group: then ``thresholds_`` has one for each group.
        small, simultaneous
            With by: what groups have that are too small for a threshold of their own, and whether all thresholds hold
            at once, as for `conformal_thresholds`.
        """
        planned = self._planned(sites, y, site, by, small, simultaneous)
        say_before(*planned.warnings)
        for name in ("threshold_", "thresholds_"):
            if hasattr(self, name):
                delattr(self, name)
        if isinstance(planned, PlannedThresholds):
            self.thresholds_ = run_thresholds(planned)
        else:
            self.threshold_ = run_threshold(planned)
        return self

    def _explain_call(
        self,
        sites: Any,
        y: Any = None,
        *,
        site: Any = None,
        by: Any = None,
        small: str = COMMON,
        simultaneous: bool = False,
    ) -> Explanation:
        """Say what ``conformalize`` would ask and tell, asking nobody; see `sv.explain`."""
        return self._planned(sites, y, site, by, small, simultaneous).explain()

    def _planned(
        self, sites: Any, y: Any, site: Any, by: Any, small: Any, simultaneous: Any
    ) -> PlannedThreshold | PlannedThresholds:
        """Check everything and score every site, as ``conformalize`` does before any message is sent."""
        self._opened("conformalize")
        if by is None and (small, simultaneous) != (COMMON, False):
            raise BadInput("small and simultaneous are about thresholds by group: give by=, or leave both out.")
        minimum, maximum = self._ends()
        private = self.epsilon is not None
        promise = (self.alpha, self.guarantee, self.delta, self.rule, self.statistics, self.exact)
        check_settings(*promise, self.mechanism, private)  # before the models score every site
        check_edges(minimum, maximum, self.bins, self.grid, private)
        scores, responses = self._scored(sites, y, site)
        asked = {name: getattr(self, name) for name in _PASSED} | {"minimum": minimum, "maximum": maximum}
        # a copy: seeded dice give every call the same numbers, as a seed does in scikit-learn
        asked["randomness"] = copy.deepcopy(self.randomness)
        planned: PlannedThreshold | PlannedThresholds
        if by is None:
            planned = plan_threshold(scores, self.alpha, **asked)
        else:
            table = y is not None and not isinstance(by, str | Mapping)
            groups = parted_labels(by, sites, site) if table else by
            planned = plan_thresholds(scores, self.alpha, by=groups, small=small, simultaneous=simultaneous, **asked)
        numbers = {name: each for name, each in responses.items() if each.dtype == np.float64}
        return planned.counted_by(numbers) if len(numbers) == len(scores) else planned

    @public
    def score_sites(self, sites: Any, y: Any = None, *, site: Any = None) -> dict[str, Floats]:
        """Return the scores of every site's records: for whoever may see the records, since scores tell of them.

        Parameters
        ----------
        sites, y, site
            As in ``conformalize``.
        """
        self._opened("score_sites")
        return self._scored(sites, y, site)[0]

    def _scored(self, sites: Any, y: Any, site: Any) -> tuple[dict[str, Floats], dict[str, npt.NDArray[Any]]]:
        """Return the scores of every site's records, and their responses."""
        pairs = read_pairs(sites, y, site)
        responses = {name: self._responses(given, name) for name, (_, given) in pairs.items()}
        for name, (covariates, _) in pairs.items():
            check_rows(name, covariates, responses[name])
        refuse_shared(responses)
        for name, (covariates, _) in pairs.items():
            self._check_columns(covariates, name)
        return {name: self._site_scores(pairs[name][0], responses[name], name) for name in pairs}, responses

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

    def _threshold(self, method: str, X: Any = None, site: Any = None, group: Any = None) -> Any:  # noqa: N803
        """Return the threshold, or those of all rows, (n, 1); or say what has to be called first."""
        self._opened(method)
        if hasattr(self, "thresholds_"):
            return self._threshold_of_rows(X, site, group)
        if site is not None or group is not None:
            raise BadInput("there is one threshold for all: leave site and group out, or conformalize with by=.")
        if not hasattr(self, "threshold_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not conformalized yet: call conformalize(sites) before "
                f"{method}."
            )
        return float(self.threshold_.value)

    def _threshold_of_rows(self, X: Any, site: Any, group: Any) -> Floats:  # noqa: N803
        """Return the threshold of every row, by its site or its group, (n, 1)."""
        if (site is None) == (group is None):
            raise BadInput(
                "thresholds are by group: say with site= or group= which the rows belong to, one or one a row."
            )
        known = self.thresholds_.value_of if site is None else self.thresholds_.value_at
        labels = group if site is None else site
        n = rows_of(X, "X")
        if isinstance(labels, str) or dimensions(labels) == 0:
            return np.full((n, 1), known(labels))
        names = [label_text(label) for label in labels_of(labels).to_pylist()]
        if len(names) != n:
            raise BadInput(
                f"X has {n:,} rows and {len(names):,} labels were given: give one for each row, or one for all."
            )
        values = {name: known(name) for name in dict.fromkeys(names)}
        return np.array([values[name] for name in names]).reshape(n, 1)

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
        except Exception as error:  # whatever a model complains of may quote a record
            raise refused_covariates(name, X, error) from None

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one page on the threshold for readers outside: question, answer, picture, privacy, limits, settings."""
        if not hasattr(self, "thresholds_"):
            self._threshold("report")
        made: Any = getattr(self, "thresholds_", None) or self.threshold_
        written: Path = made.report(path)
        return written

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
        raise unknown("conformity_score", value, allowed)
    return str(value)


def refused_covariates(name: str, covariates: Any, error: Exception) -> BadInput:
    """Say that a model did not take the covariates of a site, without its own words: they may quote a record."""
    if isinstance(error, BadInput):
        return BadInput(f"site {name!r}: {error}")
    where = f"X of site {name!r}"
    try:
        values = np.asarray(covariates, dtype=np.float64)
    except (TypeError, ValueError):
        return sentence(where, f"is refused by the model ({type(error).__name__}): are there texts in it?")
    unusable = ~np.isfinite(values)
    if values.ndim == 2 and unusable.any():
        row = int(unusable.any(axis=1).argmax())
        kind = "NaN" if np.isnan(values[row]).any() else "infinity"
        return bad_row(where, row, kind, "the model does not take it, so remove the row")
    return sentence(where, f"has the shape {values.shape} and is refused by the model ({type(error).__name__}).")


def checked_predictions(
    values: Any, n: int | None, columns: int | None, what: str, where: str, advice: str = "give another model"
) -> npt.NDArray[np.float64]:
    """Return what a model predicts for rows as (n,) or (n, columns) floats, refusing anything else.

    ``n`` is the number of rows the model was given, None to believe the model; ``columns`` None is for one number a
    row; ``what``, ``where`` and ``advice`` are parts of a sentence.
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"the model gives {what} that are not numbers{where}: give another model.") from None
    if columns is None and numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    size = numbers.shape[0] if n is None and numbers.ndim else n
    wanted = (size,) if columns is None else (size, columns)
    if numbers.shape != wanted:
        raise BadInput(f"the model gives {what} of shape {numbers.shape}{where}, not {wanted}: {advice}.")
    unusable = ~np.isfinite(numbers) if columns is None else ~np.isfinite(numbers).all(axis=1)
    if unusable.any():
        row = int(unusable.argmax())
        kind = "NaN" if np.isnan(numbers[row]).any() else "infinity"
        raise BadInput(f"the model gives {what} with {kind} in row {row + 1}{where}: remove that row, or the cause.")
    return numbers
