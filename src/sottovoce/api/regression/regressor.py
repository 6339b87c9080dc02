"""Private quantile regression as a scikit-learn estimator: each person sends one report."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from sottovoce.api.regression.scikit import REGRESSOR, DataConversionWarning, check_is_fitted, d2_pinball_score
from sottovoce.api.regression.stream import Progress, begin, tied_responses, warnings_of
from sottovoce.core.arrays import Bools, Floats
from sottovoce.core.calling import public, say_before, warn
from sottovoce.core.categories import raw_names
from sottovoce.core.checks import confidence, number
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.inference.regression.region import Ellipsoid
from sottovoce.server.description import Test
from sottovoce.server.explanation import Explanation
from sottovoce.server.regression.expected import explain_regression
from sottovoce.server.regression.result import RegressionResult
from sottovoce.server.regression.summary import sentence_of_missing


class PrivateQuantileRegressor(*REGRESSOR):  # type: ignore[misc]
    """Linear quantile regression under local differential privacy, each person answering once.

    Parameters
    ----------
    tau
        The quantile level, or a sequence of levels; with a sequence, results have an axis of levels, ascending.
    epsilon
        The budget of a person's one report; ``math.inf`` for no privacy.
    channel
        "auto" (the best for this setting), "cq", "cq:q,s", "lp", "box", "open", or a ``RegressionChannel``.
    bounds
        Public bounds of the raw covariates: a pair, a pair for each column, or a mapping from column to pair; None if
        they lie in [-1, 1].
    inference
        "dithered" (default), or the paper's recursion with "self-normalised", "groups" or "higrad" intervals.
    clip
        Move covariates beyond a bound to it, and count the rows, instead of refusing them.
    schedule
        "auto"; "information" is the step rule of "dithered", "paper" that of the others.
    density
        A public guess of the response's conditional density at the quantile; one, or one for each level.
    size
        A public guess of the length of the vector of coefficients, in the unit of the response, covariates being
        scaled to [-1, 1]. Without density and size the first people tell them, in private.
    start
        A public guess of the intercept, or of all raw coefficients, the intercept first.
    second_moments
        Public E z_j^2 of the covariates after scaling to [-1, 1], or the matrix E z z'; None: 1/3.
    limit
        How far a coefficient of a scaled covariate may move from its start; None: anywhere.
    groups
        For "groups": their number.
    tree
        For "higrad": the branches of each level.
    shuffle
        Ask people in random order; False if the order is the stream's own.
    levels
        The levels of columns of categories, public: a mapping from column to its levels, such as ``{"carrier": ["AA",
        "UA", "other"]}``. Each becomes columns of 0 and 1 but for the first, the base; "other" takes what is not named.
    two_valued
        Names of columns that take their two bounds and nothing between: public, and checked. Fewer people then tell as
        much; columns that `levels` makes are such anyway. Columns without names are x0, x1, ...
    moments
        What a census knows of the covariates: a mapping from column to its mean, or (mean, standard deviation); or the
        whole matrix E x x' of x = (1, covariates). Taken as exact, so nobody is asked about it.
    randomness
        None for the operating system's entropy; `sim.dice(seed)` for simulation, which makes the fit not private. Each
        `fit` throws a fresh copy of seeded dice, so that it can be repeated.

    Attributes
    ----------
    coef_, intercept_
        Raw slopes (p,) and intercept; with several levels (levels, p) and (levels,).
    result_
        The result by itself: it holds no record, and `summary`, `to_dict`, `save`, `plot` and `report` are its own.
    determined_
        Which of ``coef_`` the reports tell enough of to rely on them: (p,), or (levels, p).
    taus_, epsilon_, epsilon_in_all_, private_, n_reports_, clipped_, design_, warnings_
        Levels; realised epsilon, computed from the channel; what the dearest row has cost in this process, by fits and
        other studies (None: simulated); whether the fit protects anybody; people asked; rows moved to their bounds; the
        channel and why it was chosen (print ``design_.explain()``); sentences to know of.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import sottovoce as sv
    >>> source = sv.sim.dice(1).generator()
    >>> hours = source.uniform(0.0, 10.0, (20_000, 1))
    >>> pay = 20.0 + 3.0 * hours[:, 0] + source.logistic(0.0, 2.0, 20_000)
    >>> guesses = {"start": 35, "density": 0.1, "size": 20}
    >>> m = sv.PrivateQuantileRegressor(0.5, 2.0, bounds=(0, 10), **guesses, randomness=sv.sim.dice(2))
    >>> low, high = m.fit(hours, pay).confidence_interval()[1]
    >>> bool(low < 3.0 < high), m.private_, round(m.epsilon_, 6)
    (True, False, 2.0)
    """

    def __init__(
        self,
        tau: Any = 0.5,
        epsilon: Any = 1.0,
        channel: Any = "auto",
        bounds: Any = None,
        inference: str = "dithered",
        *,
        clip: bool = False,
        schedule: str = "auto",
        density: Any = None,
        size: Any = None,
        start: Any = None,
        second_moments: Any = None,
        limit: Any = None,
        groups: Any = None,
        tree: Any = (4, 4),
        shuffle: bool = True,
        levels: Any = None,
        two_valued: Any = None,
        moments: Any = None,
        randomness: RandomSource | None = None,
    ) -> None:
        self.tau = tau
        self.epsilon = epsilon
        self.channel = channel
        self.bounds = bounds
        self.inference = inference
        self.clip = clip
        self.schedule = schedule
        self.density = density
        self.size = size
        self.start = start
        self.second_moments = second_moments
        self.limit = limit
        self.groups = groups
        self.tree = tree
        self.shuffle = shuffle
        self.levels = levels
        self.two_valued = two_valued
        self.moments = moments
        self.randomness = randomness

    @public
    def fit(self, X: Any, y: Any, *, progress: Progress | None = None) -> Self:  # noqa: N803
        """Ask every row of X and y once, forgetting any fit before; all input is checked before anything is spent."""
        stream, rows = begin(self.get_params(deep=False), X, y, progress, _warn, whole=True)
        say_before(*warnings_of(stream.plan, rows))
        stream.count(rows.rows, fit=True)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self._stream = stream  # kept if the asking is interrupted, so that nobody is asked again unawares
        stream.ask(rows, progress, whole=True)
        return self._look()

    def _explain_call(self, X: Any, y: Any) -> Explanation:  # noqa: N803
        """Say what ``fit`` would ask and tell, asking nobody; see `sv.explain`."""
        stream, rows = begin(self.get_params(deep=False), X, y, None, _warn, whole=True)
        return replace(explain_regression(stream.plan, rows.rows.size), hints=tied_responses(rows))

    @public
    def partial_fit(self, X: Any, y: Any, *, progress: Progress | None = None) -> Self:  # noqa: N803
        """Ask the rows of a further batch; with ``shuffle=False`` batches give the numbers of one fit to all rows.

        Batches must be alike, such as people in random order: what the covariates look like is learnt over all of them
        together. A file sorted by a covariate, given in batches, is not covered. Rows of an earlier batch are refused,
        and so is any further batch of an estimator that was unpickled: it cannot know whose rows have answered.
        """
        given = self.get_params(deep=False)
        if hasattr(self, "_stream"):
            stream = self._stream
            rows = stream.read(given, X, y, progress, _warn)
        else:
            stream, rows = begin(given, X, y, progress, _warn, whole=False)
            say_before(*tied_responses(rows))
        stream.count(rows.rows, fit=False)
        self._stream = stream
        self._stream.ask(rows, progress, whole=False)
        return self._look()

    def _look(self) -> Self:
        """Fill the attributes from what has been heard so far."""
        stream, fitted = self._stream, self._stream.result.raw
        self.result_: RegressionResult = stream.result
        self.coef_: Floats = fitted[:, 1:] if self._several else fitted[0, 1:]
        self.intercept_: Any = fitted[:, 0] if self._several else float(fitted[0, 0])
        sure = self.result_.determined[:, 1:]
        self.determined_: Bools = sure if self._several else sure[0]
        self.taus_, self.design_ = self.result_.taus, stream.plan.design
        self.epsilon_, self.private_ = self.result_.epsilon, self.result_.private
        self.epsilon_in_all_ = stream.in_all
        raw = raw_names(stream.plan.bounds.names, stream.plan.settings.levels)
        self.n_reports_, self.clipped_, self.n_features_in_ = stream.people, stream.clipped, len(raw)
        if stream.names is not None:
            self.feature_names_in_ = np.array(raw, dtype=object)
        return self

    @public
    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return the fitted quantiles of raw covariates: (n,), or (n, levels) without crossing."""
        check_is_fitted(self)
        fitted = self.result_.predict(self._stream.features(X, _warn))
        return fitted if self._several else fitted[:, 0]

    @public
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the part of the check loss that the covariates explain (R^2 of a quantile), averaged over levels.

        It reads y as it is: nothing of it is private, and a warning says so where the fit is.
        """
        if self.private_:
            _warn("score compares with the responses themselves, which it does not protect: keep it at the site")
        fitted = self.predict(X).reshape(-1, len(self.taus_))
        scores = [
            d2_pinball_score(y, fitted[:, at], sample_weight=sample_weight, alpha=tau)
            for at, tau in enumerate(self.taus_)
        ]
        return float(np.mean(scores))

    @public
    def confidence_interval(self, level: float = 0.95, contrast: Any = None, tau: Any = None) -> Floats:
        """Return the intervals of intercept and slopes, (p + 1, 2), or of a contrast of them, (2,).

        Where people tell too little of a coefficient its interval has no ends, (-inf, inf), or is NaN under another
        ``inference``; one warning names such coefficients, and says why and how many people it takes.

        Parameters
        ----------
        level
            The confidence level; any, at no further cost.
        contrast
            Weights of intercept and slopes, or None for each of them.
        tau
            Which level; None: all that were fitted, along a first axis if tau was a sequence.
        """
        check_is_fitted(self)
        wanted, answers = confidence(level), self.result_
        levels = range(len(self.taus_)) if tau is None else [answers.level_of(tau)]
        if contrast is None:
            told = [answers.intervals(at, wanted) for at in levels]
            reasons = [(self.taus_[at], why) for at, (_, why) in zip(levels, told, strict=True)]
            if missing := sentence_of_missing(reasons):
                warn(missing)
            found = [ends for ends, _ in told]
        else:
            found = [np.array(answers.interval(at, contrast, wanted)) for at in levels]
            why = [answers.missing(at, contrast, tuple(ends)) for at, ends in zip(levels, found, strict=True)]
            for reason in dict.fromkeys(reason for reason in why if reason is not None):
                warn(f"no interval for the contrast: {reason}")
        return np.array(found) if tau is None and self._several else found[0]

    @public
    def ellipsoid(self, level: float = 0.95, tau: Any = None) -> Ellipsoid:
        """Return the ellipsoid that holds intercept and slopes at once; of several levels, name one."""
        check_is_fitted(self)
        return self.result_.ellipsoid(tau, confidence(level))

    @public
    def test(self, contrast: Any, value: float = 0.0, tau: Any = None) -> Test:
        """Test, two-sided, whether a contrast of intercept and slopes has a value."""
        check_is_fitted(self)
        supposed = number(value, "value")
        if math.isinf(supposed):
            raise BadInput(f"value must be finite, not {supposed!r}; correct it.")
        return Test(supposed, "two-sided", self.result_.p_value(tau, contrast, supposed))

    @public
    def summary(self, level: float = 0.95) -> str:
        """Return a table that a statistician reads at a glance."""
        check_is_fitted(self)
        return self.result_.summary(confidence(level))

    @public
    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON."""
        check_is_fitted(self)
        return self.result_.to_dict(confidence(level))

    def save(self, path: str | Path) -> Path:
        """Write the result as JSON; `sv.load` reads it back, as a result and not as an estimator."""
        check_is_fitted(self)
        return self.result_.save(path)

    def plot(self, path: str | Path, level: float = 0.95) -> Path:
        """Draw the coefficients with their intervals; of several levels, against tau."""
        check_is_fitted(self)
        return self.result_.plot(path, confidence(level))

    def report(self, path: str | Path) -> Path:
        """Write one page on the fit for readers outside: question, answer, picture, privacy, limits, settings."""
        check_is_fitted(self)
        return self.result_.report(path)

    @property
    def warnings_(self) -> tuple[str, ...]:
        """Return sentences to know of; they are worked out when somebody asks, as some take a second."""
        return self.result_.warnings

    @property
    def _several(self) -> bool:
        """Tell whether tau was a sequence when the fit began."""
        return bool(self.result_.facts.several)

    def __getstate__(self) -> dict[str, Any]:
        """Leave at home what is for whoever holds the rows."""
        state = dict(super().__getstate__())
        state.pop("clipped_", None)
        return state

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn's checks cannot expect: equal refits without seeded dice, good scores from few."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.randomness is None or bool(getattr(self.randomness, "private", True))
        tags.regressor_tags.poor_score = True
        return tags


def _warn(text: str) -> None:
    """Warn of something that is read all the same, in scikit-learn's categories."""
    kind = DataConversionWarning if text.startswith("A column-vector") else UserWarning
    warn(text, kind)
