"""What a conformal regressor and a conformal classifier share: sites are scored, one threshold comes back.

The calibration data are read and checked here; the sentences name a site and a row, never a value.
"""

import copy
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import column_or_1d, validate_data

from sottovoce.api.conformal.threshold import PlannedThreshold, plan_threshold, run_threshold
from sottovoce.client.reading.labels import arrow_labels, code_labels, name_sites
from sottovoce.client.reading.reader import is_missing
from sottovoce.client.reading.table import SCORES
from sottovoce.core.arrays import Floats
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import bad_row, check_names, dimensions, kind_of, label_text, sentence, unknown
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.methods import check_edges
from sottovoce.server.conformal.settings import check_settings
from sottovoce.server.explanation import Explanation

_PASSED = ("epsilon", "bins", "grid", "mechanism", "guarantee", "delta", "rule", "statistics", "exact")

_FORMS = "give a mapping from site to (X, y), a list of such pairs, or X, y and site=, the label of every row"
_PLACES = "every row must name its site"


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
    def conformalize(self, sites: Any, y: Any = None, *, site: Any = None) -> Self:
        """Find the threshold from the calibration data of many sites, each of which sends one message.

        Parameters
        ----------
        sites
            A mapping from site to its (X, y); a sequence of such pairs; or one table X of all rows.
        y, site
            With one table: its responses, and the label of every row's site (None: all are of one site).
        """
        planned = self._planned(sites, y, site)
        say_before(*planned.warnings)
        self.threshold_ = run_threshold(planned)
        return self

    def _explain_call(self, sites: Any, y: Any = None, *, site: Any = None) -> Explanation:
        """Say what ``conformalize`` would ask and tell, asking nobody; see `sv.explain`."""
        return self._planned(sites, y, site).explain()

    def _planned(self, sites: Any, y: Any, site: Any) -> PlannedThreshold:
        """Check everything and score every site, as ``conformalize`` does before any message is sent."""
        self._opened("conformalize")
        minimum, maximum = self._ends()
        private = self.epsilon is not None
        promise = (self.alpha, self.guarantee, self.delta, self.rule, self.statistics, self.exact)
        check_settings(*promise, self.mechanism, private)  # before the models score every site
        check_edges(minimum, maximum, self.bins, self.grid, private)
        scores, responses = self._scored(sites, y, site)
        planned = plan_threshold(
            scores,
            self.alpha,
            minimum=minimum,
            maximum=maximum,
            # a copy: seeded dice give every call the same numbers, as a seed does in scikit-learn
            randomness=copy.deepcopy(self.randomness),
            **{name: getattr(self, name) for name in _PASSED},
        )
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
        except Exception as error:  # whatever a model complains of may quote a record
            raise refused_covariates(name, X, error) from None

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one page on the threshold for readers outside: question, answer, picture, privacy, limits, settings."""
        self._threshold("report")
        return self.threshold_.report(path)

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


def read_pairs(sites: Any, y: Any = None, site: Any = None) -> dict[str, tuple[Any, Any]]:
    """Return the covariates and responses of every site.

    ``sites`` is a mapping from the name of a site to its pair (X, y); a sequence of pairs (then the sites are called
    "site 1", "site 2", …); or one table X of all rows, with its responses and the label of every row's site (None when
    all rows are of one site).

    >>> table = np.array([[1.0], [2.0], [3.0]])
    >>> pairs = read_pairs(table, [10, 20, 30], site=["south", "north", "south"])
    >>> [(name, rows.tolist(), responses) for name, (rows, responses) in pairs.items()]
    [('north', [[2.0]], [20]), ('south', [[1.0], [3.0]], [10, 30])]
    """
    if y is not None:
        if isinstance(sites, Mapping) and any(isinstance(pair, tuple) for pair in sites.values()):
            raise BadInput("y was given beside a mapping of sites: put the responses of each site in its pair (X, y).")
        return {"site 1": (sites, y)} if site is None else _parted(sites, y, site)
    if site is not None:
        raise BadInput("site was given without y: give X, y and site, the label of every row.")
    if isinstance(sites, Mapping):
        given = list(sites.items())
    elif isinstance(sites, Sequence) and not isinstance(sites, str | bytes):
        given = [(f"site {place}", pair) for place, pair in enumerate(sites, start=1)]
    else:
        raise BadInput(f"sites is {kind_of(sites)}: {_FORMS}.")
    if not given:
        raise BadInput(f"there are no sites: {_FORMS}.")
    names = check_names(name for name, _ in given)
    for name, (_, pair) in zip(names, given, strict=True):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise BadInput(f"site {name!r} is not a pair (X, y): {_FORMS}.")
    return {name: (pair[0], pair[1]) for name, (_, pair) in zip(names, given, strict=True)}


def _parted(table: Any, y: Any, site: Any) -> dict[str, tuple[Any, Any]]:
    """Part one table by the labels of its rows."""
    found = name_sites(code_labels(_labels(site), "site", _PLACES), "site", SCORES)
    n = found.codes.size
    for what, size in (("X", rows_of(table, "X")), ("y", rows_of(y, "y"))):
        if size != n:
            raise BadInput(f"{what} has {size:,} rows and site has {n:,} labels: give one label for each row.")
    names = check_names(found.labels)
    rows = [np.flatnonzero(found.codes == place) for place in range(len(names))]
    return {name: (_safe_indexing(table, at), _safe_indexing(y, at)) for name, at in zip(names, rows, strict=True)}


def _labels(site: Any) -> Any:
    """Turn the labels of rows into an Arrow column; labels of mixed types become text."""
    if isinstance(site, str | bytes):
        raise BadInput("site is text: give the labels themselves, one for each row, and leave them out of X.")
    series = nw.from_native(site, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return arrow_labels(series)
    if dimensions(site) != 1:
        raise BadInput("site has not one column: give one label for each row.")
    values = np.asarray(site, dtype=object)
    try:
        return pa.chunked_array([pa.array(values.tolist(), from_pandas=True)])
    except (pa.ArrowException, TypeError, ValueError):
        texts = [None if is_missing(label) else label_text(label) for label in values.tolist()]
        return pa.chunked_array([pa.array(texts, type=pa.string())])


def rows_of(table: Any, where: str) -> int:
    """Count the rows of a table or column."""
    shape = getattr(table, "shape", None)
    try:
        return int(shape[0]) if shape else len(table if hasattr(table, "__len__") else np.asarray(table))
    except TypeError:
        raise sentence(where, f"is {kind_of(table)}: give a table with a row for each record.") from None


def check_rows(name: str, covariates: Any, responses: npt.NDArray[Any]) -> None:
    """Refuse a site without records, or with another number of responses than of rows."""
    n = rows_of(covariates, f"X of site {name!r}")
    if n != responses.size:
        raise BadInput(f"site {name!r} has {n:,} rows in X and {responses.size:,} in y: give one response a row.")
    if not n:
        raise BadInput(f"site {name!r} has no records: leave it out.")


def refuse_shared(responses: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse two sites whose responses are the same memory: their records would count, and be asked, twice."""
    address = {name: int(values.__array_interface__["data"][0]) for name, values in responses.items()}
    for one, two in pairwise(sorted(responses, key=address.__getitem__)):
        if np.may_share_memory(responses[one], responses[two]):
            first, second = sorted((one, two), key=list(responses).index)
            raise BadInput(f"sites {first!r} and {second!r} share records: give every record to one site.")


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
