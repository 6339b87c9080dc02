"""The plan of a quantile: sites, budgets, levels, shares and public knowledge, checked before any record answers.

A plan is made from public facts alone, and holds no record.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.censoring import Censoring
from sottovoce.core.checks import LARGEST, dimensions, moderate, nearest, number, per_site, quantile_level
from sottovoce.core.digits import multiple, number_text
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster, check_kind
from sottovoce.core.unit import Unit
from sottovoce.protocol.card import Card
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.messages import Study
from sottovoce.protocol.randomised_response import binary, flips_of, rate_of, with_flips
from sottovoce.server.description import finite
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.feasibility import (
    CERTIFIED,
    PAIRS,
    SCARCE,
    STAGES,
    Limits,
    NoiseToTail,
    check,
    expected,
    reach,
)
from sottovoce.server.quantile.left_out import overall, part_of, small_sites, without

LEAST = 1e-9  # of the estimand: a site that counts less is left out
FEW_NAMES = 4  # sites that are named where others have left


class Departure(NamedTuple):
    """A site that left a study for good, and the round in which it did."""

    site: str
    round: int


class SiteCount(NamedTuple):
    """What a site counts: its records, its share, its part of the noise, what a record pays, and values missing."""

    records: int
    share: float
    noise: float
    epsilon: float
    dropped: int


@dataclass(frozen=True, eq=False)
class QuantilePlan:
    """A checked study over sites."""

    roster: Roster
    tau: float
    taus: Floats
    budgets: tuple[float, ...]  # as they were stated; what a channel realises is a little less
    flips: tuple[int, ...]
    crowd: SiteProfile
    support: NoiseToTail
    shares_name: str
    resolution: float
    bounds: tuple[float, float] | None
    scale: float | None
    warnings: tuple[str, ...]
    hints: tuple[str, ...] = ()
    kind: str | None = None  # what the records are declared to be: one of `core.roster.KINDS`
    step_source: str = ""  # what the resolution was taken from where it was not given, in words
    left_out: tuple[str, ...] = ()  # sites too small to take part, which are not asked
    departed: tuple[Departure, ...] = ()  # sites that left after rounds in which they were asked
    located: bool = False  # whether a study of several groups finds location and scale for all

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the sites."""
        return self.roster.names

    @property
    def sites(self) -> str:
        """Return in words over which sites the quantile is."""
        names = tuple(dict.fromkeys(self.roster.places))
        if self.departed and len(names) <= FEW_NAMES:
            return listed(names)
        if len(names) == 1:
            return names[0]
        return f"the {len(names)} sites{' left' if self.left_out or self.departed else ''}"

    @property
    def departures(self) -> str:
        """Return in words who left the study when; empty if nobody did."""
        whole: dict[int, list[str]] = {}
        for site, round in self.departed:
            whole.setdefault(round, []).append(site)
        return ", ".join(f"{listed(sites)} left the study in round {round}" for round, sites in whole.items())

    @property
    def rounds_before(self) -> int:
        """Return how many rounds the study had when its last site left; the next one counts on from there."""
        return max((round for _, round in self.departed), default=0)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Return the channel of every site."""
        return tuple(map(with_flips, self.flips))

    @property
    def epsilons(self) -> dict[str, float]:
        """Return the realised epsilon of every site, computed from its channel."""
        return {site: channel.epsilon for site, channel in zip(self.roster.places, self.channels, strict=True)}

    @cached_property
    def by_site(self) -> dict[str, SiteCount]:
        """Return what every site counts, all its strata together."""
        found: dict[str, SiteCount] = {}
        rows = zip(
            self.roster.places,
            self.names,
            self.roster.sizes,
            self.crowd.shares.tolist(),
            self.support.variance_shares,
            self.channels,
            strict=True,
        )
        for site, name, size, share, noise, channel in rows:
            dropped, before = int(self.roster.dropped.get(name, 0)), found.get(site)
            if before is not None:
                size, share, dropped = size + before.records, share + before.share, dropped + before.dropped
                noise += before.noise
            found[site] = SiteCount(size, share, noise, channel.epsilon, dropped)
        return found

    @property
    def effective(self) -> float:
        """Return how many records of equal weight tell as much as these (Kish 1965)."""
        sizes, weights = np.array(self.roster.sizes), np.array(self.roster.weights)
        return float((sizes @ weights) ** 2 / (sizes @ weights**2))

    @property
    def stated(self) -> dict[str, float]:
        """Return the budget of every site as it was stated."""
        return dict(zip(self.roster.places, self.budgets, strict=True))

    @property
    def atoms(self) -> bool:
        """Tell whether many records are declared to share values, so that the interval is certified."""
        return self.kind == "amounts" or self.roster.unit.censored is not None

    @property
    def limits(self) -> tuple[float, float]:
        """Return between which values every record lies by its type, or by what it is declared to be."""
        if self.roster.unit.kind == "category":
            return 0.0, len(self.roster.unit.categories) - 1.0
        return (0.0 if self.kind == "counts" else -math.inf), math.inf

    def rounded(self, value: float, side: int = 0) -> float:
        """Round to the public resolution: the dithered quantile lies within half a step of the atom.

        At a lower (-1) or upper (1) end of an interval the half of a step goes inwards; nothing leaves the limits. What
        lies beyond limits of measurement is infinite, or next to them where it ends an interval (`core.censoring`).
        """
        censored = self.roster.unit.censored
        step, (low, high) = self.resolution, self.limits
        if step > 0 and math.isfinite(value):
            place = value / step
            whole = round(place) if side == 0 else math.floor(place + 0.5) if side < 0 else math.ceil(place - 0.5)
            value = multiple(whole, step)
        if censored is not None and censored.side(value):
            return censored.known(value, side, step)
        return min(max(value, low), high)

    def plain(self, value: float) -> float | None:
        """Return an estimate or an end as strict JSON can hold it: None if infinite, a limit next to which it lies."""
        censored = self.roster.unit.censored
        return finite(value if censored is None else censored.plain(value))

    def card(self, method: str = "staged", name: str = "", nonce: bytes = b"") -> Card:
        """Return the study card: the public terms that sites and server agree on."""
        terms = {
            "method": method,
            "sites": list(self.names),
            "taus": self.taus.tolist(),
            "budgets": list(self.budgets),
            "flips": list(self.flips),
            "shares": self.crowd.shares.tolist(),
            "sizes": list(self.roster.sizes),
            "unit": self.roster.unit.kind,
            "resolution": self.resolution,
            "bounds": None if self.bounds is None else list(self.bounds),
            "scale": self.scale,
        }
        if self.roster.unit.censored is not None:
            terms["censored"] = str(self.roster.unit.censored)
        return Card("quantile", terms, name, nonce)

    def study_of(self, site: int) -> Study:
        """Return what one site takes part in."""
        return Study(float(self.taus[site]), self.budgets[site], self.resolution)


def plan_quantile(
    roster: Roster,
    tau: Any,
    epsilon: Any,
    *,
    shares: Any = "pooled",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    kind: str | None = None,
    thinned: float = 1.0,
    limits: Limits = STAGES,
    confidence: float = 0.95,
    certified: bool = False,
    fewest: int = 0,
) -> QuantilePlan:
    """Check all input; ``thinned`` is the part of the records that answers for this level, ``limits`` its design's.

    What is given by site counts for all strata of it (`core.roster.Strata`).

    Sites with less than ``fewest`` records, and small sites whose noise would end the study, are left out, which a
    warning says. Where few records will be certified, how far the interval will reach is said beforehand.
    """
    names, places = roster.names, roster.places
    taus = np.array([_level(value, where) for value, where in per_site(tau, places, "tau")])
    budgets = tuple(number(value, where) for value, where in per_site(epsilon, places, "epsilon"))
    channels = tuple(_channel(value, where) for value, where in per_site(epsilon, places, "epsilon"))
    weights, shares_name = check_shares(shares, roster)
    crowd = SiteProfile(weights, np.array([rate_of(channel) for channel in channels]), np.array(roster.sizes, np.int64))
    design = PAIRS if limits is CERTIFIED and not certified else limits
    stay = np.ones(len(names), dtype=np.bool_)
    if fewest or limits is not CERTIFIED or not roster.mixed:  # else few records of much weight are certified
        crowd, stay = small_sites(crowd, taus, thinned, design, fewest)
    gone = tuple(name for name, stays in zip(names, stay, strict=True) if not stays)
    lost = part_of(roster, gone)
    if gone:
        taus, roster, names = taus[stay], roster.only(stay.tolist()), tuple(compress(names, stay))
        budgets, channels = tuple(compress(budgets, stay)), tuple(compress(channels, stay))
    kind = check_kind(roster.kind if kind is None else kind, roster.unit)
    step, source = _step(resolution, roster.unit, kind)
    within = _widened(_bounds(bounds, roster.unit, step), roster.unit.censored, step)
    width = _scale(scale, roster.unit)
    level, effective = overall(crowd.shares, taus), crowd.thinned(thinned)
    measured = check(effective, level, names, limits)
    warnings = [
        *roster.doubts,
        *([without(gone, len(names), lost)] if gone else []),
    ]
    certified |= limits is CERTIFIED and (
        kind == "amounts" or roster.unit.censored is not None or measured.ratio > PAIRS.at(level).refuse
    )
    if measured.ratio > limits.at(level).warn:
        ends = reach(effective, level, confidence, within is not None) if certified else None
        warnings.append(barely(crowd, level, measured, limits, ends))
    flips = tuple(map(flips_of, channels))
    public = (shares_name, step, within, width, tuple(warnings), (), kind, source, gone)
    return QuantilePlan(roster, level, taus, budgets, flips, crowd, measured, *public)


def barely(
    crowd: SiteProfile, tau: float, measured: NoiseToTail, limits: Limits, ends: tuple[float, float] | None
) -> str:
    """Say that records barely support a level, and how far a certified interval will reach where it is one."""
    needed = measured.records_for(int(crowd.sizes.sum()), limits.at(tau).warn)
    longer = f"the interval may be {limits.longer} as with ample data"
    if limits is PAIRS and measured.ratio > SCARCE:
        longer += ", and takes the density to be smooth, where method='certified' takes nothing for granted"
    if ends is not None:
        longer = f"of these records expect an interval {expected(*ends)}"
    return f"the {tau:g} quantile is barely supported: {longer}; {needed:,} records would leave this zone"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words.

    >>> listed(["east"]), listed(["east", "north", "south"])
    ('east', 'east, north and south')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _level(value: Any, where: str) -> float:
    if dimensions(value):
        raise BadInput(f"{where} names several levels; call federated_quantiles for several, or give one number.")
    return quantile_level(value, where)


def _channel(value: Any, where: str) -> Channel:
    budget = number(value, where)
    try:
        return binary(budget)
    except BadInput as error:
        raise BadInput(str(error).replace("epsilon", where, 1)) from None


def check_shares(shares: Any, roster: Roster) -> tuple[Floats, str]:
    """Return the weights of all that answer in the estimand, and what they are called.

    A record counts by its public weight; the share of a site is divided among its strata as they count.
    """
    counts = np.array(roster.sizes, dtype=np.float64) * np.array(roster.weights)
    if isinstance(shares, str) and shares == "pooled":
        return counts / counts.sum(), "weighted" if roster.weighted else "pooled"
    within, sites = _within(counts, roster.places)
    if isinstance(shares, str):
        if shares == "equal":
            return within / len(sites), "equal"
        raise BadInput(
            f"shares must be 'pooled', 'equal' or a mapping from site to share, not {shares!r}"
            f"{nearest(shares, ('pooled', 'equal'))}; choose one."
        )
    if not isinstance(shares, Mapping):
        raise BadInput(
            f"shares must be 'pooled', 'equal' or a mapping from site to share, not a {type(shares).__name__}; "
            "choose one."
        )
    weights = np.array([number(value, where) for value, where in per_site(shares, sites, "shares")])
    if not np.all((weights >= LEAST) & np.isfinite(weights)):
        worst = sites[int(np.argmin(np.where(np.isfinite(weights), weights, -np.inf)))]
        raise BadInput(
            f"the share of site {worst!r} must be positive and finite, at least {LEAST:g}; leave others out."
        )
    if abs(float(weights.sum()) - 1) > 1e-9:
        raise BadInput(f"the shares sum to {float(weights.sum()):.12g}, not to 1; divide each by their sum.")
    known = dict(zip(sites, (weights / weights.sum()).tolist(), strict=True))
    return within * np.array([known[place] for place in roster.places]), "custom"


def _within(counts: Floats, places: tuple[str, ...]) -> tuple[Floats, tuple[str, ...]]:
    """Return what part of its site each that answers counts, and the sites."""
    sites = tuple(dict.fromkeys(places))
    if len(sites) == len(places):
        return np.ones(len(counts)), sites
    at = {site: i for i, site in enumerate(sites)}
    where = np.array([at[place] for place in places])
    return counts / np.bincount(where, weights=counts)[where], sites


def _step(resolution: Any, unit: Unit, kind: str | None) -> tuple[float, str]:
    """Return the public resolution in the unit of the records, zero if none, and the words for where it is from.

    What is given wins, 0 and False among it: the records are then taken to be continuous. Else what was declared
    counts, and then the type of the column: no record is looked at.
    """
    if resolution is None:
        if kind is not None:
            return (0.0, "") if kind == "amounts" else (1.0, f"{kind} are whole numbers")
        return unit.step, unit.step_words
    if resolution is False or (isinstance(resolution, int | float) and resolution == 0):
        return 0.0, ""
    timed = isinstance(resolution, str) and unit.timed
    step = unit.parse_width(resolution, where="resolution") if timed else number(resolution, "resolution")
    if not moderate(step):
        raise BadInput(
            f"resolution must be positive, not {resolution!r}, and moderate; "
            "give the step the records are rounded to, or 0 for none."
        )
    return step, ""


def _bounds(bounds: Any, unit: Unit, step: float) -> tuple[float, float] | None:
    """Return between which points the quantile of the records lies, once they are dithered."""
    if bounds is None:
        if unit.kind != "category":
            return None
        bounds = (0, max(len(unit.categories) - 1, 1))
    try:
        low, high = [bounds] if isinstance(bounds, str | bytes) else bounds
    except (TypeError, ValueError):
        raise BadInput(f"bounds must be a pair (low, high), not {bounds!r}; give two numbers.") from None
    low, high = unit.parse(low, where="the lower bound"), unit.parse(high, where="the upper bound")
    if not (moderate(high - low) and max(abs(low), abs(high)) <= min(LARGEST, 1e13 * (high - low))):
        raise BadInput(
            f"bounds must be finite with low < high, not {bounds!r}, and apart for their size; "
            "give public limits of the quantile."
        )
    return float(low) - step / 2, float(high) + step / 2


def _widened(bounds: tuple[float, float] | None, censored: Censoring | None, step: float) -> tuple[float, float] | None:
    """Return public bounds with room for the symbols of values beyond limits; two limits are bounds."""
    if censored is None:
        return bounds
    if step > censored.coarsest:
        raise BadInput(
            f"resolution is {number_text(step)}, too coarse for the limits {censored}: give at most "
            f"{number_text(censored.coarsest)}, or 0 for none."
        )
    low, high = censored.codes
    ends = (-math.inf, math.inf) if bounds is None else bounds
    least = min(low, ends[0]) - step / 2 if math.isfinite(low) else ends[0]
    most = max(high, ends[1]) + step / 2 if math.isfinite(high) else ends[1]
    return (least, most) if math.isfinite(most - least) else None


def _scale(scale: Any, unit: Unit) -> float | None:
    if scale is None:
        return None
    timed = isinstance(scale, str) and unit.timed
    width = unit.parse_width(scale, where="scale") if timed else number(scale, "scale")
    if not moderate(width):
        raise BadInput(
            f"scale must be positive and moderate, not {scale!r}; give a rough public spread of the records."
        )
    return width
