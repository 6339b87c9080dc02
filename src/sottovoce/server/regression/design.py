"""Choose a channel: by itself from the public setting, by the name that the public class takes, or as it was built.

By itself, every family is built at its best and judged by the trace of H^-1 Omega H^-1, the asymptotic mean squared
error of all coefficients, for public levels, number of slopes, budget and second moments. No record is looked at, so
nothing is spent. Names are auto, cq, cq:q,s, lp, box and open.
"""

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.checks import TAIL, nearest
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import check_within
from sottovoce.protocol.regression.blocks import RegressionChannel, open_channel
from sottovoce.protocol.regression.box import cq
from sottovoce.server.regression.families import Setting, best_cq, box_mixture, lp_mixture, shared_box
from sottovoce.server.regression.mixing import boxes
from sottovoce.server.regression.omega import Covariates, covariance, covariates
from sottovoce.server.regression.settings import RegressionSettings

_LINE = 100  # characters of an explanation's lines


class Alternative(NamedTuple):
    """A channel that was weighed: standard errors (levels, p + 1) and trace for one person and density 1."""

    name: str
    description: str
    errors: Floats
    trace: float


def alternative(channel: RegressionChannel, known: Covariates, description: str) -> Alternative:
    """Return what a channel is predicted to reach."""
    spread = np.array([covariance(channel, known, level) for level in range(len(channel.taus))])
    seconds = np.diagonal(spread, axis1=1, axis2=2)
    return Alternative(channel.name, description, np.sqrt(seconds), float(seconds.sum()))


@dataclass(frozen=True, eq=False)
class Design:
    """The chosen channel (for several levels that are split: one channel a level) and the alternatives.

    A channel that would cost more than ``epsilon`` is refused.
    """

    name: str
    channels: tuple[RegressionChannel, ...]
    known: Covariates
    epsilon: float
    alternatives: tuple[Alternative, ...]
    why: str

    def __post_init__(self) -> None:
        for channel in self.channels:
            check_within(channel.ratio, self.epsilon, f"the channel {channel.name!r}")

    @staticmethod
    def of(channel: RegressionChannel, known: Covariates, why: str) -> "Design":
        """Return a design that was asked for, with nothing else weighed."""
        return Design(channel.name, (channel,), known, channel.epsilon, (alternative(channel, known, why),), why)

    @property
    def channel(self) -> RegressionChannel:
        """Return the channel; of a split design, that of the first level."""
        return self.channels[0]

    @property
    def split(self) -> bool:
        """Tell whether each person answers for one level only, drawn at random in public."""
        return len(self.channels) > 1

    @property
    def taus(self) -> tuple[float, ...]:
        """Return the quantile levels."""
        return tuple(tau for channel in self.channels for tau in channel.taus)

    @property
    def alternative(self) -> Alternative:
        """Return the prediction for what was chosen."""
        return next(a for a in self.alternatives if a.name == self.name)

    def __str__(self) -> str:
        return self.explain()

    def explain(self, n: int = 1_000_000, density: float = 1.0) -> str:
        """Return a short table: predicted standard errors for ``n`` people, and people needed, against the rest."""
        chosen, scale = self.alternative, 1 / (math.sqrt(n) * density)
        levels = ", ".join(f"{tau:g}" for tau in self.taus)
        head = f"channel {self.name} (tau {levels}; {self.known.p} slopes; epsilon {self.epsilon:g}): {self.why}."
        lines = [
            *textwrap.wrap(head, _LINE, subsequent_indent="  ", break_on_hyphens=False),
            f"Predicted standard errors for {n:,} people at density {density:g}:",
            "",
        ]
        lines.append(f"{'':2}{'channel':<16}{'intercept':>11}{'slopes':>23}{'people':>9}")
        for other in sorted(self.alternatives, key=lambda a: a.trace):
            errors = np.sqrt((other.errors**2).mean(axis=0)) * scale
            mark = "*" if other is chosen else " "
            people = f"{other.trace / chosen.trace:.2f}x"
            lines.append(f"{mark} {other.name:<16}{errors[0]:>11.3g}{_range(errors[1:]):>23}{people:>9}")
        return "\n".join([*lines, "", "people: how many are needed for the same mean squared error (* chosen)."])


def _range(errors: Floats) -> str:
    """Return a slope's error, or the smallest and largest of several."""
    if len(errors) == 0:
        return "-"
    low, high = f"{errors.min():.3g}", f"{errors.max():.3g}"
    return low if low == high else f"{low} to {high}"


Moments = float | Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]]

