"""Asking all sites at once: the same fraction of each site's records answers each query.

With shares ``p``, rates ``r`` and sizes ``N``, one query answered by a fraction ``f`` of every site gives the pooled
distribution function with variance ``unit_variance / f``, where ``unit_variance = sum p^2 / (4 r^2 N)``.

A site that is absent from a round has spent nothing. It is asked what it missed in rounds of its own while the others
wait, so that in the end all have answered the same question: an absence costs rounds, and no record. A site that misses
`PATIENCE` rounds one after the other is away: nobody waits for it where the study can do without it (`Need`), and it is
asked with the others again in the next question. Shares never change: what a site did not say counts as unknown.

People who come by themselves are not counted out beforehand: what they said and how many of them spoke come back,
stacked, (2, sites, points), and what was answered counts, not what was planned (`said_by_arrivals`). Answers to the
question before that came late stand behind those of this one, a column for each point of that question. They are other
people's, so whatever was asked meanwhile, they are independent answers at the points that their question had.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Bools, Floats, Ints

PATIENCE = 4  # rounds missed one after the other from which on a site is away
ABSENT, LOST, GONE = -1, -2, -3  # for a site's ones: it spent nothing; it did, unheard; it will never answer again


@dataclass(frozen=True)
class SiteProfile:
    """What the server knows of the sites beforehand: shares, response rates and sizes."""

    shares: Floats
    rates: Floats
    sizes: Ints

    def thinned(self, part: float) -> "SiteProfile":
        """Return the profile of a part of every site's records."""
        sizes = np.maximum((self.sizes * part).astype(np.int64), 1)
        return SiteProfile(self.shares, self.rates, sizes)

    @property
    def unit_variance(self) -> float:
        """Return the largest variance of the estimated distribution function if every record answered at one point."""
        return float(np.sum(self.shares**2 / (4 * self.rates**2 * self.sizes)))


class Ask(NamedTuple):
    """A query to all sites: points, and how many records of each site answer at each, (sites, points).

    Where a point has a positive period, records tell their phase (`client.quantile.encode`); None is none anywhere.
    """

    points: Floats
    counts: Ints
    periods: Floats | None = None


@dataclass(frozen=True)
class Decoded:
    """The decoded answers to one query: points, estimated probabilities below them, and what the variance needs.

    At a point with a period, ``below`` is the probability of the lower half of the period.
    """

    points: Floats
    below: Floats
    variances: Floats
    ones: Ints = field(repr=False)
    counts: Ints = field(repr=False)
    absent: Bools | None = field(default=None, repr=False)  # sites that were asked and stayed away

    def at(self, some: Bools) -> "Decoded":
        """Return the answers at some of the points."""
        return Decoded(
            self.points[some],
            self.below[some],
            self.variances[some],
            self.ones[:, some],
            self.counts[:, some],
            self.absent,
        )


class Need(NamedTuple):
    """Which part of the shares may be missing from an answer: at once, and where all who are missing are away."""

    slack: float
    most: float


GUIDING = Need(0.05, 0.05)  # search, pilot and pairs: what is missing is allowed for as noise
LOCAL = Need(0.02, 1.0)  # stages: the curve of a site from other stages stands in for it
CERTIFYING = Need(0.0, 0.02)  # lots of who stays away count against their query


class Given(NamedTuple):
    """What the sites said to a question in the end, who stayed away (None: nobody), what was lost, rounds it took."""

    ones: Ints
    counts: Ints
    absent: Bools | None
    lost: Ints
    rounds: int
    arrived: bool = False  # people who came by themselves: as many as came, and nobody stayed away
    late: Ints | None = None  # ones and counts, (2, sites, points), of the question before that had not come by then


def said_by_arrivals(said: Ints) -> tuple[Ints, Ints] | None:
    """Return ones and counts, where people came by themselves to answer; None where as many spoke as were asked.

    What came late to the question before stands last.
    """
    return (said[0], said[1]) if said.ndim == 3 else None


def late_answers(said: Ints, points: int) -> Ints | None:
    """Return what came late to the question before, where this one has so many points; None if nothing did."""
    return said[:, :, points:] if said.ndim == 3 and said.shape[2] > points else None


