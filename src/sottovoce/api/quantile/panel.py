"""Everything a study needs, checked before any record answers: sites, budgets, levels, shares, public knowledge."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.client.quantile.ties import look_rounded
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import number, per_site
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.feasibility import STAGES, Limits, NoiseToTail, check


@dataclass(frozen=True)
class QuantilePlan:
    """A checked study over sites."""

    table: SiteTable
    tau: float
    taus: Floats
    channels: tuple[Channel, ...]
    crowd: SiteProfile
    support: NoiseToTail
    shares_name: str
    resolution: float
    bounds: tuple[float, float] | None
    scale: float | None
    warnings: tuple[str, ...]
    hints: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the sites."""
        return self.table.names

    @property
    def epsilons(self) -> dict[str, float]:
        """Return the realised epsilon of every site, computed from its channel."""
        return {name: channel.epsilon for name, channel in zip(self.names, self.channels, strict=True)}


def prepare(
    sites: Any,
    tau: Any,
    epsilon: Any,
    *,
    shares: Any = "pooled",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    missing: str = "refuse",
    thinned: float = 1.0,
    limits: Limits = STAGES,
) -> QuantilePlan:
    """Check all input; ``thinned`` is the part of the records that answers for this level, ``limits`` its design's."""
    table = sites if isinstance(sites, SiteTable) else read_sites(sites, missing=missing)
    taus = np.array([_level(value, where) for value, where in per_site(tau, table.names, "tau")])
    channels = tuple(_channel(value, where) for value, where in per_site(epsilon, table.names, "epsilon"))
    weights, shares_name = _shares(shares, table)
    sizes = np.array([records.size for records in table.records], dtype=np.int64)
    crowd = SiteProfile(weights, np.array([rate_of(channel) for channel in channels]), sizes)
    step = _step(resolution, table)
    within = _bounds(bounds, table)
    width = _scale(scale, table)
    level = float(np.sum(weights * taus))
    effective = SiteProfile(weights, crowd.rates, np.maximum((sizes * thinned).astype(np.int64), 1))
    measured = check(effective, level, table.names, limits)
    warnings = []
    if measured.ratio > (ample := limits.at(level).warn):
        needed = measured.records_for(int(effective.sizes.sum()), ample)
        warnings.append(
            f"the {level:g} quantile is barely supported: the interval may be {limits.longer} as with ample data; "
            f"{needed:,} records would leave this zone"
        )
    hints = []
    if step == 0 and any(look_rounded(records) for records in table.records):
        hints.append(
            "many records are tied, and ties spoil the interval: give resolution=, the step they are rounded to"
        )
    return QuantilePlan(
        table, level, taus, channels, crowd, measured, shares_name, step, within, width, tuple(warnings), tuple(hints)
    )


def _level(value: Any, where: str) -> float:
    result = number(value, where)
    if not 0 < result < 1:
        raise BadInput(f"{where} must lie strictly between 0 and 1, not {value!r}; give 0.9 for nine out of ten.")
    return result


def _channel(value: Any, where: str) -> Channel:
    budget = number(value, where)
    try:
        return binary(budget)
    except BadInput as error:
        raise BadInput(str(error).replace("epsilon", where, 1)) from None


def _shares(shares: Any, table: SiteTable) -> tuple[Floats, str]:
    """Return the weights of the sites in the estimand, and what they are called."""
    sizes = np.array([records.size for records in table.records], dtype=np.float64)
    if isinstance(shares, str):
        if shares == "pooled":
            return sizes / sizes.sum(), "pooled"
        if shares == "equal":
            return np.full(len(sizes), 1 / len(sizes)), "equal"
        raise BadInput(f"shares must be 'pooled', 'equal' or a mapping from site to share, not {shares!r}; choose one.")
    if not isinstance(shares, Mapping):
        raise BadInput(
            f"shares must be 'pooled', 'equal' or a mapping from site to share, not a {type(shares).__name__}; "
            "choose one."
        )
    weights = np.array([number(value, where) for value, where in per_site(shares, table.names, "shares")])
    if not np.all((weights > 0) & np.isfinite(weights)):
        worst = table.names[int(np.argmin(np.where(np.isfinite(weights), weights, -np.inf)))]
        raise BadInput(
            f"the share of site {worst!r} must be positive and finite; leave the site out if it is not to count."
        )
    if abs(float(weights.sum()) - 1) > 1e-9:
        raise BadInput(f"the shares sum to {float(weights.sum()):.12g}, not to 1; divide each by their sum.")
    return weights / weights.sum(), "custom"


def _step(resolution: Any, table: SiteTable) -> float:
    """Return the public resolution in the unit of the records, zero if none."""
    if resolution is None:
        return float(table.unit.resolution_in_unit or 0.0) if table.unit.kind == "date" else 0.0
    if isinstance(resolution, str) and table.unit.kind == "duration":
        step = table.unit.parse(resolution, where="resolution")
    elif table.unit.kind in ("date", "datetime") and isinstance(resolution, str):
        step = type(table.unit)("duration").parse(resolution, where="resolution")
        step = step / 86400 if table.unit.kind == "date" else step
    else:
        step = number(resolution, "resolution")
    if not (step > 0 and math.isfinite(step)):
        raise BadInput(f"resolution must be positive, not {resolution!r}; give the step the records are rounded to.")
    return step


def _bounds(bounds: Any, table: SiteTable) -> tuple[float, float] | None:
    if bounds is None:
        return None
    try:
        low, high = [bounds] if isinstance(bounds, str | bytes) else bounds
    except (TypeError, ValueError):
        raise BadInput(f"bounds must be a pair (low, high), not {bounds!r}; give two numbers.") from None
    low, high = table.unit.parse(low, where="the lower bound"), table.unit.parse(high, where="the upper bound")
    if not (low < high and math.isfinite(high - low)):
        raise BadInput(f"bounds must be finite with low < high, not {bounds!r}; give public limits of the quantile.")
    return float(low), float(high)


def _scale(scale: Any, table: SiteTable) -> float | None:
    if scale is None:
        return None
    if isinstance(scale, str) and table.unit.kind != "number":
        width = type(table.unit)("duration").parse(scale, where="scale") / (86400 if table.unit.kind == "date" else 1)
    else:
        width = number(scale, "scale")
    if not 1e-200 < width < 1e200:
        raise BadInput(
            f"scale must be positive and moderate, not {scale!r}; give a rough public spread of the records."
        )
    return width
