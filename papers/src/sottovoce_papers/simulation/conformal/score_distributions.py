"""Known distributions of conformity scores, some with gaps or ties at the level that matters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.families import FAMILIES, inverted

PUBLIC = 1 - 1 / 5000  # the level of the score that the public grid ends at, where nothing else is said
NEARLY = 1e-9  # 0.3 / 0.1 is not 3 in floating point: what is this close counts as a multiple


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """A distribution of scores: P(S <= x), and the smallest score at which that reaches a level."""

    name: str
    cdf: Callable[[npt.ArrayLike], Floats]
    quantile: Callable[[npt.ArrayLike], Floats]

    def edges(self, bins: int = 100, end: float | None = None, minimum: float = 0.0) -> Floats:
        """Return a public grid of equal steps up to an end, by default the score of level ``PUBLIC``.

        >>> score_distribution("exponential").edges(4, end=2.0).tolist()
        [0.5, 1.0, 1.5, 2.0]
        """
        top = float(self.quantile(PUBLIC)) if end is None else end
        return np.linspace(minimum, top, bins + 1)[1:]

    def rounded(self, step: float) -> "ScoreDistribution":
        """Return the distribution of the scores rounded up to multiples of a step.

        >>> distribution = score_distribution("exponential").rounded(0.5)
        >>> float(distribution.quantile(0.9)), bool(distribution.cdf(2.5) == distribution.cdf(2.9))
        (2.5, True)
        """

        def last(x: npt.ArrayLike) -> Floats:
            return np.asarray(step * np.floor(np.asarray(x) / step + NEARLY))

        return ScoreDistribution(
            f"{self.name}, steps of {step:g}",
            lambda x: self.cdf(last(x)),
            lambda u: np.asarray(step * np.ceil(self.quantile(u) / step - NEARLY)),
        )


def mixture(name: str, distributions: Sequence[ScoreDistribution], shares: Sequence[float]) -> ScoreDistribution:
    """Return a distribution that is one of several with given chances.

    >>> both = mixture("two", [score_distribution("exponential"), score_distribution("half-normal")], [0.5, 0.5])
    >>> round(float(both.cdf(both.quantile(0.9))), 12)
    0.9
    """

    def cdf(x: npt.ArrayLike) -> Floats:
        return np.asarray(
            sum(share * distribution.cdf(x) for share, distribution in zip(shares, distributions, strict=True))
        )

    def quantile(u: npt.ArrayLike) -> Floats:
        ends = np.array([distribution.quantile(u) for distribution in distributions])
        return inverted(cdf, ends.min(axis=0), ends.max(axis=0), u)

    return ScoreDistribution(name, cdf, quantile)


def scaled(distribution: ScoreDistribution, scale: float, shift: float = 0.0) -> ScoreDistribution:
    """Return the distribution of shift + scale S.

    >>> float(scaled(score_distribution("uniform"), 2.0, 1.0).quantile(0.5))
    2.0
    """
    return ScoreDistribution(
        f"{shift:g} + {scale:g} {distribution.name}",
        lambda x: distribution.cdf((np.asarray(x) - shift) / scale),
        lambda u: np.asarray(shift + scale * distribution.quantile(u)),
    )


def empirical(name: str, scores: npt.ArrayLike) -> ScoreDistribution:
    """Return the distribution of a score drawn with replacement from those given.

    >>> distribution = empirical("three", [3.0, 1.0, 2.0])
    >>> distribution.cdf([0.5, 2.0]).round(3).tolist(), distribution.quantile([0.1, 1 / 3, 0.9]).tolist()
    ([0.0, 0.667], [1.0, 1.0, 3.0])
    """
    held = np.sort(np.asarray(scores, dtype=np.float64))
    n = held.size
    return ScoreDistribution(
        name,
        lambda x: np.asarray(np.searchsorted(held, x, side="right") / n),
        lambda u: held[np.clip(np.ceil(np.asarray(u) * n - NEARLY).astype(np.int64) - 1, 0, n - 1)],
    )


def score_distribution(name: str) -> ScoreDistribution:
    """Return a distribution by name, one of `DISTRIBUTIONS`.

    >>> round(float(score_distribution("half-normal").quantile(0.9)), 4)
    1.6449
    """
    if name not in DISTRIBUTIONS:
        raise BadInput(f"there is no distribution of scores {name!r}; choose {', '.join(sorted(DISTRIBUTIONS))}.")
    return DISTRIBUTIONS[name]()


def _standard(name: str, family: str, *shape: float) -> ScoreDistribution:
    cdf, _, quantile, _ = FAMILIES[family]
    return ScoreDistribution(name, lambda x: np.asarray(cdf(*shape, x)), lambda u: np.asarray(quantile(*shape, u)))


def _folded(name: str, family: str, *shape: float) -> ScoreDistribution:
    """Return the distribution of the absolute value under a distribution that is symmetric about zero."""
    distribution = _standard(name, family, *shape)
    return ScoreDistribution(
        name,
        lambda x: np.maximum(2 * distribution.cdf(x) - 1, 0.0),
        lambda u: distribution.quantile((1 + np.asarray(u)) / 2),
    )


def _gap(below: float) -> ScoreDistribution:
    """Return a distribution with nothing between 1 and 9, a given part below."""
    uniform = score_distribution("uniform")
    return mixture(f"gap at {below:g}", [uniform, scaled(uniform, 1.0, 9.0)], [below, 1 - below])


DISTRIBUTIONS: dict[str, Callable[[], ScoreDistribution]] = {
    "uniform": lambda: _standard("uniform", "uniform"),
    "half-normal": lambda: _folded("half-normal", "normal"),
    "log-normal": lambda: _standard("log-normal", "lognormal", 1.0),
    "exponential": lambda: _standard("exponential", "exponential"),
    "t3": lambda: _folded("t3", "student", 3.0),
    "heavy mixture": lambda: mixture(
        "heavy mixture",
        [score_distribution("half-normal"), scaled(score_distribution("half-normal"), 6.0)],
        [0.85, 0.15],
    ),
    "gap at 0.9": lambda: _gap(0.9),
    "gap at 0.88": lambda: _gap(0.88),
    "rounded exponential": lambda: score_distribution("exponential").rounded(0.5),
    "ten values": lambda: score_distribution("uniform").rounded(0.1),
    "signed": lambda: scaled(_standard("signed", "student", 3.0), 1.0, -0.5),
}
"""Distributions by name; "signed" has negative scores too, as those of conformalized quantile regression."""
