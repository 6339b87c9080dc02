"""The settings of a conformal threshold, checked before any score is touched."""

import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.checks import nearest, number, per_site
from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection import SELECTIONS
from sottovoce.protocol.selection.base import grid as checked_grid

GUARANTEES = ("marginal", "training-conditional")
RULES = ("closest", "paper")
# Bins of the grid where the answers of all sites are summed: each takes its own part of the records ("local") or adds
# its own noise ("aggregate"), so fewer are better; where a site names one cell, a fine grid costs next to nothing.
POOLED = {"local": 16, "aggregate": 32}
BINS = 100
MECHANISMS = (*SELECTIONS, *POOLED)
MOST_STATISTICS = 5  # a site that sends three comes within a few percent of one that sends all its scores
MOST_BINS = 100_000
LEAST = 1e-9  # of alpha and delta: the distributions of coverage are exact to about 1e-12
LARGEST_EPSILON = 100.0  # a budget beyond it protects nobody, and words of 64 bits cannot spend 89 of it


@dataclass(frozen=True)
class ConformalSettings:
    """What is promised, and how it is to be kept."""

    alpha: float
    guarantee: str
    delta: float
    rule: str
    statistics: int
    exact: bool
    mechanism: str | None  # None: without privacy

    @property
    def conditional(self) -> bool:
        """Tell whether the promise is made for one calibration."""
        return self.guarantee == "training-conditional"

    @property
    def pooled(self) -> bool:
        """Tell whether the answers of all sites are summed before any is read."""
        return self.mechanism in POOLED


def check_settings(
    alpha: Any, guarantee: Any, delta: Any, rule: Any, statistics: Any, exact: Any, mechanism: Any, private: bool
) -> ConformalSettings:
    """Return the settings or say which cannot be used."""
    missed, doubt = _part(alpha, "alpha", "0.1 for a coverage of 0.9"), _part(delta, "delta", "0.1")
    _one_of(guarantee, "guarantee", GUARANTEES)
    _one_of(rule, "rule", RULES)
    _one_of(mechanism, "mechanism", MECHANISMS)
    count = _whole(statistics, "statistics")
    if not 1 <= count <= MOST_STATISTICS:
        text = f"statistics must be between 1 and {MOST_STATISTICS}, not {statistics!r}; three come close to all."
        raise BadInput(text)
    if not isinstance(exact, bool | np.bool_):
        raise BadInput(f"exact must be True or False, not {exact!r}; leave it out for no randomisation.")
    if exact and (private or guarantee != "marginal"):
        why = "noise for privacy is bounded, not known" if private else "it is a matter of averages"
        text = f"exact coverage needs guarantee 'marginal' and no epsilon, since {why}; leave exact out."
        raise BadInput(text, parameter="exact")
    if private and count > 1:
        raise BadInput(
            f"statistics={count} would have a private site answer {count} times with one budget; "
            "leave statistics at 1.",
            parameter="statistics",
        )
    if count > 1 and rule == "paper":
        text = "rule 'paper' knows one statistic a site; leave statistics at 1, or choose rule 'closest'."
        raise BadInput(text, parameter="statistics")
    if private and mechanism in POOLED and rule == "paper":
        raise BadInput(f"mechanism {mechanism!r} has one rule of its own; leave rule out, or choose another mechanism.")
    if private and mechanism == "paper" and guarantee != "marginal":
        raise BadInput("mechanism 'paper' promises the marginal guarantee alone; choose another mechanism.")
    if not private and mechanism != SELECTIONS[0]:
        raise BadInput(f"mechanism {mechanism!r} is for privacy, and epsilon is not given; give it, or leave it out.")
    return ConformalSettings(missed, guarantee, doubt, rule, count, bool(exact), mechanism if private else None)


def check_budgets(epsilon: Any, names: tuple[str, ...]) -> list[float]:
    """Return the budget of every site, infinite where there is none."""
    if epsilon is None:
        return [math.inf] * len(names)
    budgets = []
    for value, where in per_site(epsilon, names, "epsilon"):
        budget = number(value, where)
        if not budget > 0 or LARGEST_EPSILON < budget < math.inf:
            raise BadInput(
                f"{where} must be positive and at most {LARGEST_EPSILON:g}, not {value!r}; leave it out for none."
            )
        budgets.append(budget)
    if all(map(math.isinf, budgets)):
        raise BadInput("epsilon is infinite everywhere, which is no privacy; leave it out for order statistics.")
    return budgets


def check_grid(minimum: Any, maximum: Any, bins: Any, edges: Any, mechanism: str) -> Floats:
    """Return the edges of the public grid: those given, or equal steps from the minimum to the maximum."""
    if edges is not None:
        if any(given is not None for given in (minimum, maximum, bins)):
            raise BadInput("grid gives all edges, so minimum, maximum and bins say nothing more; give either.")
        try:
            line = np.asarray(edges)
        except ValueError:
            line = np.asarray("ragged")
        if line.dtype.kind not in "iuf" or isinstance(edges, np.ma.MaskedArray):
            raise BadInput("grid must be a list of numbers, the edges of the cells; correct it.")
        return checked_grid(line)
    if maximum is None:
        raise BadInput(
            "with epsilon a public maximum of the scores is needed, chosen without a look at them; give maximum=, or "
            "grid=, the edges themselves."
        )
    top, bottom = number(maximum, "maximum"), number(0.0 if minimum is None else minimum, "minimum")
    if not (math.isfinite(top - bottom) and bottom < top):
        raise BadInput(f"maximum must be finite and above the minimum {bottom:g}, not {maximum!r}; correct it.")
    count = POOLED.get(mechanism, BINS) if bins is None else _whole(bins, "bins")
    if not 1 <= count <= MOST_BINS:
        raise BadInput(f"bins must be between 1 and {MOST_BINS:,}, not {count:,}; a hundred is plenty.")
    return checked_grid(np.linspace(bottom, top, count + 1)[1:])


def _part(value: Any, name: str, example: str) -> float:
    part = number(value, name)
    if not 0 < part < 1:
        raise BadInput(f"{name} must lie strictly between 0 and 1, not {value!r}; give {example}.")
    if not LEAST <= part <= 1 - LEAST:
        raise BadInput(f"{name} must keep {LEAST:g} away from 0 and 1, not be {value!r}; give {example}.")
    return part


def _one_of(value: Any, name: str, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise BadInput(
            f"{name} must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, not {value!r}"
            f"{nearest(value, known)}; choose one."
        )


def _whole(value: Any, name: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise BadInput(f"{name} must be a whole number, not {value!r}; correct it.") from None


def check_edges(minimum: Any, maximum: Any, bins: Any, grid: Any, mechanism: str, private: bool) -> Floats | None:
    """Return the public grid of a private study; without privacy there is none."""
    if private:
        return check_grid(minimum, maximum, bins, grid, mechanism)
    given = {"maximum": maximum, "minimum": minimum, "bins": bins, "grid": grid}
    for name, value in given.items():
        if value is not None:
            raise BadInput(
                f"{name} belongs to a private study, and epsilon is not given; give it, or leave {name} out."
            )
    return None
