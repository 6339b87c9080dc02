"""What a private quantile regression is asked to do: all public, and checked before anybody is asked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds, read_bounds
from sottovoce.core.categories import Levels, read_levels, with_dummies
from sottovoce.core.checks import TAIL, dimensions, number, unknown
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.server.regression.declared import (
    KnownMoments,
    PublicMoments,
    public_moments,
    read_known_moments,
    read_two_valued,
)

SMALLEST, LARGEST = 1e-15, 1e15  # of guesses; fourth powers of them are computed with
FINEST = 1e-13  # of the start: less is not told apart there
FLATTEST = 1e-12  # of size times density, which is about 1: a step of less moves no point any more
MOST_GROUPS, MOST_DEEP = 1000, 20  # chains that walk abreast, and levels of a tree: more tell nothing more
SCHEDULES = {"dithered": "information", "self-normalised": "paper", "groups": "paper", "higrad": "paper"}
PARAMETERS = {"taus": "tau", "several": "tau"}  # of settings that have another name
# The parameters of `PrivateQuantileRegressor`, without the second that importing scikit-learn takes.
DEFAULTS = MappingProxyType(
    {
        "tau": 0.5, "epsilon": 1.0, "channel": "auto", "bounds": None, "inference": "dithered", "clip": False,
        "schedule": "auto", "density": None, "size": None, "start": None, "second_moments": None, "limit": None,
        "groups": None, "tree": (4, 4), "shuffle": True, "levels": None,
        "two_valued": None, "moments": None, "randomness": None,
    }
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RegressionSettings:
    """The checked parameters of a regressor; levels ascend, and what is given for each level follows them."""

    taus: tuple[float, ...]
    several: bool
    epsilon: float
    channel: str | RegressionChannel
    inference: str
    density: Floats | None
    size: float | None
    start: Floats | None
    second_moments: Floats | None
    limit: float
    groups: int | None
    tree: tuple[int, ...]
    shuffle: bool
    clip: bool
    levels: Levels
    two_valued: tuple[str, ...]
    moments: KnownMoments | None
    bounds: Any

    @property
    def searches(self) -> bool:
        """Tell whether the first people are asked for location and scale, as nobody guessed them."""
        return self.density is None or self.size is None

    def public_moments(self, bounds: Bounds) -> PublicMoments | None:
        """Return what is declared of the moments of the scaled covariates, or refuse it; None if nothing is."""
        return public_moments(bounds, self.two_valued, self.levels, self.moments, self.second_moments)

    def starts(self, to_scaled: Floats) -> Floats | None:
        """Return the guessed coefficients of scaled covariates, (levels, d); None if nobody guessed.

        ``to_scaled`` is the (d, d) matrix that takes raw coefficients to scaled ones.
        """
        levels, d = len(self.taus), len(to_scaled)
        if self.start is None:
            return None
        if self.start.ndim == 0:  # with no slopes, the raw and the scaled intercept are one number
            only = np.zeros((levels, d))
            only[:, 0] = self.start
            return only
        if self.start.shape not in ((d,), (levels, d)):
            raise BadInput(
                f"start has the shape {self.start.shape} and there are {d} coefficients: give one number for the "
                "intercept, or all of them, the intercept first"
            )
        return np.broadcast_to(self.start, (levels, d)) @ to_scaled.T


def read_settings(given: Mapping[str, Any]) -> RegressionSettings:
    """Read the parameters of the estimator, or refuse the first that is wrong in one sentence."""
    taus, several = _levels(given["tau"])
    order = np.argsort(taus)
    inference, schedule, channel = given["inference"], given["schedule"], given["channel"]
    if not isinstance(inference, str) or inference not in SCHEDULES:
        raise unknown("inference", inference, SCHEDULES)
    if not isinstance(schedule, str) or schedule not in ("auto", *SCHEDULES.values()):
        raise unknown("schedule", schedule, ("auto", "information", "paper"))
    if schedule not in ("auto", SCHEDULES[inference]):
        raise BadInput(
            f"schedule {schedule!r} does not go with inference {inference!r}, which steps by "
            f"{SCHEDULES[inference]!r}; leave schedule out."
        )
    if not isinstance(channel, str | RegressionChannel):
        raise BadInput(f"channel must be a name such as 'auto', or a channel, not a {type(channel).__name__}.")
    epsilon = number(given["epsilon"], "epsilon")
    if not epsilon > 0:
        raise BadInput(f"epsilon must be above 0, not {epsilon:g}; give a budget such as 1, or inf for no privacy.")
    limit, start, density = given["limit"], _numbers(given["start"], "start"), _densities(given["density"], order)
    size = None if given["size"] is None else _in_range(_positive(given["size"], "size"), "size")
    if size is not None and density is not None and size * density.min() < FLATTEST:
        raise BadInput(
            f"size times density is {size * density.min():.3g} and never far below 1, as the density is about one over "
            "the spread of the response; correct one of them, or leave both out."
        )
    if (
        size is not None
        and start is not None
        and size < FINEST * float(np.abs(start[..., 0] if start.ndim else start).max())
    ):
        raise BadInput(
            f"size is {size:.3g}, which no double tells apart at a start of {np.abs(start).max():.3g}; give the "
            "response less a public number, or correct one of them.",
            parameter="size",
        )
    return RegressionSettings(
        tuple(taus[i] for i in order),
        several,
        epsilon,
        channel,
        inference,
        density,
        size,
        start[order] if start is not None and start.ndim == 2 and len(start) == len(order) else start,
        _numbers(given["second_moments"], "second_moments"),
        math.inf if limit is None else _positive(limit, "limit", finite=False),
        None if given["groups"] is None else _whole(given["groups"], "groups", 2, MOST_GROUPS),
        _branching(given["tree"]),
        _truth(given["shuffle"], "shuffle"),
        _truth(given["clip"], "clip"),
        read_levels(given["levels"]),
        read_two_valued(given["two_valued"]),
        read_known_moments(given["moments"]),
        given["bounds"],
    )


def check_unchanged(
    first: RegressionSettings, bounds: Bounds, randomness: RandomSource | None, given: Mapping[str, Any]
) -> None:
    """Refuse a parameter that was changed since the first batch; its people answered to the old one."""
    now = read_settings(given)
    names = [each.name for each in fields(RegressionSettings) if each.name != "bounds"]
    changed = [PARAMETERS.get(name, name) for name in names if not _same(getattr(first, name), getattr(now, name))]
    again = read_bounds(with_dummies(now.bounds, bounds.names, now.levels), bounds.names)
    if not (np.array_equal(again.low, bounds.low) and np.array_equal(again.high, bounds.high)):
        changed.append("bounds")
    if given["randomness"] is not randomness:
        changed.append("randomness")
    if changed:
        raise BadInput(f"{changed[0]} was changed since the first partial_fit; call fit to begin anew, or set it back.")


def _same(before: Any, now: Any) -> bool:
    """Compare numbers, names and arrays; of a channel that somebody built, whether it is the same one."""
    if isinstance(before, np.ndarray) or isinstance(now, np.ndarray):
        return before is not None and now is not None and np.array_equal(before, now)
    return bool(before is now or before == now)


def _levels(tau: Any) -> tuple[list[float], bool]:
    """Return the levels as they were given, and whether they were a sequence."""
    several = not isinstance(tau, str | bytes) and dimensions(tau) == 1
    levels = [number(each, "tau") for each in (tau if several else [tau])]
    if not levels or not all(TAIL <= level <= 1 - TAIL for level in levels) or len(set(levels)) < len(levels):
        raise BadInput(f"quantile levels lie between 0 and 1, each once, not {tau!r}; give tau such as 0.5.")
    return levels, several


def _densities(density: Any, order: npt.NDArray[np.intp]) -> Floats | None:
    found = _numbers(density, "density")
    if found is None:
        return None
    if found.shape not in ((), order.shape) or not np.all(found > 0):
        raise BadInput("density must be a number above 0, or one for each level; give a public guess, or leave it out.")
    for each in (found.min(), found.max()):
        _in_range(float(each), "density")
    return np.broadcast_to(found, order.shape)[order]


def _numbers(value: Any, where: str) -> Floats | None:
    """Return one finite number or an array of them; None stays None."""
    if value is None:
        return None
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{where} must be a number or numbers, not a {type(value).__name__}; correct it.") from None
    if isinstance(value, bool | str | bytes) or not np.isfinite(array).all() or array.ndim > 2:
        raise BadInput(f"{where} must be a finite number, or finite numbers; correct it.")
    return array


def _positive(value: Any, where: str, *, finite: bool = True) -> float:
    found = number(value, where)
    if not found > 0 or (finite and math.isinf(found)):
        raise BadInput(f"{where} must be above 0, not {value!r}; give a public guess, or leave it out.")
    return found


def _in_range(guess: float, where: str) -> float:
    if not SMALLEST <= guess <= LARGEST:
        raise BadInput(
            f"{where} must lie between {SMALLEST:g} and {LARGEST:g}, not {guess:g}; give the response in another unit."
        )
    return guess


def _whole(value: Any, where: str, least: int, most: int) -> int:
    found = number(value, where)
    if not least <= found <= most or found != int(found):
        raise BadInput(f"{where} must be a whole number, at least {least} and at most {most:,}; correct it.")
    return int(found)


def _branching(tree: Any) -> tuple[int, ...]:
    if isinstance(tree, str | bytes) or dimensions(tree) != 1 or len(tree) == 0:
        raise BadInput(f"tree must be the branches of each level, such as (4, 4), not {tree!r}; correct it.")
    found = tuple(_whole(branches, "tree", 1, MOST_GROUPS) for branches in tree)
    if math.prod(found) > MOST_GROUPS or len(found) > MOST_DEEP:
        raise BadInput(
            f"tree has more than {MOST_GROUPS:,} leaves or {MOST_DEEP} levels; give fewer branches, such as (4, 4)."
        )
    return found


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise BadInput(f"{where} must be True or False, not {value!r}; choose one.")
    return bool(value)