@dataclass
class Attendance:
    """How many rounds each site has missed, one after the other, and who will never answer again."""

    shares: Floats
    missed: Ints = field(init=False)
    gone: Bools = field(init=False)

    def __post_init__(self) -> None:
        self.missed = np.zeros(len(self.shares), dtype=np.int64)
        self.gone = np.zeros(len(self.shares), dtype=np.bool_)

    def gather(self, ask: Ask, left: Callable[[], Ints], need: Need) -> Generator[Ask, Ints, Given]:
        """Ask, and ask the absent again at the same points while they are needed; ``left`` tells what sites have."""
        open_: Bools = np.any(ask.counts, axis=1)
        if self.gone.any():
            said = yield ask._replace(counts=np.where(self.gone[:, None], 0, ask.counts))
            said = np.where(self.gone[:, None], GONE, said)
        else:
            said = yield ask
        lost = np.zeros_like(self.missed)
        if (came := said_by_arrivals(said)) is not None:
            n = len(ask.points)
            return Given(came[0][:, :n], came[1][:, :n], None, lost, 1, True, late_answers(said, n))
        if said.min(initial=0) >= 0:
            self.missed[open_] = 0
            return Given(said, ask.counts, None, lost, 1)
        counts, ones, rounds = ask.counts.copy(order="F"), np.zeros_like(ask.counts, order="F"), 1
        while True:
            first = said[:, 0]
            told: Bools = np.logical_and(open_, first >= 0)
            ones[told] = said[told]
            self.missed[told] = 0
            open_ = np.logical_and(open_, ~told)
            self.missed[open_] += 1
            self.gone |= open_ & (first == GONE)
            lost += np.where(open_ & (first == LOST), counts.sum(axis=1), 0)
            counts[open_] = _fitting(counts[open_], (left() - lost)[open_])
            again = np.where((open_ & ~self.gone)[:, None], counts, 0)
            share, away = float(self.shares[open_].sum()), bool(np.all(self.missed[open_] >= PATIENCE))
            if share <= need.slack or (away and share <= need.most) or not again.any():
                counts[open_] = 0
                return Given(ones, counts, open_ if open_.any() else None, lost, rounds)
            heard = yield ask._replace(counts=again)
            asked: Bools = np.any(again, axis=1)
            said = np.where(asked[:, None], heard, ABSENT)  # not asked: nobody is left there, after losses
            rounds += 1


def _fitting(counts: Ints, left: Ints) -> Ints:
    """Return the counts of some sites, lowered where fewer records are left."""
    total = counts.sum(axis=1)
    part = np.minimum(left / np.maximum(total, 1), 1.0)
    return np.asarray(np.floor(counts * part[:, None] + 1e-9), dtype=np.int64)


def all_periods(points: Floats, periods: Floats | None) -> Floats:
    """Return a period a point; zero is a threshold."""
    return np.zeros(len(points)) if periods is None else periods


def spread_offsets(sites: int) -> Floats:
    """Return a rounding offset a site, by the golden ratio: neighbours in the list never speak one after the other.

    Were the offsets in the order of the sites, a query that asks less than one record a site would be answered by a
    block of neighbours, who may be alike.
    """
    return np.asarray((np.arange(sites) + 0.5) * 0.6180339887498949 % 1.0, dtype=np.float64)


def allot(crowd: SiteProfile, spent: float, fractions: Floats) -> Ints:
    """Return how many records of each site answer at each point, (sites, points).

    Cumulative rounding with a different offset a site: no coin, no record twice, and all records used when the
    fractions sum to one.
    """
    offsets = spread_offsets(len(crowd.sizes))
    edges = np.minimum(spent + np.concatenate(([0.0], np.cumsum(fractions))), 1.0)
    edges[edges > 1 - 1e-12] = 1.0
    # a point's counts side by side in memory: with ten thousand sites, sums over them are twice as fast
    reached = np.floor(np.outer(edges, crowd.sizes) + offsets).astype(np.int64)
    return np.diff(np.minimum(reached, crowd.sizes), axis=0).T


class Counted(NamedTuple):
    """How each site counts at each point, (sites, points): weights that sum to one, and the noise that each brings.

    ``noise`` is ``share^2 / n``, to be multiplied with the variance of one decoded report. ``few`` are sites of which
    less than one answer was due.
    """

    weights: Floats
    noise: Floats
    few: Bools


def counted(crowd: SiteProfile, counts: Ints, absent: Bools | None = None) -> Counted:
    """Return how sites count at points that some of their records answer.

    Of a small site less than one record may be due at a point. Those of them that answer stand for those that do not,
    and count the more the less was due (Horvitz and Thompson): were their share left to all others, who are larger and
    may be different, the answer would lean. A site that is absent, or has nobody left, leaves its share to the others.
    """
    taking = crowd.sizes if absent is None else np.where(absent, 0, crowd.sizes)
    due = np.outer(taking, counts.sum(axis=0) / max(int(taking.sum()), 1))
    few: Bools = (due < 1 - 1e-9) & (due > 0)
    heard = counts > 0
    if not few.any():
        shares = _normal(crowd.shares[:, None] * heard)
        return Counted(shares, shares**2 / np.maximum(counts, 1), few)
    shares = _normal(crowd.shares[:, None] * (heard | few))
    answers = np.where(few, due, np.maximum(counts, 1))
    return Counted(_normal(shares * np.where(few, counts / answers, heard)), shares**2 / answers, few)


