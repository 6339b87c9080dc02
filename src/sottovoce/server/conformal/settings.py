"""The settings of a conformal threshold, checked before any score is touched."""

import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.core.checks import nearest, number, per_site
from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection import SELECTIONS

GUARANTEES = ("marginal", "training-conditional")
RULES = ("closest", "paper")
AUTO, SCANNED, COUNTED = "auto", "sparse-vector", "counts"
POOLED = (COUNTED, "local", "aggregate")  # answers of many sites are summed before any is read
RATIOS = (AUTO, COUNTED)  # mechanisms whose edges stand in equal ratios unless a number of steps is given
MECHANISMS = (AUTO, *SELECTIONS, *POOLED)
MOST_STATISTICS = 5  # a site that sends three comes within a few percent of one that sends all its scores
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
    """Return the settings or say which cannot be used; "auto" is still to be settled, by sizes and budgets."""
    missed, doubt = _part(alpha, "alpha", "0.1 for a coverage of 0.9"), _part(delta, "delta", "0.1")
    _one_of(guarantee, "guarantee", GUARANTEES)
    _one_of(rule, "rule", RULES)
    _one_of(mechanism, "mechanism", MECHANISMS)
    count = whole(statistics, "statistics")
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
    if not private and mechanism not in (AUTO, SCANNED):  # the second was the default once
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


def whole(value: Any, name: str) -> int:
    """Return a whole number, or refuse."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise BadInput(f"{name} must be a whole number, not {value!r}; correct it.") from None