LARGEST = 24.0  # as for one bit: more cannot be expressed within 1e-8 on a die of 2^62 outcomes
MOST_SLOPES = 300  # matrices of so many rows are still inverted in a moment, again and again
SMALLEST = 1e-6  # a million millions of people would not see a quantile through less
CLOSE = 0.0999  # levels nearer to each other do not share a report; chosen by hand
PROGRAM = (0.02, 5.0)  # budgets between which the linear program is solved; beyond, boxes are as good (decision 0014)

_WHY = "asked for by name"


def choose(
    taus: float | Sequence[float],
    p: int,
    epsilon: float,
    second_moments: Moments | None = None,
    means: Sequence[float] | Floats | None = None,
) -> Design:
    """Return the design with the smallest predicted error for a public setting.

    An epsilon of ``math.inf`` sends exact scores; ``second_moments`` and ``means`` are public and those after scaling
    to [-1, 1] (`covariates`).

    >>> choose(0.75, 2, 4.0).name
    'box'
    """
    levels, known = setting(taus, p, epsilon, second_moments, means)
    if math.isinf(epsilon):
        return Design.of(open_channel(levels, p), known, "exact scores, not private")
    single = [_one(Setting(tau, epsilon, known)) for tau in levels]
    if len(levels) == 1:
        return single[0]
    return _together(levels, known, single, shared_box(levels, epsilon, known))


def setting(
    taus: float | Sequence[float],
    p: int,
    epsilon: float,
    second_moments: Moments | None,
    means: Sequence[float] | Floats | None = None,
) -> tuple[tuple[float, ...], Covariates]:
    """Return levels and moments, checked; refuse what no channel can serve."""
    levels = (float(taus),) if isinstance(taus, float | int) else tuple(sorted(float(tau) for tau in taus))
    if not levels or not all(TAIL <= tau <= 1 - TAIL for tau in levels) or len(set(levels)) < len(levels):
        raise BadInput(f"quantile levels lie between 0 and 1, each once, not {taus!r}; give tau such as 0.5.")
    if p < 0:
        raise BadInput(f"the number of slopes must be 0 or more, not {p}; correct it.")
    if p > MOST_SLOPES:
        raise BadInput(
            f"a regression has at most {MOST_SLOPES} covariates, and {p:,} are given; leave out those that matter less."
        )
    if not epsilon > 0 or (epsilon > LARGEST and not math.isinf(epsilon)):
        raise BadInput(
            f"epsilon must lie above 0 and at most at {LARGEST:g}, not {epsilon!r}; "
            "give a budget such as 1, or inf for no privacy."
        )
    if epsilon < SMALLEST:
        raise BadInput(
            f"epsilon {epsilon!r} is too small for any number of people to learn from; "
            f"give {SMALLEST:g} or more, such as 1."
        )
    return levels, covariates(p, second_moments, means)


def _one(wanted: Setting) -> Design:
    """Return the design for one level, with every family as an alternative."""
    known, table = wanted.known, boxes((wanted.tau,), wanted.epsilon, wanted.known)
    paper = best_cq(wanted, table)
    found: list[tuple[RegressionChannel, str]] = [(paper, "the paper's blocks, drawn uniformly")]
    if known.p > 0:
        thin = box_mixture(wanted, table.take(table.width == 1), "cq optimised")
        found.append((thin, "the paper's blocks, drawn by the best distribution"))
        found.append((box_mixture(wanted, table), "boxes of cells"))
    if known.p > 0 and PROGRAM[0] <= wanted.epsilon <= PROGRAM[1]:
        found.append((lp_mixture(wanted, table), "pairs from a linear program"))
    traces = [float(np.trace(covariance(channel, known))) for channel, _ in found]
    # ties go to the simpler family: a design that gains nothing is not worth its explanation
    best = next(i for i, trace in enumerate(traces) if trace <= min(traces) * (1 + 1e-3))
    others = tuple(alternative(channel, known, words) for channel, words in found)
    return Design(found[best][0].name, (found[best][0],), known, wanted.epsilon, others, found[best][1])


def _together(levels: tuple[float, ...], known: Covariates, single: list[Design], shared: RegressionChannel) -> Design:
    """Return the shared design or the split one, whichever has the smaller trace over all levels."""
    epsilon = single[0].epsilon
    errors = np.array([design.alternative.errors[0] for design in single]) * math.sqrt(len(levels))
    trace = sum(design.alternative.trace for design in single) * len(levels)
    split = Alternative("split", "each person answers for one level, drawn at random", errors, trace)
    both = (split, alternative(shared, known, "one side between all levels, and boxes of cells"))
    # the fitted quantiles of close levels cross again and again, which one side between them cannot tell
    apart = min(high - low for low, high in pairwise(levels))
    if both[1].trace <= trace and apart >= CLOSE:
        return Design(shared.name, (shared,), known, epsilon, both, both[1].description)
    channels = tuple(design.channel for design in single)
    return Design("split", channels, known, epsilon, both, split.description)