def _normal(parts: Floats) -> Floats:
    """Return parts that sum to one at each point, or to zero where there are none."""
    return np.asarray(parts / np.maximum(parts.sum(axis=0), 1e-300))


def decode(crowd: SiteProfile, points: Floats, counts: Ints, ones: Ints, absent: Bools | None = None) -> Decoded:
    """Decode letters into the pooled distribution function, where sites count as `counted` says.

    What the absent might have said instead, anything from zero to one, counts as noise.
    """
    weights, noise, _ = counted(crowd, counts, absent)
    rates = crowd.rates[:, None]
    above = ones / np.maximum(counts, 1)  # in place from here on: with ten thousand sites, new arrays cost time
    above -= (1 - rates) / 2
    above /= rates
    above *= weights
    variances = (noise / (4 * rates**2)).sum(axis=0)
    if absent is not None:
        variances = np.where(variances > 0, variances + (float(crowd.shares[absent].sum()) / 2) ** 2, 0.0)
    return Decoded(points, 1 - above.sum(axis=0), variances, ones, counts, absent)


@dataclass
class QueryAllocator:
    """Asks on behalf of a procedure and remembers what was spent and heard: of the distribution function, of phases."""

    crowd: SiteProfile
    spent: float = 0.0
    rounds: int = 0
    heard: list[Decoded] = field(default_factory=list)
    phases: list[Decoded] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._attendance = Attendance(self.crowd.shares)
        self._lost = np.zeros_like(self.crowd.sizes)
        self._rest, self._since = self.crowd, 0.0  # what each site had when shares of its records were last divided
        self._newest: tuple[Decoded, Bools] | None = None  # the answer to the question before, and where it has periods
        self._amended: list[tuple[Decoded, Decoded]] = []  # answers, and what they are with those that came late

    def ask(
        self,
        points: npt.ArrayLike,
        fractions: npt.ArrayLike,
        periods: npt.ArrayLike | None = None,
        need: Need = GUIDING,
    ) -> Generator[Ask, Ints, Decoded]:
        """Ask a fraction of every site at each point; answers where the period is positive are kept with the phases."""
        at, parts = np.asarray(points, dtype=np.float64), np.asarray(fractions, dtype=np.float64)
        counts = self._allotted(parts)
        self.spent = min(1.0, self.spent + float(parts.sum()))
        ask = Ask(at, counts, None if periods is None else np.asarray(periods, dtype=np.float64))
        given = yield from self._attendance.gather(ask, lambda: self.crowd.sizes - self.asked, need)
        if given.late is not None:
            self._amend(*given.late)
        ones = np.asfortranarray(given.ones)  # laid out as the counts, so that sums have the same bits
        answer, phase = decode(self.crowd, at, given.counts, ones, given.absent), all_periods(at, ask.periods) > 0
        self.rounds += given.rounds
        if not phase.all():
            self.heard.append(answer.at(~phase) if phase.any() else answer)
        if phase.any():
            self.phases.append(answer.at(phase))
        if given.absent is not None or given.lost.any():
            self._lost += given.lost
            left = self.crowd.sizes - self.asked
            self._rest, self._since = SiteProfile(self.crowd.shares, self.crowd.rates, left), self.spent
        self._newest = answer, phase
        return answer

    def _amend(self, ones: Ints, counts: Ints) -> None:
        """Add what came late to the answers of the question before, if it was asked here."""
        if self._newest is None:
            return
        before, phase = self._newest
        now = decode(self.crowd, before.points, before.counts + counts, np.asfortranarray(before.ones + ones))
        if not phase.all():
            self.heard[-1] = now.at(~phase) if phase.any() else now
        if phase.any():
            self.phases[-1] = now.at(phase)
        self._amended.append((before, now))

    def with_late(self, heard: Decoded) -> Decoded:
        """Return an answer with what came late to it."""
        return next((now for before, now in self._amended if before is heard), heard)

    def _allotted(self, parts: Floats) -> Ints:
        """Return how many records of each site answer at each point; who was absent has more left, and tells more."""
        if self._rest is self.crowd:
            return allot(self.crowd, self.spent, parts)
        whole = max(1.0 - self._since, 1e-300)
        return allot(self._rest, (self.spent - self._since) / whole, parts / whole)

    @property
    def asked(self) -> Ints:
        """Return how many records of each site were asked, those that answered and those that were lost."""
        every = [each.counts.sum(axis=1) for each in (*self.heard, *self.phases)]
        return np.asarray(np.sum([self._lost, *every], axis=0), dtype=np.int64)

    @property
    def reports(self) -> int:
        """Return how many records have answered."""
        return int(self.asked.sum() - self._lost.sum())

    @property
    def left(self) -> float:
        """Return the fraction of the records not yet asked."""
        return 1.0 - self.spent