def parse(
    text: str,
    taus: float | Sequence[float],
    p: int,
    epsilon: float,
    second_moments: Moments | None = None,
    means: Sequence[float] | Floats | None = None,
) -> Design:
    """Return the design that a name asks for; several levels of a named channel are split over people.

    Names are ``auto``, ``cq`` (the best q and s), ``cq:q,s``, ``lp``, ``box`` and ``open``.

    >>> parse("cq:2,1", 0.5, 2, 2.0).channel.letters
    2
    """
    levels, known = setting(taus, p, epsilon, second_moments, means)
    if text == "auto":
        return choose(levels, p, epsilon, second_moments, means)
    if text == "open":
        if not math.isinf(epsilon):
            raise BadInput(f"channel 'open' is not private, yet epsilon is {epsilon!r}; give epsilon = inf with it.")
        return Design.of(open_channel(levels, p), known, _WHY)
    named = [_named(text, Setting(tau, epsilon, known)) for tau in levels]
    if len(named) == 1:
        return Design.of(named[0], known, _WHY)
    return _split(named, known, epsilon)


def _named(text: str, wanted: Setting) -> RegressionChannel:
    tau, epsilon, known = wanted
    shape = re.fullmatch(r"cq:(-?\d+),(-?\d+)", text)
    if shape is not None:
        return cq(tau, known.p, epsilon, int(shape[1]), int(shape[2]))
    if text not in ("cq", "lp", "box"):
        meant = nearest(text, ("auto", "cq", "lp", "box", "open"))
        raise BadInput(
            f"there is no channel {text!r}{meant}; give auto, cq, cq:q,s (for example cq:3,1), lp, box, or open."
        )
    if text == "lp" and (known.p == 0 or math.isinf(epsilon)):
        raise BadInput("channel 'lp' needs a slope and a finite epsilon; give channel 'auto'.")
    table = boxes((tau,), epsilon, known)
    if text == "cq" or known.p == 0:
        return best_cq(wanted, table)
    return box_mixture(wanted, table) if text == "box" else lp_mixture(wanted, table, alone=True)


def _split(channels: list[RegressionChannel], known: Covariates, epsilon: float) -> Design:
    """Return the design in which each person answers for one level, drawn at random."""
    each = [alternative(channel, known, _WHY) for channel in channels]
    size = len(channels)
    errors = np.array([a.errors[0] for a in each]) * math.sqrt(size)
    whole = Alternative("split", "each person answers for one level", errors, sum(a.trace for a in each) * size)
    return Design("split", tuple(channels), known, epsilon, (whole,), whole.description)


def design_of(settings: RegressionSettings, bounds: Bounds) -> Design:
    """Return the design for covariates; it looks at public numbers alone, and spends nothing."""
    p, moments, means = len(bounds.names), settings.second_moments, None
    public = settings.public_moments(bounds)
    if public is not None:
        moments, means = public.matrix[1:, 1:], tuple(public.matrix[0, 1:].tolist())
    if isinstance(settings.channel, RegressionChannel):
        return _given(settings.channel, settings, covariates(p, moments, means))
    key = None if moments is None else (moments.shape, tuple(float(moment) for moment in moments.ravel()))
    return _parsed(settings.channel, settings.taus, p, settings.epsilon, key, means)


@lru_cache(maxsize=64)
def _parsed(
    text: str,
    taus: tuple[float, ...],
    p: int,
    epsilon: float,
    key: tuple[tuple[int, ...], tuple[float, ...]] | None,
    means: tuple[float, ...] | None,
) -> Design:
    # a search of up to two seconds, whose answer every refit needs again
    moments = None if key is None else np.array(key[1]).reshape(key[0])
    return parse(text, taus, p, epsilon, moments, means)


def _given(channel: RegressionChannel, settings: RegressionSettings, known: Covariates) -> Design:
    """Return the design of a channel that somebody built, unless it is one for another regression."""
    if channel.p != known.p:
        raise BadInput(f"the channel is for {channel.p} covariates and X has {known.p}; build it for {known.p}.")
    if channel.taus != settings.taus:
        raise BadInput(f"the channel is for tau {channel.taus} and tau is {settings.taus}; give both the same levels.")
    if channel.epsilon > settings.epsilon:
        raise BadInput(
            f"the channel's epsilon is {channel.epsilon:.9g}, above the budget epsilon={settings.epsilon:g}; "
            "raise the budget, or build the channel for it."
        )
    return Design.of(channel, known, "given")
